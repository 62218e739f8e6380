#include "forebay/trace.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/clock.hpp"
#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Numbers of tracks begin where those of threads have ended: above the kernel's largest.
constexpr int kFirstTrack = 1 << 23;

int this_thread_id() {
  thread_local const int id = static_cast<int>(::gettid());
  return id;
}

std::string this_thread_name() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return name;
}

std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Microseconds with three decimals, as the format wants them, without a detour over floating point.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Trace::Trace(int rank, std::size_t capacity)
    : rank_(rank), capacity_(capacity), wall_minus_steady_ns_(wall_clock_ns() - now_ns()) {}

void Trace::add_span(const char* name, std::int64_t begin_ns, std::int64_t end_ns,
                     std::optional<std::uint64_t> number) {
  add({.name = name,
       .begin_ns = begin_ns,
       .duration_ns = end_ns - begin_ns,
       .number = number.value_or(0),
       .value = 0,
       .thread = this_thread_id(),
       .kind = number ? Kind::numbered_span : Kind::span});
}

void Trace::add_counter(const char* name, double value) {
  add({.name = name,
       .begin_ns = now_ns(),
       .duration_ns = 0,
       .number = 0,
       .value = value,
       .thread = this_thread_id(),
       .kind = Kind::counter});
}

int Trace::add_track(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const int track = kFirstTrack + tracks_++;
  thread_names_[track] = name;
  return track;
}

void Trace::add_span_to(int track, const char* name, std::int64_t begin_ns, std::int64_t end_ns) {
  add({.name = name,
       .begin_ns = begin_ns,
       .duration_ns = end_ns - begin_ns,
       .number = 0,
       .value = 0,
       .thread = track,
       .kind = Kind::span});
}

void Trace::add(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= capacity_) {
    ++dropped_;
    return;
  }
  events_.push_back(event);
  if (!thread_names_.contains(event.thread)) thread_names_[event.thread] = this_thread_name();
}

std::string Trace::microseconds_since_epoch(std::int64_t steady_ns) const {
  return microseconds(steady_ns + wall_minus_steady_ns_);
}

std::string Trace::to_json(const Event& event) const {
  const std::string start =
      fmt::format(R"("name":{},"pid":{},"tid":{},"ts":{})", quoted(event.name), rank_, event.thread,
                  microseconds_since_epoch(event.begin_ns));
  const std::string duration = microseconds(event.duration_ns);
  switch (event.kind) {
    case Kind::span:
      return fmt::format(R"({{"ph":"X",{},"dur":{}}})", start, duration);
    case Kind::numbered_span:
      return fmt::format(R"({{"ph":"X",{},"dur":{},"args":{{"n":{}}}}})", start, duration,
                         event.number);
    case Kind::counter:
      return fmt::format(R"({{"ph":"C",{},"args":{{"value":{}}}}})", start, event.value);
  }
  return "";
}

std::string Trace::events() const {
  const std::lock_guard lock(mutex_);
  std::string text = fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}","dropped":{1}}}}})",
      rank_, dropped_);
  for (const auto& [thread, name] : thread_names_) {
    text += fmt::format(
        ",\n"
        R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
        rank_, thread, quoted(name));
  }
  for (const Event& event : events_) text += ",\n" + to_json(event);
  return text;
}

TraceSpan::TraceSpan(Trace* trace, const char* name, std::optional<std::uint64_t> number)
    : trace_(trace), name_(name), number_(number), begin_ns_(trace != nullptr ? now_ns() : 0) {}

TraceSpan::~TraceSpan() {
  if (trace_ != nullptr) trace_->add_span(name_, begin_ns_, now_ns(), number_);
}

void write_trace(const std::string& path, std::span<const std::string> events_of_ranks) {
  std::ofstream file(path);
  file << "{\"traceEvents\":[\n";
  for (std::size_t i = 0; i < events_of_ranks.size(); ++i) {
    file << (i == 0 ? "" : ",\n") << events_of_ranks[i];
  }
  file << "\n]}\n";
  file.flush();
  const int error = errno;
  if (file) return;
  throw Error(
      ErrorKind::io,
      fmt::format("the trace cannot be written ({})", std::generic_category().message(error)),
      remedy_for(error, "check that its folder exists and has room"), Where{.file = path});
}

}  // namespace forebay
