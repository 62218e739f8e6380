#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "forebay/options.hpp"

namespace forebay {
namespace {

template <typename Value>
using Names = std::initializer_list<std::pair<std::string_view, Value>>;

template <typename Value>
Value parse_name(std::string_view option, std::string_view text, Names<Value> names) {
  std::string allowed;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option {}", text, option),
              "choose one of: " + allowed);
}

Strategy parse_strategy(std::string_view text) {
  return parse_name<Strategy>(
      "strategy", text,
      {{"auto", Strategy::automatic}, {"lmdb", Strategy::lmdb}, {"lmm", Strategy::lmm}});
}

ReadEngine parse_engine(std::string_view text) {
  return parse_name<ReadEngine>(
      "engine", text,
      {{"auto", ReadEngine::automatic}, {"mmap", ReadEngine::mmap}, {"pread", ReadEngine::pread}});
}

SharedMemoryKind parse_stage(std::string_view text) {
  return parse_name<SharedMemoryKind>(
      "stage", text, {{"posix", SharedMemoryKind::posix}, {"mpi", SharedMemoryKind::mpi}});
}

constexpr int kMostRoots = 4096;
constexpr int kMostBuffers = 1024;
// Deadlines are points of a clock that counts nanoseconds: this keeps them far from its end.
constexpr std::chrono::hours kLongestTimeout{24 * 365};

template <typename Number>
void require_range(std::string_view option, bool holds, Number value) {
  if (holds) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}", option, value),
              fmt::format("roots go up to {}, buffers from 1 to {}, coalesce from 1, timeouts from "
                          "1 ms to a year",
                          kMostRoots, kMostBuffers));
}

/// One option of the text form: what it is called, and how it is read and written.
struct Entry {
  OptionInfo info;
  void (*set)(LoaderOptions&, std::string_view);
  std::string (*get)(const LoaderOptions&);
};

// The lambdas keep reading and writing of one option beside each other.
const std::array kEntries = {
    Entry{{"batch", "N", "samples in a global batch, over all ranks"},
          [](LoaderOptions& o, std::string_view t) { o.batch = parse_count(t, "batch", 1); },
          [](const LoaderOptions& o) { return std::to_string(o.batch); }},
    Entry{{"coalesce", "C", "iterations that are read together (default 1, Caffe's order)"},
          [](LoaderOptions& o, std::string_view t) { o.coalesce = parse_count(t, "coalesce", 1); },
          [](const LoaderOptions& o) { return std::to_string(o.coalesce); }},
    Entry{{"iterations", "T", "iterations to deliver (default 0: no end)"},
          [](LoaderOptions& o, std::string_view t) { o.iterations = parse_count(t, "iterations"); },
          [](const LoaderOptions& o) { return std::to_string(o.iterations); }},
    Entry{{"epochs", "E", "epochs to deliver, instead of iterations (default 0: no end)"},
          [](LoaderOptions& o, std::string_view t) { o.epochs = parse_count(t, "epochs"); },
          [](const LoaderOptions& o) { return std::to_string(o.epochs); }},
    Entry{{"strategy", "NAME", "auto, lmm (one root a node reads), lmdb (baseline)"},
          [](LoaderOptions& o, std::string_view t) { o.strategy = parse_strategy(t); },
          [](const LoaderOptions& o) { return std::string(to_string(o.strategy)); }},
    Entry{{"engine", "NAME", "how roots read: auto, mmap, pread"},
          [](LoaderOptions& o, std::string_view t) { o.engine = parse_engine(t); },
          [](const LoaderOptions& o) { return std::string(to_string(o.engine)); }},
    Entry{{"roots", "N", "reading ranks a node (default 0: 1 up to 16 ranks, 2 above)"},
          [](LoaderOptions& o, std::string_view t) {
            o.roots = static_cast<int>(parse_count(t, "roots", 0, kMostRoots));
          },
          [](const LoaderOptions& o) { return std::to_string(o.roots); }},
    Entry{{"buffers", "N", "windows in the stage at once (default 2; 1 hides no reading)"},
          [](LoaderOptions& o, std::string_view t) {
            o.buffers = static_cast<int>(parse_count(t, "buffers", 1, kMostBuffers));
          },
          [](const LoaderOptions& o) { return std::to_string(o.buffers); }},
    Entry{
        {"stage-bytes", "SIZE",
         "memory for all buffers of a node (default 0: 1/8 of its memory, at most 2.5GiB)"},
        [](LoaderOptions& o, std::string_view t) { o.stage_bytes = parse_bytes(t, "stage-bytes"); },
        [](const LoaderOptions& o) { return exact_bytes(o.stage_bytes); }},
    Entry{{"stage", "KIND", "shared memory of the stage: posix, mpi"},
          [](LoaderOptions& o, std::string_view t) { o.stage = parse_stage(t); },
          [](const LoaderOptions& o) {
            return std::string(o.stage == SharedMemoryKind::mpi ? "mpi" : "posix");
          }},
    Entry{{"codec", "NAME", "how values are decoded: auto, datum, image, raw, bytes"},
          [](LoaderOptions& o, std::string_view t) { o.codec = t; },
          [](const LoaderOptions& o) { return o.codec; }},
    Entry{{"schema", "FIELDS", "fields of codec raw, e.g. image:u8[3x32x32]"},
          [](LoaderOptions& o, std::string_view t) { o.schema = t; },
          [](const LoaderOptions& o) { return o.schema; }},
    Entry{{"timeout", "TIME", "longest wait for data or another rank (default 10min)"},
          [](LoaderOptions& o, std::string_view t) {
            o.timeout = std::chrono::ceil<std::chrono::milliseconds>(parse_duration(t, "timeout"));
          },
          [](const LoaderOptions& o) { return exact_duration(o.timeout); }},
};

/// Cuts off the text up to the next comma outside double quotes, and the comma.
std::string_view take_item(std::string_view& text) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < text.size() && (quoted || text[end] != ','); ++end) {
    if (text[end] == '"') quoted = !quoted;
  }
  const std::string_view item = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return item;
}

std::string_view without_quotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

LoaderOptions LoaderOptions::parse(std::string_view text) {
  LoaderOptions options;
  while (!text.empty()) {
    const std::string_view item = take_item(text);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw Error(ErrorKind::usage, fmt::format("'{}' in the options has no value", item),
                  "write name=value, separated by commas");
    }
    options.set(item.substr(0, equals), without_quotes(item.substr(equals + 1)));
  }
  return options;
}

void LoaderOptions::set(std::string_view name, std::string_view value) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (entry.info.name == name) return entry.set(*this, value);
    known += (known.empty() ? "" : ", ") + std::string(entry.info.name);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no option '{}'", name),
              "choose one of: " + known);
}

std::string LoaderOptions::to_text() const {
  const LoaderOptions defaults;
  std::string text;
  for (const Entry& entry : kEntries) {
    std::string value = entry.get(*this);
    if (value == entry.get(defaults)) continue;
    if (value.find(',') != std::string::npos) value = '"' + value + '"';
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", entry.info.name, value);
  }
  return text;
}

void LoaderOptions::validate(int ranks) const {
  require_range("coalesce", coalesce >= 1, coalesce);
  require_range("buffers", buffers >= 1 && buffers <= kMostBuffers, buffers);
  require_range("roots", roots >= 0 && roots <= kMostRoots, roots);
  require_range("timeout", timeout.count() >= 1 && timeout <= kLongestTimeout, timeout.count());
  if (batch < static_cast<std::uint64_t>(ranks)) {
    throw Error(ErrorKind::usage,
                fmt::format("a batch of {} cannot be shared by {} ranks", batch, ranks),
                "give --batch at least the number of ranks");
  }
  if (iterations > 0 && epochs > 0) {
    throw Error(ErrorKind::usage, "iterations and epochs exclude each other", "give one of them");
  }
  if (iterations > 0 && first_iteration > iterations) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the run to resume has done {} of {} iterations", first_iteration, iterations),
        "raise --iterations or --epochs");
  }
}

std::span<const OptionInfo> loader_option_infos() {
  static const auto infos = [] {
    std::array<OptionInfo, kEntries.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kEntries[i].info;
    return all;
  }();
  return infos;
}

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::automatic:
      return "auto";
    case Strategy::lmdb:
      return "lmdb";
    case Strategy::lmm:
      return "lmm";
  }
  return "?";
}

std::string_view to_string(ReadEngine engine) {
  switch (engine) {
    case ReadEngine::automatic:
      return "auto";
    case ReadEngine::mmap:
      return "mmap";
    case ReadEngine::pread:
      return "pread";
  }
  return "?";
}

}  // namespace forebay
