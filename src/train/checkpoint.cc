#include "train/checkpoint.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/atomic_file.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "arrays are stored as they lie in memory");

constexpr std::string_view kMagic = "FOREBAY-TRAIN-2\n";
constexpr std::string_view kOldMagic = "FOREBAY-TRAIN-1\n";
constexpr std::string_view kSuffix = ".checkpoint";
constexpr std::uint64_t kPrefix = 24;
constexpr std::uint64_t kLargestHeader = std::uint64_t{1} << 20;
// Far above any network, and far below where sizes in bytes would wrap.
constexpr std::uint64_t kMostParameters = std::uint64_t{1} << 40;

constexpr std::uint64_t kMostGrowth = std::uint64_t{1} << 20;

constexpr const char* kRemedy =
    "remove the file, so that --resume takes the checkpoint before it, or start without --resume";

/// XXH3-64 over pieces.
class Hash {
 public:
  Hash() { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

[[noreturn]] void throw_corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::corrupt, what, kRemedy, {.file = path});
}

struct Layout {
  std::uint64_t header_size = 0;
  CheckpointHeader header;
};

// Signed or fractional numbers must not turn into huge unsigned ones.
std::uint64_t count_of(const nlohmann::json& value, const char* name) {
  if (!value.is_number_unsigned()) {
    throw Error(ErrorKind::corrupt, fmt::format("'{}' in its header is not a count", name),
                kRemedy);
  }
  return value.get<std::uint64_t>();
}

nlohmann::json to_json_object(const GrowthState& growth) {
  nlohmann::json json{
      {"factor", growth.factor}, {"grown_at", growth.grown_at}, {"tested_at", growth.tested_at}};
  if (growth.accuracy) json["accuracy"] = *growth.accuracy;
  return json;
}

// Checkpoints of earlier versions have none: their batches did not grow.
GrowthState growth_of(const nlohmann::json& header) {
  GrowthState growth;
  if (!header.contains("growth")) return growth;
  const nlohmann::json& json = header.at("growth");
  growth.factor = count_of(json.at("factor"), "factor");
  growth.grown_at = count_of(json.at("grown_at"), "grown_at");
  growth.tested_at = count_of(json.at("tested_at"), "tested_at");
  if (json.contains("accuracy")) growth.accuracy = json.at("accuracy").get<double>();
  if (growth.factor == 0 || growth.factor > kMostGrowth) {
    throw Error(ErrorKind::corrupt,
                fmt::format("its header says that the batch has grown {} times", growth.factor),
                kRemedy);
  }
  return growth;
}

std::string name_of(std::uint64_t iteration) { return fmt::format("{:012}{}", iteration, kSuffix); }

/// Of the files in `directory`, those that end in `suffix`.
std::vector<std::string> names_in(const std::string& directory, std::string_view suffix,
                                  std::error_code& failed) {
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(suffix)) names.push_back(std::move(name));
  }
  return names;
}

Layout read_layout(const File& file) {
  const std::uint64_t size = file.size();
  std::array<std::byte, kPrefix> prefix{};
  if (size < kPrefix) throw_corrupt(file.path(), "too short to be a checkpoint");
  file.read(0, prefix);
  if (std::memcmp(prefix.data(), kOldMagic.data(), kOldMagic.size()) == 0) {
    throw Error(ErrorKind::unsupported, "a checkpoint of version 1, which is read no more",
                "finish that run with the Forebay that began it, or start without --resume",
                {.file = file.path()});
  }
  if (std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
    throw_corrupt(file.path(), "not a checkpoint of this version of Forebay");
  }
  Layout layout;
  std::memcpy(&layout.header_size, prefix.data() + kMagic.size(), sizeof layout.header_size);
  if (layout.header_size > std::min(kLargestHeader, size - kPrefix)) {
    throw_corrupt(file.path(), fmt::format("a header of {} bytes does not fit a file of {} bytes",
                                           layout.header_size, size));
  }
  std::string text(layout.header_size, '\0');
  file.read(kPrefix, std::as_writable_bytes(std::span(text)));
  try {
    layout.header = parse_checkpoint_header(text);
  } catch (const Error& error) {
    throw error.within({.file = file.path()});
  }
  const std::uint64_t floats =
      layout.header.parameters + layout.header.statistics + layout.header.solver_state;
  const std::uint64_t expected = kPrefix + layout.header_size + 4 * floats + 8;
  if (size != expected) {
    throw_corrupt(file.path(), fmt::format("{} bytes long where its header asks for {}: it was cut "
                                           "or damaged",
                                           size, expected));
  }
  return layout;
}

}  // namespace

std::string to_text(const CheckpointHeader& header) {
  return nlohmann::json{{"net", header.net},
                        {"input", header.input},
                        {"outputs", header.outputs},
                        {"solver", header.solver},
                        {"parameters", header.parameters},
                        {"statistics", header.statistics},
                        {"solver_state", header.solver_state},
                        {"seed", header.seed},
                        {"iteration", header.iteration},
                        {"batches", header.batches},
                        {"epoch", header.epoch},
                        {"loss_sum", header.loss_sum},
                        {"loss_count", header.loss_count},
                        {"growth", to_json_object(header.growth)},
                        {"train_state", header.train_state},
                        {"test_state", header.test_state}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

CheckpointHeader parse_checkpoint_header(const std::string& text) {
  CheckpointHeader header;
  try {
    const auto json = nlohmann::json::parse(text);
    const auto count = [&json](const char* name) { return count_of(json.at(name), name); };
    Shape input;
    for (const auto& side : json.at("input")) input.push_back(count_of(side, "input"));
    header = {.net = json.at("net").get<std::string>(),
              .input = std::move(input),
              .outputs = count("outputs"),
              .solver = json.at("solver").get<std::string>(),
              .parameters = count("parameters"),
              .statistics = count("statistics"),
              .solver_state = count("solver_state"),
              .seed = count("seed"),
              .iteration = count("iteration"),
              // Once, every iteration was one batch.
              .batches = count(json.contains("batches") ? "batches" : "iteration"),
              .epoch = count("epoch"),
              .loss_sum = json.at("loss_sum").get<double>(),
              .loss_count = count("loss_count"),
              .growth = growth_of(json),
              .train_state = json.at("train_state").get<std::string>(),
              .test_state = json.at("test_state").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::corrupt, "its header is not the JSON of a checkpoint", kRemedy);
  }
  if (std::max({header.parameters, header.statistics, header.solver_state}) > kMostParameters) {
    throw Error(ErrorKind::corrupt,
                fmt::format("its header names {} parameters", header.parameters), kRemedy);
  }
  return header;
}

std::string write_checkpoint(const std::string& directory, const CheckpointHeader& header,
                             const TrainingState& state) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) {
    throw Error(ErrorKind::io, "cannot make the directory: " + failed.message(),
                "choose another --checkpoint directory", {.file = directory});
  }
  std::string path = (fs::path(directory) / name_of(header.iteration)).string();
  const std::string text = to_text(header);
  const std::uint64_t text_size = text.size();
  AtomicFile file(path);
  Hash hash;
  for (const std::span<const std::byte> piece :
       {std::as_bytes(std::span(kMagic)), std::as_bytes(std::span(&text_size, 1)),
        std::as_bytes(std::span(text)), std::as_bytes(std::span<const float>(state.parameters)),
        std::as_bytes(std::span<const float>(state.statistics)),
        std::as_bytes(std::span<const float>(state.solver))}) {
    hash.add(piece);
    file.write(piece);
  }
  const std::uint64_t digest = hash.value();
  file.write(std::as_bytes(std::span(&digest, 1)));
  file.commit();
  return path;
}

std::size_t thin_checkpoints(const std::string& directory, std::uint64_t iteration,
                             std::uint64_t keep) {
  std::error_code failed;
  const std::string last = name_of(iteration);
  std::vector<std::string> names = names_in(directory, kSuffix, failed);
  std::erase_if(names, [&](const std::string& name) {
    const bool ours = name.size() == last.size() &&
                      name.find_first_not_of("0123456789") == name.size() - kSuffix.size();
    return !ours || name > last;
  });
  if (names.size() <= keep) return 0;
  std::ranges::sort(names);
  names.resize(names.size() - keep);
  return static_cast<std::size_t>(std::ranges::count_if(names, [&](const std::string& name) {
    return fs::remove(fs::path(directory) / name, failed);
  }));
}

void remove_unfinished_checkpoints(const std::string& directory) {
  constexpr std::chrono::hours kAtWork{1};
  std::error_code failed;
  for (const std::string& name : names_in(directory, ".part", failed)) {
    const fs::path path = fs::path(directory) / name;
    const auto written = fs::last_write_time(path, failed);
    const bool at_work = failed || fs::file_time_type::clock::now() - written < kAtWork;
    if (name.find(kSuffix) == std::string::npos || at_work) continue;
    fs::remove(path, failed);
  }
}

std::string latest_checkpoint(const std::string& directory) {
  std::error_code failed;
  std::string latest;
  // The iteration is zero-padded, so the order of names is that of iterations.
  for (const std::string& name : names_in(directory, kSuffix, failed)) {
    latest = std::max(latest, name);
  }
  if (failed || latest.empty()) {
    throw Error(ErrorKind::not_found,
                failed ? "cannot list checkpoints: " + failed.message() : "holds no checkpoint",
                "start without --resume, or name the --checkpoint directory of the earlier run",
                {.file = directory});
  }
  return (fs::path(directory) / latest).string();
}

CheckpointHeader read_checkpoint_header(const std::string& path) {
  return read_layout(*open_file(path, Engine::pread)).header;
}

void read_checkpoint(const std::string& path, const TrainingState& state) {
  const auto file = open_file(path, Engine::pread);
  const Layout layout = read_layout(*file);
  if (state.parameters.size() != layout.header.parameters ||
      state.statistics.size() != layout.header.statistics ||
      state.solver.size() != layout.header.solver_state) {
    throw_corrupt(
        path, fmt::format("holds {} parameters, {} statistics and {} numbers of the solver where "
                          "{} has {}, {} and {}",
                          layout.header.parameters, layout.header.statistics,
                          layout.header.solver_state, layout.header.net, state.parameters.size(),
                          state.statistics.size(), state.solver.size()));
  }
  Hash hash;
  std::vector<std::byte> head(kPrefix + layout.header_size);
  file->read(0, head);
  hash.add(head);
  std::uint64_t offset = head.size();
  for (const std::span<float> array : {state.parameters, state.statistics, state.solver}) {
    const auto bytes = std::as_writable_bytes(array);
    file->read(offset, bytes);
    hash.add(bytes);
    offset += bytes.size();
  }
  std::uint64_t digest = 0;
  file->read(offset, std::as_writable_bytes(std::span(&digest, 1)));
  if (digest != hash.value()) throw_corrupt(path, "its hash does not match: it was damaged");
}

}  // namespace forebay
