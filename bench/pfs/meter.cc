#include "pfs/meter.hpp"

#include <algorithm>
#include <thread>

#include "core/process_usage.hpp"

namespace forebay::pfs {
namespace {

constexpr double kVoidShare = 0.6;

double cpu_seconds() {
  const ProcessUsage usage = process_usage();
  return usage.user_seconds + usage.system_seconds;
}

nlohmann::json to_json(const Tally& tally) {
  nlohmann::json sizes = nlohmann::json::object();
  for (std::size_t i = 0; i < tally.sizes.size(); ++i) {
    if (tally.sizes[i] != 0) sizes[std::to_string(std::uint64_t{1} << i)] = tally.sizes[i];
  }
  return {{"requests", tally.requests},
          {"bytes", tally.bytes},
          {"seeks", tally.seeks},
          {"ahead_bytes", tally.ahead_bytes},
          {"memory_bytes", tally.memory_bytes},
          {"busy_seconds", tally.busy_seconds},
          {"queued_seconds", tally.queued_seconds},
          {"sizes", sizes}};
}

void add(Tally& total, const Tally& more) {
  total.requests += more.requests;
  total.bytes += more.bytes;
  total.seeks += more.seeks;
  total.ahead_bytes += more.ahead_bytes;
  total.memory_bytes += more.memory_bytes;
  total.busy_seconds += more.busy_seconds;
  total.queued_seconds += more.queued_seconds;
  total.count_size(more.bytes);
}

}  // namespace

Meter::Meter(std::vector<std::string> mounts) : cpu_before_(cpu_seconds()) {
  for (std::string& mount : mounts) clients_.push_back({.mount = std::move(mount)});
}

void Meter::count_metadata(std::size_t client) {
  const std::lock_guard lock(mutex_);
  ++clients_[client].metadata;
}

void Meter::count_read(std::size_t client, const Answer& answer, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (first_ns_ == 0) first_ns_ = now_ns;
  add(clients_[client].reads, answer.servers);
}

void Meter::count_answer(std::size_t client, bool failed, std::int64_t due_ns,
                         std::int64_t now_ns) {
  const double late = static_cast<double>(now_ns - due_ns) * 1e-9;
  const std::lock_guard lock(mutex_);
  clients_[client].failed += failed ? 1 : 0;
  last_ns_ = std::max(last_ns_, now_ns);
  late_sum_ += late;
  late_max_ = std::max(late_max_, late);
  ++answers_;
}

void Meter::reset() {
  const std::lock_guard lock(mutex_);
  for (Client& client : clients_) client = {.mount = std::move(client.mount)};
  first_ns_ = last_ns_ = 0;
  late_sum_ = late_max_ = 0;
  answers_ = 0;
  cpu_before_ = cpu_seconds();
}

nlohmann::json Meter::to_json(const std::vector<Tally>& servers) const {
  const std::lock_guard lock(mutex_);
  const double cpu = cpu_seconds() - cpu_before_;
  const double active = static_cast<double>(std::max<std::int64_t>(last_ns_ - first_ns_, 0)) * 1e-9;
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const double share = active > 0 ? cpu / (active * cores) : 0;
  const double mean = answers_ > 0 ? late_sum_ / static_cast<double>(answers_) : 0;
  nlohmann::json json{{"active_seconds", active},
                      {"cpu_seconds", cpu},
                      {"cpu_share", share},
                      {"void", share > kVoidShare},
                      {"late_seconds", {{"mean", mean}, {"max", late_max_}}}};
  json["servers"] = nlohmann::json::array();
  for (const Tally& tally : servers) json["servers"].push_back(pfs::to_json(tally));
  json["clients"] = nlohmann::json::array();
  for (const Client& client : clients_) {
    nlohmann::json entry = pfs::to_json(client.reads);
    entry["mount"] = client.mount;
    entry["metadata"] = client.metadata;
    entry["failed"] = client.failed;
    json["clients"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace forebay::pfs
