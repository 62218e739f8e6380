#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"
#include "forebay/transform.hpp"
#include "loader/option_table.hpp"
#include "loader/shard.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "read/read_setup.hpp"
#include "read/strategy_table.hpp"

namespace forebay {
namespace {

constexpr Name<Locate> kLocates[] = {
    {"auto", Locate::automatic},  {"seek", Locate::seek}, {"handoff", Locate::handoff},
    {"scatter", Locate::scatter}, {"scan", Locate::scan}, {"provenance", Locate::provenance},
};
constexpr Name<ReadEngine> kEngines[] = {
    {"auto", ReadEngine::automatic}, {"mmap", ReadEngine::mmap},   {"pread", ReadEngine::pread},
    {"uring", ReadEngine::uring},    {"mpiio", ReadEngine::mpiio},
};
constexpr Name<MpiioMode> kMpiioModes[] = {
    {"auto", MpiioMode::automatic},
    {"collective", MpiioMode::collective},
    {"independent", MpiioMode::independent},
};
constexpr Name<StaggerBy> kStaggerBys[] = {
    {"none", StaggerBy::none},
    {"token", StaggerBy::token},
    {"ticket", StaggerBy::ticket},
};
constexpr Name<SharedMemoryKind> kStages[] = {
    {"posix", SharedMemoryKind::posix},
    {"mpi", SharedMemoryKind::mpi},
};
constexpr Name<Undecodable> kUndecodables[] = {
    {"fail", Undecodable::fail},
    {"skip", Undecodable::skip},
};
constexpr Name<int> kStaggers[] = {
    {"auto", kStaggerByStrategy}, {"off", kNoStagger}, {"measure", kMeasureStagger}};

constexpr int kMostStagger = 1'000'000;
constexpr unsigned kMostDepth = 4096;
constexpr unsigned kMostThreads = 256;
constexpr unsigned kMostDecodeAhead = 64;

int parse_stagger(std::string_view text) {
  for (const auto& name : kStaggers) {
    if (name.text == text) return name.value;
  }
  const auto roots = static_cast<int>(parse_count(text, "stagger", 0, kMostStagger));
  return roots == 0 ? kNoStagger : roots;
}

std::string stagger_text(int stagger) {
  const std::string_view name = name_of(stagger, kStaggers);
  return name == "?" ? std::to_string(stagger) : std::string(name);
}

constexpr int kMostRoots = 4096;

int parse_roots(std::string_view text) {
  return text == "each" ? kEveryRank : static_cast<int>(parse_count(text, "roots", 0, kMostRoots));
}

std::uint64_t parse_coalesce(std::string_view text) {
  return text == "auto" ? 0 : parse_count(text, "coalesce", 1);
}

constexpr int kMostBuffers = 1024;
// Deadlines are points of a clock that counts nanoseconds: this keeps them far from its end.
constexpr std::chrono::hours kLongestTimeout{24 * 365};

template <typename Number>
void require_range(std::string_view option, bool holds, Number value) {
  if (holds) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}", option, value),
              fmt::format("roots go up to {}, buffers from 1 to {}, timeouts from 1 ms to a year",
                          kMostRoots, kMostBuffers));
}

std::string checked_placement(std::string_view text) {
  require_placement_policy(text);
  return std::string(text);
}

using O = LoaderOptions;

const std::vector<OptionEntry> kEntries = {
    entry({"batch", "N", "samples in a global batch, over all ranks"}, &O::batch, 1),
    {{"coalesce", "C",
      "iterations for which a rank has one stretch of the data (1: Caffe's order), or auto: by "
      "data set, batch and ranks"},
     [](O& o, std::string_view t) { o.coalesce = parse_coalesce(t); },
     [](const O& o) { return o.coalesce == 0 ? std::string("auto") : std::to_string(o.coalesce); }},
    entry({"iterations", "T", "iterations to deliver (default 0: no end)"}, &O::iterations),
    entry({"epochs", "E",
           "epochs to deliver, each sample once in each; or iterations (default 0: no end)"},
          &O::epochs),
    {{"shard", "K/N",
      "this process, not connected to the others, is part K (from 0) of N (default 0/1)"},
     [](O& o, std::string_view t) { o.shard = parse_shard(t); },
     [](const O& o) { return to_string(o.shard); }},
    {{"strategy", "NAME",
      "auto, lmdb (baseline), lmm, lmm-dm, lmm-dio, lmm-dio-prov, lmm-dio-prov-coal, "
      "lmm-dio-prov-coal-stag"},
     [](O& o, std::string_view t) { o.strategy = parse_strategy(t); },
     [](const O& o) { return std::string(to_string(o.strategy)); }},
    entry(
        {"locate", "NAME", "how records are found: auto, seek, handoff, scatter, scan, provenance"},
        &O::locate, kLocates),
    entry({"engine", "NAME", "how roots read: auto, mmap, pread, uring, mpiio"}, &O::engine,
          kEngines),
    entry({"mpiio", "NAME",
           "with engine mpiio: auto, collective (all roots in one call), independent"},
          &O::mpiio, kMpiioModes),
    entry({"direct", "on|off", "read past the page cache, with engine uring (default off)"},
          &O::direct, kSwitch),
    entry({"depth", "N", "reads in flight a root (default 0: what suits the engine)"}, &O::depth, 0,
          kMostDepth),
    size_entry({"request-bytes", "SIZE", "largest single read (default 0: what suits the engine)"},
               &O::request_bytes),
    size_entry({"gap-bytes", "SIZE", "extents closer than this are read as one (default 64KiB)"},
               &O::gap_bytes),
    {{"stagger", "N", "roots that read at once: a number, off, measure, auto (by strategy)"},
     [](O& o, std::string_view t) { o.stagger = parse_stagger(t); },
     [](const O& o) { return stagger_text(o.stagger); }},
    entry({"stagger-by", "NAME", "how roots take turns: token (the paper's order), ticket"},
          &O::stagger_by, kStaggerBys),
    {{"roots", "N",
      "reading ranks a node, or each: every rank for itself (default 0: 1 up to 16 ranks, 2 above; "
      "in orders that are new in every epoch only on shared file systems, else each)"},
     [](O& o, std::string_view t) { o.roots = parse_roots(t); },
     [](const O& o) { return o.roots == kEveryRank ? "each" : std::to_string(o.roots); }},
    entry({"buffers", "N", "windows in the stage at once (default 2; 1 hides no reading)"},
          &O::buffers, 1, kMostBuffers),
    size_entry(
        {"stage-bytes", "SIZE",
         "memory for all buffers of a node (default 0: 1/8 of its memory, at most 2.5GiB, and "
         "no more than the data set can use)"},
        &O::stage_bytes),
    entry({"stage", "KIND", "shared memory of the stage: posix, mpi"}, &O::stage, kStages),
    entry({"codec", "NAME",
           "how values are decoded: auto, datum, image (image:rgb ...), raw, number, bytes, a "
           "type (f32), NAME:TYPE[SHAPE], or PART=CODEC,..."},
          &O::codec),
    entry({"schema", "FIELDS", "fields of codec raw, e.g. image:u8[3x32x32]"}, &O::schema),
    entry({"decode", "on|off", "batches come decoded, by threads of the loader (default off)"},
          &O::decode, kSwitch),
    {{"transform", "STEPS",
      "what is done to images, e.g. rgb,random-resized-crop=224,flip,to-float (see "
      "docs/decoding.md); implies decode"},
     [](O& o, std::string_view t) {
       o.transform = Transform::parse(t).to_text();
       if (!o.transform.empty()) o.decode = true;
     },
     [](const O& o) { return o.transform; }},
    entry({"decode-threads", "N", "threads that decode, of a rank (default 0: its cores)"},
          &O::decode_threads, 0, kMostThreads),
    entry({"decode-ahead", "N", "batches decoded before they are asked for (default 2)"},
          &O::decode_ahead, 0, kMostDecodeAhead),
    entry({"placement", "POLICY",
           "cores of the loader's threads: shared (default), partition, cores:LIST, or "
           "lists as in progress:0/io:1/decode:2-3"},
          &O::placement, checked_placement),
    entry({"undecodable", "NAME",
           "samples that do not decode: fail (default), or skip (shorter batches), with "
           "--decode"},
          &O::undecodable, kUndecodables),
    {{"timeout", "TIME", "longest wait for a read, data or another rank (default 10min)"},
     [](O& o, std::string_view t) {
       o.timeout = std::chrono::ceil<std::chrono::milliseconds>(parse_duration(t, "timeout"));
     },
     [](const O& o) { return exact_duration(o.timeout); }},
};

const std::vector<OptionEntry>& all_entries() {
  static const std::vector<OptionEntry> entries = [] {
    std::vector<OptionEntry> all = kEntries;
    for (const auto& more : {format_entries(), order_entries()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return entries;
}

// What depends on the data set is checked by OrderOptions::validate(), at open.
void require_fitting_order(const LoaderOptions& options) {
  const LoaderOptions plain;
  const bool strided = options.order == OrderName::strided;
  if (strided && (options.group != plain.group || options.keep != plain.keep ||
                  options.reuse != plain.reuse || options.ids || !options.list.empty())) {
    throw Error(ErrorKind::usage, "the strided order has no group, keep, list or reuse",
                "choose another one with --order");
  }
  if (strided && options.hold != plain.hold) {
    throw Error(ErrorKind::usage, "the strided order does not hold data in memory",
                "choose another one with --order");
  }
  if (strided && options.end && options.epochs == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("the strided order goes round and round: there is no end to {}",
                            to_string(*options.end)),
                "limit the run with --epochs, or leave --end out");
  }
  if (!strided && options.coalesce > 1) {
    throw Error(ErrorKind::usage,
                fmt::format("iterations of order {} are not coalesced", to_string(options.order)),
                "leave --coalesce out; --window and --group say what is read together");
  }
  if (order_row(options.order).takes_ids && !options.ids && options.list.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("order {} needs a list of samples", to_string(options.order)),
                "give --list a file");
  }
}

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
  for (const OptionEntry& entry : all_entries()) {
    if (entry.info.name == name) return entry.set(*this, value);
    known += (known.empty() ? "" : ", ") + std::string(entry.info.name);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no option '{}'", name),
              "choose one of: " + known);
}

std::string LoaderOptions::to_text() const {
  const LoaderOptions defaults;
  std::string text;
  for (const OptionEntry& entry : all_entries()) {
    std::string value = entry.get(*this);
    if (value == entry.get(defaults)) continue;
    if (value.find(',') != std::string::npos) value = '"' + value + '"';
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", entry.info.name, value);
  }
  return text;
}

void LoaderOptions::validate(int connected) const {
  if (undecodable == Undecodable::skip && !decode) {
    throw Error(ErrorKind::usage, "samples are skipped by who decodes them: the loader does not",
                "give --decode as well");
  }
  require_range("buffers", buffers >= 1 && buffers <= kMostBuffers, buffers);
  require_range("roots", roots >= kEveryRank && roots <= kMostRoots, roots);
  if (roots == kEveryRank && asks_for_turns(*this)) {
    throw Error(ErrorKind::usage,
                "it is roots that take turns, and there are none where each rank reads",
                "leave out --stagger, or --roots each");
  }
  require_range("timeout", timeout.count() >= 1 && timeout <= kLongestTimeout, timeout.count());
  require_fitting_shard(*this, connected);
  require_sharing(order_ranks(connected), batch);
  require_fitting_order(*this);
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

std::vector<OptionInfo> infos_of(std::span<const OptionEntry> entries) {
  std::vector<OptionInfo> infos;
  for (const OptionEntry& entry : entries) infos.push_back(entry.info);
  return infos;
}

std::span<const OptionInfo> loader_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

std::string_view to_string(Locate locate) { return name_of(locate, kLocates); }
std::string_view to_string(ReadEngine engine) { return name_of(engine, kEngines); }
std::string_view to_string(MpiioMode mode) { return name_of(mode, kMpiioModes); }
std::string_view to_string(StaggerBy by) { return name_of(by, kStaggerBys); }
std::string_view to_string(Undecodable what) { return name_of(what, kUndecodables); }

}  // namespace forebay
