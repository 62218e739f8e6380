// A timeline of what each thread did when, in the trace-event format that Perfetto and Chrome open.
//
//   {"traceEvents":[
//     {"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0"}},
//     {"ph":"X","name":"read","pid":0,"tid":17,"ts":<us>,"dur":<us>,"args":{"n":3}},
//     {"ph":"C","name":"buffers ready","pid":0,"ts":<us>,"args":{"value":2}}, ...]}
//
// Spans lie on the track of the thread that made them, or on one of their own with a name: of a
// tensor, say.
//
// A rank is a process of the timeline. Each rank records for itself; one of them collects the
// texts and writes the file. Times are wall-clock times, advanced by the steady clock, so ranks of
// one node line up, and ranks of different nodes as well as their clocks do.
//
// Code that is traced takes a `Trace*`; with a null pointer a span costs next to nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// Thread-safe. Holds at most `capacity` events, 48 bytes each; later ones are counted and dropped.
class Trace {
 public:
  explicit Trace(int rank, std::size_t capacity = 1'000'000);

  /// Names are literals, or live as long as the trace. Times are nanoseconds of
  /// std::chrono::steady_clock.
  void add_span(const char* name, std::int64_t begin_ns, std::int64_t end_ns,
                std::optional<std::uint64_t> number = {});
  void add_counter(const char* name, double value);

  /// A track for what no single thread does; returns its number.
  int add_track(const std::string& name);
  void add_span_to(int track, const char* name, std::int64_t begin_ns, std::int64_t end_ns);

  /// The recorded events: JSON objects separated by commas.
  std::string events() const;

 private:
  enum class Kind : std::uint8_t { span, numbered_span, counter };
  struct Event {
    const char* name;
    std::int64_t begin_ns;
    std::int64_t duration_ns;
    std::uint64_t number;
    double value;
    int thread;  ///< or a track
    Kind kind;
  };

  void add(const Event& event);
  std::string to_json(const Event& event) const;
  std::string microseconds_since_epoch(std::int64_t steady_ns) const;

  const int rank_;
  const std::size_t capacity_;
  const std::int64_t wall_minus_steady_ns_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::map<int, std::string> thread_names_;  ///< and of tracks
  int tracks_ = 0;
  std::uint64_t dropped_ = 0;
};

/// Records its scope as a span; nothing when `trace` is null.
class TraceSpan {
 public:
  /// `number` says which one it was: an iteration, a window.
  TraceSpan(Trace* trace, const char* name, std::optional<std::uint64_t> number = {});
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* trace_;
  const char* name_;
  std::optional<std::uint64_t> number_;
  std::int64_t begin_ns_;
};

/// Writes the events of all ranks to `path`. Local. Throws io.
void write_trace(const std::string& path, std::span<const std::string> events_of_ranks);

}  // namespace forebay
