// How far a long command is, on stderr: one line that rewrites itself on a terminal, a plain line
// every few seconds elsewhere (a log file), nothing at all for commands that end sooner.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace forebay {

/// Thread-safety: one thread.
class Progress {
 public:
  /// `verb` starts each line ("packing"); `total` 0 means unknown.
  Progress(std::string verb, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap enough to call for every record.
  void update(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::uint64_t done, Clock::time_point now);

  std::string verb_;
  std::uint64_t total_;
  bool terminal_;
  bool shown_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t first_ = 0;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace forebay
