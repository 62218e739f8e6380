// Files with fields behind Samples: a sample's fields one behind the other.
#include <algorithm>

#include "format/open_samples.hpp"
#include "format/sample_reader.hpp"
#include "read/private_memory.hpp"
#include "read/sample_set_access.hpp"
#include "read/samples/sample_store.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

// Read along rather than asked for apart.
constexpr std::uint64_t kGapBytes = 4096;

class FieldStore final : public SampleStore {
 public:
  FieldStore(std::unique_ptr<SampleSource> source, bool as_bytes)
      : source_(std::move(source)), as_bytes_(as_bytes) {
    expect_reads(*source_->whole(), Reads::forward);
  }

  const std::string& path() const override { return source_->path(); }
  std::uint64_t entries() const override { return source_->entries(); }
  CodecOptions codec_options() const override {
    if (as_bytes_) return {.codec = "bytes", .schema = {}};
    return {.codec = "raw", .schema = to_string(source_->schema())};
  }
  std::string fingerprint() const override { return source_->fingerprint().text; }

  Json info() const override {
    Json files = Json::array();
    for (const auto& file : source_->files()) files.push_back({{"path", file->path()}});
    return {{"path", path()},
            {"format", source_->format()},
            {"entries", entries()},
            {"schema", to_string(source_->schema())},
            {"sample_bytes", source_->sample_bytes()},
            {"files", files},
            {"stored_bytes", source_->stored_bytes()},
            {"fingerprint", fingerprint()}};
  }

  void read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const override {
    const std::vector<std::size_t> order = in_order(ids);
    const std::uint64_t fitting = kReadAtOnce / std::max<std::uint64_t>(1, source_->sample_bytes());
    const std::size_t step = std::max<std::uint64_t>(1, fitting);
    for (std::size_t at = 0; at < order.size(); at += step) {
      read_some(ids, std::span(order).subspan(at, std::min(step, order.size() - at)), sink);
    }
  }

 private:
  void read_some(std::span<const std::uint64_t> ids, std::span<const std::size_t> positions,
                 const Samples::Sink& sink) const {
    std::vector<std::uint64_t> wanted;
    wanted.reserve(positions.size());
    for (const std::size_t position : positions) wanted.push_back(ids[position]);
    const SamplePlan plan = source_->plan(wanted);
    const auto reads = place_extents(plan.extents(), kGapBytes);
    PrivateMemory memory_of_reads;
    PrivateMemory memory_of_values;
    const auto memory = memory_of_reads.get(bytes_of(reads));
    const auto scratch = memory_of_values.get(plan.scratch_bytes());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const FileExtent& extent = reads[i].extent;
      source_->files()[extent.file]->read(extent.offset,
                                          memory.subspan(reads[i].place, extent.length));
      if (i == 0 || reads[i - 1].extent.file != extent.file) source_->check_unchanged(extent.file);
    }
    const PlacedBytes bytes(reads, memory);
    plan.decode_all(bytes, scratch);
    std::vector<std::byte> whole;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      sink({.position = positions[i],
            .id = wanted[i],
            .key = {},
            .value = value(plan, i, bytes, scratch, whole)});
    }
  }

  std::span<const std::byte> value(const SamplePlan& plan, std::size_t at, const FileBytes& bytes,
                                   std::span<const std::byte> scratch,
                                   std::vector<std::byte>& whole) const {
    const std::size_t fields = source_->schema().fields.size();
    if (fields == 1) return plan.value(at, 0, bytes, scratch);
    if (source_->packed()) {
      return {plan.value(at, 0, bytes, scratch).data(), source_->sample_bytes()};
    }
    whole.clear();
    for (std::size_t f = 0; f < fields; ++f) {
      const auto field = plan.value(at, f, bytes, scratch);
      whole.insert(whole.end(), field.begin(), field.end());
    }
    return whole;
  }

  std::unique_ptr<SampleSource> source_;
  bool as_bytes_;
};

}  // namespace

std::unique_ptr<SampleStore> open_field_store(const std::string& dataset,
                                              const LoaderOptions& options,
                                              const std::string& format) {
  SampleOptions how = sample_options(options);
  how.format = format;
  if (options.codec != "auto" && options.codec != "raw" && options.codec != "bytes") {
    throw Error(ErrorKind::usage, "the samples are fields already, not values for a codec",
                "leave the codec out", {.file = dataset});
  }
  return std::make_unique<FieldStore>(open_samples(dataset, how), options.codec == "bytes");
}

}  // namespace forebay
