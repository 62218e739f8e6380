#include "format/sample_source.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

#include "forebay/error.hpp"
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

/// Whether the fields of each row lie one behind the other, in place.
bool is_packed(const SamplePart& part) {
  const std::vector<PartField>& fields = part.fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (!fields[f].storage->in_place() || !fields[f].storage->in_file()) return false;
    if (f == 0) continue;
    const auto* before = fields[f - 1].storage->layout();
    const auto* layout = fields[f].storage->layout();
    if (before == nullptr || layout == nullptr || before->row_bytes == 0 ||
        layout->row_bytes == 0 || fields[f].file != fields[f - 1].file ||
        layout->stride != before->stride || layout->first != before->first + before->row_bytes) {
      return false;
    }
  }
  return true;
}

/// Throws corrupt when a sample would have more bytes than numbers can tell.
std::uint64_t bytes_of(const Schema& schema, const std::string& path) {
  std::uint64_t bytes = 0;
  for (const Field& field : schema.fields) {
    if (field.bytes() > UINT64_MAX / 4 - bytes) {
      throw Error(ErrorKind::corrupt, "the files claim samples of more than 2^62 bytes",
                  "check the files", {.file = path});
    }
    bytes += field.bytes();
  }
  return bytes;
}

}  // namespace

SampleSource::SampleSource(std::string path, std::string format, Schema schema, SampleFiles files,
                           std::vector<SamplePart> parts)
    : path_(std::move(path)),
      format_(std::move(format)),
      schema_(std::move(schema)),
      files_(std::move(files)),
      parts_(std::move(parts)),
      first_{0} {
  sample_bytes_ = bytes_of(schema_, path_);
  whole_ = files_.size() == 1 ? files_[0] : std::make_shared<JoinedFile>(path_, files_);
  packed_ = std::ranges::all_of(parts_, is_packed);
  for (const SamplePart& part : parts_) {
    if (part.rows > UINT64_MAX / 2 - first_.back()) {
      throw Error(ErrorKind::corrupt, "the files claim more than 2^63 samples", "check the files",
                  {.file = path_});
    }
    first_.push_back(first_.back() + part.rows);
  }
  Digest digest;
  for (const auto& file : files_) {
    at_open_.push_back(file->fingerprint());
    digest.add_ends(*file, at_open_.back().size);
  }
  digest.add(std::as_bytes(std::span(first_)));
  fingerprint_.text =
      fmt::format("{}:samples={},files={},bytes={},fields={},ends={:016x}", format_, entries(),
                  files_.size(), stored_bytes(), to_string(schema_), digest.value());
}

std::uint64_t SampleSource::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const FileFingerprint& file : at_open_) bytes += file.size;
  return bytes;
}

std::uint64_t SampleSource::offset_in_whole(const FileExtent& extent) const {
  if (files_.size() == 1) return extent.offset;
  return static_cast<const JoinedFile&>(*whole_).begin(extent.file) + extent.offset;
}

void SampleSource::check_unchanged() const {
  for (std::uint32_t file = 0; file < files_.size(); ++file) check_unchanged(file);
}

void SampleSource::check_unchanged(std::uint32_t file) const {
  // A mapping of a file that was cut faults: that it was cut is what to tell.
  if (files_[file]->fingerprint() == at_open_[file]) return files_[file]->check();
  throw Error(ErrorKind::changed, "the data set was changed while it was open",
              "start again once nothing writes to it", {.file = files_[file]->path()});
}

SamplePlan SampleSource::plan(std::span<const std::uint64_t> ids) const { return {*this, ids}; }

void SampleSource::extents(std::span<const std::uint64_t> ids, std::vector<FileExtent>& out) const {
  const auto needed = plan(ids).extents();
  out.insert(out.end(), needed.begin(), needed.end());
}

DecodeCounters SampleSource::counters() const {
  return {.chunks = chunks_.load(std::memory_order_relaxed),
          .bytes_decoded = bytes_decoded_.load(std::memory_order_relaxed)};
}

}  // namespace forebay
