// Options of a Loader: a plain struct, and one text form ("batch=256,strategy=lmm") that the
// command line and code share.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

/// How samples get from the file into the memory of the ranks.
enum class Strategy : std::uint8_t {
  automatic,  ///< the best that this version has: lmm
  lmdb,       ///< baseline: liblmdb, every rank for itself, skipping what belongs to others. Its
              ///< mapping is not guarded: a file that is cut while open ends the process (SIGBUS)
  lmm,        ///< localized mmap: one root a node reads for all its ranks (HPCC 2017, section IV)
};

/// How the reader of a root gets bytes.
enum class ReadEngine : std::uint8_t { automatic, mmap, pread };

/// A stretch of an epoch list that one number of ranks and one batch size worked through.
struct Segment {
  int ranks = 1;
  std::uint64_t batch = 0;
  std::uint64_t iterations = 0;
  bool operator==(const Segment&) const = default;
};

struct LoaderOptions {
  /// Samples in a global batch, over all ranks; at least one a rank. Required.
  std::uint64_t batch = 0;
  /// C: how many iterations are read together. 1 keeps Caffe's order; larger values mean larger
  /// reads and a different (but still fixed) order.
  std::uint64_t coalesce = 1;
  /// Iterations to deliver in all; 0 = no end. A limit keeps the reader from reading ahead of it.
  std::uint64_t iterations = 0;
  /// The same in epochs: the last batch is the one that reaches the end of that many; 0 = no end.
  /// Give this or `iterations`.
  std::uint64_t epochs = 0;
  /// First iteration to deliver. resume_options() sets it, and the two below.
  std::uint64_t first_iteration = 0;
  /// Finished stretches with other ranks or batch sizes: the order goes on behind them.
  std::vector<Segment> done;
  /// Fingerprint that the data set must have; empty = any.
  std::string fingerprint;
  Strategy strategy = Strategy::automatic;
  /// automatic: mmap where the file system maps, else pread.
  ReadEngine engine = ReadEngine::automatic;
  /// Reading processes a node; 0 = 1 up to 16 ranks, 2 above.
  int roots = 0;
  /// Windows in the stage at once: 2 read ahead while one is used, 1 shows all reading as waiting.
  int buffers = 2;
  /// Memory for all buffers of a node; 0 = 1/8 of the node's memory or control-group limit, at most
  /// 2.5 GiB. Pages are taken only when used.
  std::uint64_t stage_bytes = 0;
  SharedMemoryKind stage = SharedMemoryKind::posix;
  /// How stored values are decoded: auto, datum, image, raw, bytes.
  std::string codec = "auto";
  /// Declared fields, e.g. "image:u8[3x32x32]" for codec=raw; else checked against the data.
  std::string schema;
  /// How long a wait for data or for another rank may last: 1 ms to a year.
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};

  /// Reads "name=value,name=value"; values with commas stand in double quotes.
  /// Throws usage naming the word that is wrong and what is allowed.
  static LoaderOptions parse(std::string_view text);
  /// Sets one option by its name in the text form.
  void set(std::string_view name, std::string_view value);
  /// The text form of every option that differs from its default.
  std::string to_text() const;
  /// Throws usage when an option is out of its range, or options contradict each other or the
  /// number of ranks.
  void validate(int ranks) const;
};

/// Name, kind of value and help of each option of the text form, for command lines.
struct OptionInfo {
  std::string_view name;
  std::string_view value;  ///< what kind of value it takes
  std::string_view help;
};
std::span<const OptionInfo> loader_option_infos();

std::string_view to_string(Strategy strategy);
std::string_view to_string(ReadEngine engine);

}  // namespace forebay
