// What all commands print: results on stdout, everything else on stderr.
//
// How far a long command is: one line that rewrites itself on a terminal, a plain line every few
// seconds elsewhere (a log file), nothing at all for commands that end sooner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// One line "forebay: error: ..." on stderr, whatever `message` contains.
void print_error(std::string_view message);

/// `json` on one line of stdout. Bytes that are not UTF-8 (in paths) are replaced.
void print_json(const nlohmann::ordered_json& json);

/// `bytes` as they are on stdout. Throws io where they cannot be written.
void print_bytes(std::span<const std::byte> bytes);

/// Throws io when what was printed did not reach stdout (a full disk behind a redirection).
void flush_output();

/// One fact of a report on stdout; `name` is empty where it goes on.
void print_row(std::string_view name, std::string_view text);

/// "3.2 MB": powers of 1,000, three significant digits.
std::string human_bytes(std::uint64_t bytes);
/// "1,234,567"
std::string human_count(std::uint64_t count);

bool is_terminal(std::FILE* stream);
/// A terminal, and NO_COLOR is not set.
bool use_color(std::FILE* stream);

/// Thread-safety: one thread.
class Progress : private NonCopyable {
 public:
  /// `verb` starts each line ("packing"); `total` 0 means unknown.
  Progress(std::string verb, std::uint64_t total);
  ~Progress();

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

/// Lines for whoever reads them: a file, a pipe, or standard output. Thread-safety: one thread.
class LineFile : private NonCopyable {
 public:
  /// Empty: standard output. Throws io: also where nobody opens a named pipe for reading within
  /// `limit` (0: waits for ever).
  LineFile(const std::string& path, std::chrono::milliseconds limit);
  /// Writes what was added, as far as a pipe takes it at once.
  ~LineFile();

  /// Whether writing may wait for somebody. (Of a terminal too.)
  bool is_pipe() const { return pipe_; }
  void add(std::span<const std::byte> text);
  /// Writes all that was added. Throws io. False: a pipe's reader has not taken all of it for
  /// `limit` (0: waits for ever), and the rest is still here.
  bool write(std::chrono::milliseconds limit);
  /// Writes what was added, once that is enough for one call of the system. Not for pipes.
  void write_full_buffers();

 private:
  std::string path_;
  int fd_;
  bool pipe_;
  std::string text_;
  std::size_t written_ = 0;  ///< of text_
};

/// Where most errors of commands are: in a file as a whole.
inline Where at_file(std::string path, std::optional<std::uint64_t> offset = {}) {
  return {.file = std::move(path), .offset = offset, .sample = {}, .key = {}};
}

}  // namespace forebay
