#include "cli/verify_mapped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/verify_samples.hpp"
#include "format/convention/database_list.hpp"
#include "format/lmdb/verify.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Samples that are read together.
constexpr std::uint64_t kStep = 256;

class Verifier {
 public:
  Verifier(const DatasetOptions& dataset, const Samples& samples, std::uint64_t max_faults)
      : dataset_(dataset),
        samples_(samples),
        max_faults_(max_faults),
        codec_(samples.codec()),
        buffers_(codec_.schema()) {}

  void check_pages() {
    for (const std::string& path : convention::all_databases(dataset_.path)) {
      lmdb::Database database =
          lmdb::Database::open_unheld(path, usable_engine(path, dataset_.engine));
      const lmdb::VerifyReport report = lmdb::verify(database, {.max_faults = max_faults_});
      database.check_unchanged();
      records_ += report.records;
      pages_ += report.pages;
      fault_count_ += report.fault_count - report.faults.size();
      for (const lmdb::Fault& fault : report.faults) {
        note(fmt::format("{}: page {} at offset {}: {} {}", path, fault.page, fault.offset,
                         fault.key, fault.text));
      }
    }
  }

  void check_samples() {
    Progress progress("verifying", samples_.entries());
    for (std::uint64_t first = 0; first < samples_.entries(); first += kStep) {
      progress.update(first);
      find_faults(
          first, std::min(kStep, samples_.entries() - first),
          [this](std::span<const std::uint64_t> ids) {
            samples_.read(ids, [this](const SampleView& sample) { decode(sample); });
          },
          [this](std::uint64_t sample, const Error& error) {
            note(error.within({.sample = sample}).what());
          });
    }
  }

  Json json() const {
    return {{"path", dataset_.path},  {"sound", fault_count_ == 0},
            {"records", records_},    {"samples", samples_.entries()},
            {"codec", codec_.name()}, {"schema", to_string(codec_.schema())},
            {"pages", pages_},        {"fault_count", fault_count_},
            {"faults", faults_}};
  }
  std::uint64_t fault_count() const { return fault_count_; }
  const std::vector<std::string>& faults() const { return faults_; }
  std::uint64_t records() const { return records_; }

 private:
  void decode(const SampleView& sample) {
    if (codec_.schema().fields.empty()) return;
    try {
      codec_.decode(sample.value, buffers_.spans());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
      const std::string_view key(reinterpret_cast<const char*>(sample.key.data()),
                                 sample.key.size());
      note(error.within({.sample = sample.id, .key = printable_key(key)}).what());
    }
  }

  void note(std::string text) {
    ++fault_count_;
    if (faults_.size() < max_faults_) faults_.push_back(std::move(text));
  }

  const DatasetOptions& dataset_;
  const Samples& samples_;
  std::uint64_t max_faults_;
  const Codec& codec_;
  FieldBuffers buffers_;
  std::uint64_t records_ = 0;
  std::uint64_t pages_ = 0;
  std::uint64_t fault_count_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace

void verify_mapped(const DatasetOptions& dataset, const Samples& samples,
                   std::uint64_t max_faults) {
  Verifier verifier(dataset, samples, max_faults);
  verifier.check_pages();
  verifier.check_samples();
  if (dataset.json) {
    print_json(verifier.json());
  } else {
    for (const std::string& fault : verifier.faults()) fmt::print("{}\n", fault);
    if (verifier.fault_count() > verifier.faults().size()) {
      fmt::print("and {} more: see --max-faults\n",
                 human_count(verifier.fault_count() - verifier.faults().size()));
    }
    fmt::print(
        "{}: {} samples in {} records: {}\n", dataset.path, human_count(samples.entries()),
        human_count(verifier.records()),
        verifier.fault_count() == 0 ? "sound" : human_count(verifier.fault_count()) + " faults");
  }
  if (verifier.fault_count() == 0) return;
  flush_output();
  throw Error(ErrorKind::corrupt,
              fmt::format("{} faults in {} samples", human_count(verifier.fault_count()),
                          human_count(samples.entries())),
              "restore the files from a copy, or leave these samples out (--order listed)",
              at_file(dataset.path));
}

}  // namespace forebay
