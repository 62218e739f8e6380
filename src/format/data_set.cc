#include "format/data_set.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "format/sample_reader.hpp"
#include "storage/file_error.hpp"
#include "storage/joined_file.hpp"

namespace forebay {
namespace {

// Of each end of a file. Headers lie at the start, and what was written last mostly at the end.
constexpr std::uint64_t kEndBytes = 4096;

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class Digest {
 public:
  Digest() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  void add_ends(const File& file, std::uint64_t size) {
    std::array<std::byte, kEndBytes> bytes;
    const auto head = std::span(bytes).first(std::min(size, kEndBytes));
    file.read(0, head);
    add(head);
    if (size <= kEndBytes) return;
    file.read(size - kEndBytes, bytes);
    add(bytes);
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

}  // namespace

void join(std::vector<FileExtent>& extents) {
  const auto place = [](const FileExtent& e) { return std::tuple(e.file, e.offset); };
  if (!std::ranges::is_sorted(extents, {}, place)) std::ranges::sort(extents, {}, place);
  std::size_t kept = 0;
  for (const FileExtent& extent : extents) {
    FileExtent* last = kept == 0 ? nullptr : &extents[kept - 1];
    if (last != nullptr && last->file == extent.file &&
        extent.offset <= last->offset + last->length) {
      last->length = std::max(last->length, extent.offset + extent.length - last->offset);
    } else {
      extents[kept++] = extent;
    }
  }
  extents.resize(kept);
}

void Plan::decode_all(const FileBytes& bytes, std::span<std::byte> scratch) const {
  DecodeSpace space;
  for (std::size_t unit = 0; unit < units(); ++unit) decode(unit, bytes, scratch, space);
}

void Plan::unpack(std::size_t parts, const FileBytes& bytes, std::span<const std::byte> scratch,
                  const FoundSink& sink) const {
  std::vector<std::span<const std::byte>> found(parts);
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t p = 0; p < parts; ++p) found[p] = part(i, p, bytes, scratch);
    sink({.position = i, .key = key(i, bytes), .parts = found});
  }
}

DataSet::DataSet(std::string path, std::string format, DataFiles files)
    : facts_{.path = std::move(path), .format = std::move(format)}, files_(std::move(files)) {
  whole_ = files_.size() == 1 ? files_[0] : std::make_shared<JoinedFile>(facts_.path, files_);
  for (const auto& file : files_) seen_.push_back(file->fingerprint());
}

std::uint64_t DataSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const FileFingerprint& file : seen_) bytes += file.size;
  return bytes;
}

std::uint64_t DataSet::offset_in_whole(const FileExtent& extent) const {
  if (files_.size() == 1) return extent.offset;
  return static_cast<const JoinedFile&>(*whole_).begin(extent.file) + extent.offset;
}

void DataSet::check_unchanged() const {
  for (std::uint32_t file = 0; file < files_.size(); ++file) check_unchanged(file);
}

void DataSet::check_unchanged(std::uint32_t file) const {
  const FileFingerprint now = files_[file]->fingerprint();
  const std::lock_guard lock(seen_mutex_);
  const std::string sign = sign_of_writing(*files_[file], seen_[file], now);
  // A mapping of a file that was cut faults: that it was cut is what to tell.
  if (!sign.empty()) throw rewritten_error(files_[file]->path(), sign);
  seen_[file].changed_ns = now.changed_ns;
  seen_[file].rights = now.rights;
  files_[file]->check();
}

void DataSet::read_one(std::uint64_t id, const RecordSink& sink) const {
  SampleReader reader(*this, {});
  reader.read(std::span(&id, 1));
  sink({.sample = id, .key = reader.key(0), .value = reader.value(0)});
}

std::string DataSet::describe() const {
  std::string text = facts_.format;
  if (files_.size() > 1) text += fmt::format(", {} files", files_.size());
  if (facts_.together > 1) text += fmt::format(", decoded {} samples at a time", facts_.together);
  return text;
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string DataSet::info() const {
  using Json = nlohmann::ordered_json;
  Json files = Json::array();
  for (const auto& file : files_) files.push_back({{"path", file->path()}});
  Json info{{"path", facts_.path}, {"format", facts_.format}, {"entries", facts_.entries}};
  if (facts_.schema.fields.empty()) {
    info["parts"] = facts_.parts;
  } else {
    info["schema"] = to_string(facts_.schema);
  }
  if (!facts_.labels.empty()) info["labels"] = facts_.labels;
  if (!facts_.notes.empty()) info["notes"] = facts_.notes;
  info["sample_bytes"] = facts_.sample_bytes;
  info["files"] = files;
  info["stored_bytes"] = stored_bytes();
  info["fingerprint"] = facts_.fingerprint;
  return json_line(info);
}

void DataSet::require_runs(std::span<const IdRun> runs) const {
  for (const IdRun& run : runs) {
    if (run.first < facts_.entries && run.count <= facts_.entries - run.first) continue;
    if (run.count == 0) continue;
    throw Error(ErrorKind::usage,
                fmt::format("there is no sample {}: the data set has {}",
                            std::max(run.first, facts_.entries), facts_.entries),
                "name samples from 0 on", {.file = facts_.path});
  }
}

std::vector<std::uint64_t> DataSet::ids_of(std::span<const IdRun> runs) const {
  require_runs(runs);
  std::vector<std::uint64_t> ids;
  for (const IdRun& run : runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) ids.push_back(run.first + i);
  }
  return ids;
}

std::string DataSet::digest_of(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string ends_digest(std::span<const std::shared_ptr<const File>> files,
                        const std::function<void(const ByteSink&)>& more) {
  Digest digest;
  for (const auto& file : files) digest.add_ends(*file, file->size());
  more([&](std::span<const std::byte> bytes) { digest.add(bytes); });
  return fmt::format("{:016x}", digest.value());
}

std::span<const std::byte> value_in_place(const DataSetFacts& facts,
                                          std::span<const std::span<const std::byte>> parts) {
  return facts.schema.fields.empty() ? parts[0] : std::span(parts[0].data(), facts.sample_bytes);
}

std::uint64_t value_bytes(const DataSetFacts& facts,
                          std::span<const std::span<const std::byte>> parts) {
  if (!facts.schema.fields.empty()) return facts.sample_bytes;
  return facts.parts.empty() ? parts[0].size() : packed_parts_bytes(parts);
}

void write_value(const DataSetFacts& facts, std::span<const std::span<const std::byte>> parts,
                 std::span<std::byte> out) {
  if (!facts.parts.empty()) return pack_parts(parts, out);
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(out.data(), part.data(), part.size());
    out = out.subspan(part.size());
  }
}

std::uint64_t count_of(std::span<const IdRun> runs) {
  std::uint64_t count = 0;
  for (const IdRun& run : runs) count += run.count;
  return count;
}

std::vector<IdRun> runs_of(std::span<const std::uint64_t> ids) {
  std::vector<IdRun> runs;
  for (const std::uint64_t id : ids) {
    if (!runs.empty() && id == runs.back().first + runs.back().count) {
      ++runs.back().count;
    } else {
      runs.push_back({id, 1});
    }
  }
  return runs;
}

}  // namespace forebay
