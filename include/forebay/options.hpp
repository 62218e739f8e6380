// Options of a Loader: a plain struct, and one text form ("batch=256,strategy=lmm") that the
// command line and code share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/dataset.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/order.hpp"

namespace forebay {

/// How samples get from the file into the memory of the ranks: the papers' optimizations, each on
/// top of the one before (Pumma et al., TOPC 2019, sections 3-5). A strategy is a set of defaults
/// for the knobs below; each knob may be turned by itself.
///
///                            locate      engine  coalesce    stagger
///   lmdb                     seek        mmap    1           -          liblmdb, every rank itself
///   lmm                      seek        mmap    1           -
///   lmm_dm                   handoff     mmap    1           -
///   lmm_dio                  scatter     pread   1           -
///   lmm_dio_prov             provenance  pread   1           -
///   lmm_dio_prov_coal        provenance  pread   by formula  -
///   lmm_dio_prov_coal_stag   provenance  pread   by formula  measured
///   automatic                provenance, else scan; pread on local devices, else uring;
///                            coalesce by formula, stagger measured
enum class Strategy : std::uint8_t {
  automatic,
  lmdb,  ///< the baseline: every rank skips what belongs to others. Its mapping is not guarded: a
         ///< file that is cut while open ends the process (SIGBUS)
  lmm,   ///< localized mmap: one root a node reads for all its ranks
  lmm_dm,
  lmm_dio,
  lmm_dio_prov,
  lmm_dio_prov_coal,
  lmm_dio_prov_coal_stag,
};

/// Where orders that are new in every epoch draw their samples from.
enum class Hold : std::uint8_t {
  storage,  ///< each rank reads what it delivers (in_memory: as its memory ratio says)
  memory,   ///< the memory of all ranks, which holds the whole data set, read once
};

/// How a root finds out where its records are.
enum class Locate : std::uint8_t {
  automatic,   ///< what the strategy says
  seek,        ///< walks the tree for itself, over the records of the others
  handoff,     ///< goes on where the root before it has stopped; reads ahead on a guess meanwhile
  scatter,     ///< one root walks the tree for all and tells them their extents
  scan,        ///< all roots count the leaves together, once, at open
  provenance,  ///< from a sidecar that says how the file was laid out (see docs/provenance.md)
};

/// How the reader of a root gets bytes.
enum class ReadEngine : std::uint8_t { automatic, mmap, pread, uring, mpiio };

/// How engine mpiio reads. It needs MPI_THREAD_MULTIPLE, and records that are located as extents.
enum class MpiioMode : std::uint8_t {
  automatic,    ///< collective where it is possible
  collective,   ///< the reads of all roots in one call: strided order, no staggering
  independent,  ///< each root by itself
};

/// How roots take turns at the file system.
enum class StaggerBy : std::uint8_t {
  none,    ///< no turns at all
  token,   ///< each group of roots passes its tokens to the next (TOPC 2019, section 5.4)
  ticket,  ///< first come, first served, from one counter
};

/// What happens to a sample whose stored value does not decode.
enum class Undecodable : std::uint8_t {
  fail,  ///< it ends the run, on all ranks, with its id, key and what is wrong
  skip,  ///< it is left out of its batch, which is one sample shorter; see Loader::skipped()
};

/// ReadOptions::stagger: what the strategy says.
inline constexpr int kStaggerByStrategy = 0;
/// ReadOptions::stagger: no turns, all roots read at once.
inline constexpr int kNoStagger = -1;
/// ReadOptions::stagger: find the number by measuring.
inline constexpr int kMeasureStagger = -2;

/// ReadOptions::roots: every rank reads what it delivers, with a stage of its own.
inline constexpr int kEveryRank = -1;

/// What staggering has found to be the fastest: so many of so many roots. Zeros: nothing.
struct KnownStagger {
  int at_once = 0;
  int roots = 0;
  bool operator==(const KnownStagger&) const = default;
};

/// A communicator's part of a run whose processes are not connected to each other: part `index` of
/// `count`, each of them on as many ranks.
struct Shard {
  int index = 0;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

/// What the files are.
struct DataOptions {
  /// A format of docs/formats.md, such as raw (records of one size, as `schema` says), or auto: by
  /// the look of the first one, and LMDB where that says nothing.
  std::string format = "auto";
  /// Of LMDB: which records are samples, or parts of them, and their order.
  ConventionName convention = ConventionName::automatic;
  KeyOrder order_by = KeyOrder::key;
  /// Of LMDB, separated by commas: keys of records that are no samples, and of records that are,
  /// whatever they look like; or patterns of keys, as "meta*".
  std::string leave_out;
  std::string keep_records;
  /// Of format raw: bytes to skip at the start of every file; bytes from record to record, 0 =
  /// those of the schema; numbers have their high byte first.
  std::uint64_t header_bytes = 0;
  std::uint64_t record_bytes = 0;
  bool big_endian = false;
  /// Of streams of tokens: tokens of a sample, and from the first of one to that of the next; 0 =
  /// not given, and as many as `length`.
  std::uint64_t length = 0;
  std::uint64_t step = 0;
  /// Declared fields, e.g. "image:u8[3x32x32]" for codec=raw; else checked against the data.
  std::string schema;
};

/// How samples get from the files into the memory of the ranks.
struct ReadOptions {
  Strategy strategy = Strategy::automatic;
  Locate locate = Locate::automatic;
  /// automatic: what the strategy says, or the nearest that the file system and kernel allow. With
  /// strategy automatic too, decoding may use what the page cache has of a local LMDB file in
  /// place, unread: Sample::value of decoded batches then points into the mapped file.
  ReadEngine engine = ReadEngine::automatic;
  /// Of engine mpiio.
  MpiioMode mpiio = MpiioMode::automatic;
  /// Past the page cache (O_DIRECT), with engine uring.
  bool direct = false;
  /// Reads in flight a root, and their largest size; 0 = what suits the engine.
  unsigned depth = 0;
  std::uint64_t request_bytes = 0;
  /// Extents that lie closer than this are read as one.
  std::uint64_t gap_bytes = std::uint64_t{64} << 10;
  /// How many roots may read at once; or one of the three constants above.
  int stagger = kStaggerByStrategy;
  StaggerBy stagger_by = StaggerBy::token;
  /// Reading processes a node, or kEveryRank. 0 = 1 up to 16 ranks, 2 above; in an order that is
  /// new in every epoch only where the first file lies on a file system that is shared (or in an
  /// object store), else every rank. Where ranks hold samples for each other it is every rank.
  int roots = 0;
  /// Windows in the stage at once: 2 read ahead while one is used, 1 shows all reading as waiting.
  int buffers = 2;
  /// Memory for all buffers of a node and, up to a quarter of it, for the index of the records; 0 =
  /// 1/8 of the node's memory or control-group limit, at most 2.5 GiB. Pages are taken only when
  /// used. What ranks hold in memory for each other is part of it.
  std::uint64_t stage_bytes = 0;
  SharedMemoryKind stage = SharedMemoryKind::posix;
  /// Changes where samples come from, not the order. `memory`: rank p of P keeps the samples from
  /// floor(p * N / P) on in its part of stage_bytes, and any rank draws from there.
  Hold hold = Hold::storage;
  /// How long the file system may leave reads without an answer: 1 ms to a year. Who waits for
  /// something that may wait itself is given some seconds more; see the two functions below.
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};

  /// Waits end from the inside out, so that the error that is heard first is the cause and not a
  /// consequence: reads, then waits for what is read, then waits for other ranks.
  std::chrono::milliseconds patience_with_data() const { return timeout + std::chrono::seconds(2); }
  std::chrono::milliseconds patience_with_ranks() const {
    return timeout + std::chrono::seconds(4);
  }
};

/// What becomes of stored values.
struct DecodeOptions {
  /// How they are decoded: auto, datum, image, raw, number, bytes.
  std::string codec = "auto";
  /// Batches come decoded, see Batch::field(): threads of the loader decode while the consumer
  /// computes. Off: values as stored; Loader::decode() decodes them in the consumer's thread.
  bool decode = false;
  /// What is done to images behind their decoding, e.g.
  /// "rgb,random-resized-crop=224,flip,to-float": see forebay/transform.hpp. Random steps draw from
  /// Sample::seed(). Implies `decode`; Loader::schema() is that of the outcome.
  std::string transform;
  /// Threads that decode, of each rank; 0 = the cores of the rank, at most 8. As many, in a process
  /// that reads, decode chunks and put samples together where a format needs it.
  unsigned decode_threads = 0;
  /// Batches that are decoded before they are asked for; 0 = none. Each rank holds one more set of
  /// arrays than this (and one for each further batch that the consumer does not release). They
  /// come out of `stage_bytes`, of which they may take half: fewer are decoded ahead where more do
  /// not fit.
  unsigned decode_ahead = 2;
  /// With `decode`. Bytes that cannot be read, and pages that are damaged, fail in any case. The
  /// fields are those of the first sample that decodes (docs/decoding.md says how many are looked
  /// at); declare `schema` where that may be the odd one.
  Undecodable undecodable = Undecodable::fail;
};

/// How far a run goes, where it begins, and where its threads are.
struct RunOptions {
  /// Iterations to deliver in all; 0 = no end. A limit keeps the reader from reading ahead of it.
  /// Changes no batch: the strided order stays circular.
  std::uint64_t iterations = 0;
  /// Instead of `iterations`: whole epochs to deliver, counted from the start of the run; 0 = no
  /// end. Each of them has each sample once. In the strided order batches reach over the ends
  /// between epochs, and `end` says what the run's last batch is; in the others every epoch ends
  /// so.
  std::uint64_t epochs = 0;
  /// First iteration to deliver. resume_options() sets it, and the five below.
  std::uint64_t first_iteration = 0;
  /// Stretches with other ranks or batch sizes and the same C: what they left of the order is dealt
  /// anew, also of the window in which each stopped.
  std::vector<Segment> done;
  /// Fingerprint that the data set must have; empty = any.
  std::string fingerprint;
  /// For orders that are new in every epoch: the epoch that `done` and its last segment belong to,
  /// and what OrderOptions::identity() must be; empty = any.
  std::uint64_t first_epoch = 0;
  std::string order_identity;
  /// Taken from rank 0, where as many roots read again and --stagger is left to be found.
  KnownStagger known_stagger;
  /// Without MPI between the processes of a run (as under torchrun): the p ranks of the loader's
  /// communicator, mostly a process alone, deliver what ranks index * p and on of count * p ranks
  /// would in one MPI run. `batch` stays the global one, and state() suits both kinds of runs.
  /// Nothing is exchanged: that all use the same data set and options is up to the caller, and a
  /// failure ends its own shard alone. Orders that draw from the memory of all ranks are refused.
  /// `stage_bytes` is then of each process.
  Shard shard;
  /// The cores of the loader's threads: shared, partition, or lists; see forebay/placement.hpp.
  /// Ranks may differ. A program that also sums gradients makes one plan for both.
  std::string placement = "shared";
  /// A promise of the program, with no text form: no more than one batch is held while the next is
  /// asked for. The first window of shuffled and listed then comes in pieces, which take a buffer
  /// each, so that the first batch need not wait for the whole of it.
  bool one_at_a_time = false;
  /// Works out the plan of the first window at open, for Loader::plan().
  bool explain = false;

  /// The ranks among which the order deals samples, and the number there of `rank`, where the
  /// communicator has `ranks`. After LoaderOptions::validate().
  int order_ranks(int ranks) const { return ranks * shard.count; }
  int order_rank(int rank, int ranks) const { return shard.index * ranks + rank; }
};

/// All of them; each part of the library takes only its own. `batch` is required.
struct LoaderOptions : DataOptions, OrderOptions, ReadOptions, DecodeOptions, RunOptions {
  LoaderOptions() = default;
  /// Those parts that differ from their defaults:
  /// LoaderOptions(OrderOptions{.batch = 256}, RunOptions{.epochs = 2}).
  template <typename... Parts>
  requires(sizeof...(Parts) > 0 && (!std::is_same_v<Parts, LoaderOptions> && ...) &&
           (std::is_base_of_v<Parts, LoaderOptions> &&
            ...)) explicit LoaderOptions(Parts... parts) {
    ((static_cast<Parts&>(*this) = std::move(parts)), ...);
  }

  /// Reads "name=value,name=value"; values with commas stand in double quotes.
  /// Throws usage naming the word that is wrong and what is allowed.
  static LoaderOptions parse(std::string_view text);
  /// Sets one option by its name in the text form.
  void set(std::string_view name, std::string_view value);
  /// The text form of every option that differs from its default.
  std::string to_text() const;
  /// Throws usage when an option is out of its range, or options contradict each other or the
  /// number of ranks of the communicator.
  void validate(int ranks) const;
};

/// Name, kind of value and help of each option of the text form, for command lines: those of any
/// loader, those that tell what the files are, and those that choose and shape an order.
struct OptionInfo {
  std::string_view name;
  std::string_view value;  ///< what kind of value it takes; empty: a switch, on or off
  std::string_view help;
};
std::span<const OptionInfo> loader_option_infos();
std::span<const OptionInfo> format_option_infos();
std::span<const OptionInfo> order_option_infos();

std::string_view to_string(Hold hold);
std::string_view to_string(Strategy strategy);
std::string_view to_string(Locate locate);
std::string_view to_string(ReadEngine engine);
std::string_view to_string(MpiioMode mode);
std::string_view to_string(StaggerBy by);
std::string_view to_string(Undecodable what);

}  // namespace forebay
