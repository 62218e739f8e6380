#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"
#include "forebay/transform.hpp"
#include "loader/option_table.hpp"
#include "loader/shard.hpp"
#include "order/order_limits.hpp"

namespace forebay {
namespace {

constexpr Name<Strategy> kStrategies[] = {
    {"auto", Strategy::automatic},
    {"lmdb", Strategy::lmdb},
    {"lmm", Strategy::lmm},
    {"lmm-dm", Strategy::lmm_dm},
    {"lmm-dio", Strategy::lmm_dio},
    {"lmm-dio-prov", Strategy::lmm_dio_prov},
    {"lmm-dio-prov-coal", Strategy::lmm_dio_prov_coal},
    {"lmm-dio-prov-coal-stag", Strategy::lmm_dio_prov_coal_stag},
};
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
constexpr Name<bool> kSwitch[] = {{"off", false}, {"on", true}};
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

std::uint64_t parse_coalesce(std::string_view text) {
  return text == "auto" ? 0 : parse_count(text, "coalesce", 1);
}

constexpr int kMostRoots = 4096;
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

// The lambdas keep reading and writing of one option beside each other.
const std::array kEntries = {
    OptionEntry{{"batch", "N", "samples in a global batch, over all ranks"},
                [](LoaderOptions& o, std::string_view t) { o.batch = parse_count(t, "batch", 1); },
                [](const LoaderOptions& o) { return std::to_string(o.batch); }},
    OptionEntry{{"coalesce", "C", "iterations that are read together (1: Caffe's order), or auto"},
                [](LoaderOptions& o, std::string_view t) { o.coalesce = parse_coalesce(t); },
                [](const LoaderOptions& o) {
                  return o.coalesce == 0 ? std::string("auto") : std::to_string(o.coalesce);
                }},
    OptionEntry{
        {"iterations", "T", "iterations to deliver (default 0: no end)"},
        [](LoaderOptions& o, std::string_view t) { o.iterations = parse_count(t, "iterations"); },
        [](const LoaderOptions& o) { return std::to_string(o.iterations); }},
    OptionEntry{{"epochs", "E",
                 "epochs to deliver, each sample once in each; or iterations (default 0: no end)"},
                [](LoaderOptions& o, std::string_view t) { o.epochs = parse_count(t, "epochs"); },
                [](const LoaderOptions& o) { return std::to_string(o.epochs); }},
    OptionEntry{
        {"shard", "K/N",
         "this process, not connected to the others, is part K (from 0) of N (default 0/1)"},
        [](LoaderOptions& o, std::string_view t) { o.shard = parse_shard(t); },
        [](const LoaderOptions& o) { return to_string(o.shard); }},
    OptionEntry{{"strategy", "NAME",
                 "auto, lmdb (baseline), lmm, lmm-dm, lmm-dio, lmm-dio-prov, lmm-dio-prov-coal, "
                 "lmm-dio-prov-coal-stag"},
                [](LoaderOptions& o, std::string_view t) {
                  o.strategy = parse_name("strategy", t, kStrategies);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.strategy)); }},
    OptionEntry{
        {"locate", "NAME", "how records are found: auto, seek, handoff, scatter, scan, provenance"},
        [](LoaderOptions& o, std::string_view t) { o.locate = parse_name("locate", t, kLocates); },
        [](const LoaderOptions& o) { return std::string(to_string(o.locate)); }},
    OptionEntry{
        {"engine", "NAME", "how roots read: auto, mmap, pread, uring, mpiio"},
        [](LoaderOptions& o, std::string_view t) { o.engine = parse_name("engine", t, kEngines); },
        [](const LoaderOptions& o) { return std::string(to_string(o.engine)); }},
    OptionEntry{
        {"mpiio", "NAME",
         "with engine mpiio: auto, collective (all roots in one call), "
         "independent"},
        [](LoaderOptions& o, std::string_view t) { o.mpiio = parse_name("mpiio", t, kMpiioModes); },
        [](const LoaderOptions& o) { return std::string(to_string(o.mpiio)); }},
    OptionEntry{
        {"direct", "on|off", "read past the page cache, with engine uring (default off)"},
        [](LoaderOptions& o, std::string_view t) { o.direct = parse_name("direct", t, kSwitch); },
        [](const LoaderOptions& o) { return std::string(name_of(o.direct, kSwitch)); }},
    OptionEntry{{"depth", "N", "reads in flight a root (default 0: what suits the engine)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.depth = static_cast<unsigned>(parse_count(t, "depth", 0, kMostDepth));
                },
                [](const LoaderOptions& o) { return std::to_string(o.depth); }},
    OptionEntry{{"request-bytes", "SIZE", "largest single read (default 0: what suits the engine)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.request_bytes = parse_bytes(t, "request-bytes");
                },
                [](const LoaderOptions& o) { return exact_bytes(o.request_bytes); }},
    OptionEntry{
        {"gap-bytes", "SIZE", "extents closer than this are read as one (default 64KiB)"},
        [](LoaderOptions& o, std::string_view t) { o.gap_bytes = parse_bytes(t, "gap-bytes"); },
        [](const LoaderOptions& o) { return exact_bytes(o.gap_bytes); }},
    OptionEntry{
        {"stagger", "N", "roots that read at once: a number, off, measure, auto (by strategy)"},
        [](LoaderOptions& o, std::string_view t) { o.stagger = parse_stagger(t); },
        [](const LoaderOptions& o) { return stagger_text(o.stagger); }},
    OptionEntry{{"stagger-by", "NAME", "how roots take turns: token (the paper's order), ticket"},
                [](LoaderOptions& o, std::string_view t) {
                  o.stagger_by = parse_name("stagger-by", t, kStaggerBys);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.stagger_by)); }},
    OptionEntry{{"roots", "N", "reading ranks a node (default 0: 1 up to 16 ranks, 2 above)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.roots = static_cast<int>(parse_count(t, "roots", 0, kMostRoots));
                },
                [](const LoaderOptions& o) { return std::to_string(o.roots); }},
    OptionEntry{{"buffers", "N", "windows in the stage at once (default 2; 1 hides no reading)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.buffers = static_cast<int>(parse_count(t, "buffers", 1, kMostBuffers));
                },
                [](const LoaderOptions& o) { return std::to_string(o.buffers); }},
    OptionEntry{
        {"stage-bytes", "SIZE",
         "memory for all buffers of a node (default 0: 1/8 of its memory, at most 2.5GiB)"},
        [](LoaderOptions& o, std::string_view t) { o.stage_bytes = parse_bytes(t, "stage-bytes"); },
        [](const LoaderOptions& o) { return exact_bytes(o.stage_bytes); }},
    OptionEntry{
        {"stage", "KIND", "shared memory of the stage: posix, mpi"},
        [](LoaderOptions& o, std::string_view t) { o.stage = parse_name("stage", t, kStages); },
        [](const LoaderOptions& o) { return std::string(name_of(o.stage, kStages)); }},
    OptionEntry{{"codec", "NAME", "how values are decoded: auto, datum, image, raw, number, bytes"},
                [](LoaderOptions& o, std::string_view t) { o.codec = t; },
                [](const LoaderOptions& o) { return o.codec; }},
    OptionEntry{{"schema", "FIELDS", "fields of codec raw, e.g. image:u8[3x32x32]"},
                [](LoaderOptions& o, std::string_view t) { o.schema = t; },
                [](const LoaderOptions& o) { return o.schema; }},
    OptionEntry{
        {"decode", "on|off", "batches come decoded, by threads of the loader (default off)"},
        [](LoaderOptions& o, std::string_view t) { o.decode = parse_name("decode", t, kSwitch); },
        [](const LoaderOptions& o) { return std::string(name_of(o.decode, kSwitch)); }},
    OptionEntry{{"transform", "STEPS",
                 "what is done to images, e.g. rgb,random-resized-crop=224,flip,to-float (see "
                 "docs/decoding.md); implies decode"},
                [](LoaderOptions& o, std::string_view t) {
                  o.transform = Transform::parse(t).to_text();
                  if (!o.transform.empty()) o.decode = true;
                },
                [](const LoaderOptions& o) { return o.transform; }},
    OptionEntry{{"decode-threads", "N", "threads that decode, of a rank (default 0: its cores)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.decode_threads =
                      static_cast<unsigned>(parse_count(t, "decode-threads", 0, kMostThreads));
                },
                [](const LoaderOptions& o) { return std::to_string(o.decode_threads); }},
    OptionEntry{{"decode-ahead", "N", "batches decoded before they are asked for (default 2)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.decode_ahead =
                      static_cast<unsigned>(parse_count(t, "decode-ahead", 0, kMostDecodeAhead));
                },
                [](const LoaderOptions& o) { return std::to_string(o.decode_ahead); }},
    OptionEntry{{"placement", "POLICY",
                 "cores of the loader's threads: shared (default), partition, cores:LIST, or lists "
                 "as in progress:0/io:1/decode:2-3"},
                [](LoaderOptions& o, std::string_view t) { o.placement = checked_placement(t); },
                [](const LoaderOptions& o) { return o.placement; }},
    OptionEntry{{"undecodable", "NAME",
                 "samples that do not decode: fail (default), or skip (shorter batches), with "
                 "--decode"},
                [](LoaderOptions& o, std::string_view t) {
                  o.undecodable = parse_name("undecodable", t, kUndecodables);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.undecodable)); }},
    OptionEntry{{"timeout", "TIME", "longest wait for data or another rank (default 10min)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.timeout =
                      std::chrono::ceil<std::chrono::milliseconds>(parse_duration(t, "timeout"));
                },
                [](const LoaderOptions& o) { return exact_duration(o.timeout); }},
};

std::vector<OptionEntry> all_entries() {
  std::vector<OptionEntry> all(kEntries.begin(), kEntries.end());
  for (const auto& more : {format_entries(), order_entries()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
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
  if (options.order == OrderName::listed && !options.ids && options.list.empty()) {
    throw Error(ErrorKind::usage, "order listed needs a list of samples", "give --list a file");
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
  require_range("roots", roots >= 0 && roots <= kMostRoots, roots);
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

std::span<const OptionInfo> loader_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

std::string_view to_string(Strategy strategy) { return name_of(strategy, kStrategies); }
std::string_view to_string(Locate locate) { return name_of(locate, kLocates); }
std::string_view to_string(ReadEngine engine) { return name_of(engine, kEngines); }
std::string_view to_string(MpiioMode mode) { return name_of(mode, kMpiioModes); }
std::string_view to_string(StaggerBy by) { return name_of(by, kStaggerBys); }
std::string_view to_string(Undecodable what) { return name_of(what, kUndecodables); }

}  // namespace forebay
