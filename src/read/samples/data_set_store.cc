// Any format but LMDB behind Samples.
#include <algorithm>

#include "format/registry.hpp"
#include "format/sample_reader.hpp"
#include "read/data_set_access.hpp"
#include "read/private_memory.hpp"
#include "read/samples/sample_store.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

// Read along rather than asked for apart.
constexpr std::uint64_t kGapBytes = 4096;

class DataSetStore final : public SampleStore {
 public:
  DataSetStore(std::unique_ptr<DataSet> data, CodecOptions codec)
      : data_(std::move(data)), codec_(std::move(codec)) {
    expect_reads(*data_->whole(), Reads::forward);  // they may be asked for one after the other
  }

  const std::string& path() const override { return data_->facts().path; }
  std::uint64_t entries() const override { return data_->facts().entries; }
  std::span<const std::string> parts() const override { return data_->facts().parts; }
  CodecOptions codec_options() const override { return codec_; }
  std::string fingerprint() const override { return data_->facts().fingerprint; }

  Json info() const override {
    const DataSetFacts& facts = data_->facts();
    Json files = Json::array();
    for (const auto& file : data_->files()) files.push_back({{"path", file->path()}});
    Json info{{"path", path()}, {"format", facts.format}, {"entries", entries()}};
    if (facts.schema.fields.empty()) {
      info["parts"] = facts.parts;
    } else {
      info["schema"] = to_string(facts.schema);
    }
    if (!facts.labels.empty()) info["labels"] = facts.labels;
    info["sample_bytes"] = facts.sample_bytes;
    info["files"] = files;
    info["stored_bytes"] = data_->stored_bytes();
    info["fingerprint"] = fingerprint();
    return info;
  }

  void read(std::span<const std::uint64_t> ids, const Samples::Sink& sink) const override {
    const std::vector<std::size_t> order = in_order(ids);
    const std::uint64_t bytes = std::max<std::uint64_t>(1, data_->facts().sample_bytes);
    const std::size_t step = std::max<std::uint64_t>(1, kReadAtOnce / bytes);
    for (std::size_t at = 0; at < order.size(); at += step) {
      read_some(ids, std::span(order).subspan(at, std::min(step, order.size() - at)), sink);
    }
  }

  void keys(const Samples::KeySink& sink) const override {
    data_->keys(sink);
  }

 private:
  void read_some(std::span<const std::uint64_t> ids, std::span<const std::size_t> positions,
                 const Samples::Sink& sink) const {
    std::vector<std::uint64_t> wanted;
    wanted.reserve(positions.size());
    for (const std::size_t position : positions) wanted.push_back(ids[position]);
    const auto plan = data_->plan(wanted);
    const auto reads = place_extents(plan->extents(), kGapBytes);
    PrivateMemory memory_of_reads;
    PrivateMemory memory_of_values;
    const auto memory = memory_of_reads.get(bytes_of(reads));
    const auto scratch = memory_of_values.get(plan->scratch_bytes());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const FileExtent& extent = reads[i].extent;
      data_->files()[extent.file]->read(extent.offset,
                                        memory.subspan(reads[i].place, extent.length));
      if (i == 0 || reads[i - 1].extent.file != extent.file) data_->check_unchanged(extent.file);
    }
    const PlacedBytes bytes(reads, memory);
    plan->decode_all(bytes, scratch);
    PlanValues values(*data_, *plan, bytes, scratch);
    const bool in_place = data_->facts().values != DataSetFacts::Values::in_parts;
    std::vector<std::byte> whole;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (!in_place) {
        whole.resize(values.bytes(i));
        values.write(i, whole);
      }
      sink({.position = positions[i],
            .id = wanted[i],
            .key = plan->key(i, bytes),
            .value = in_place ? values.in_place(i) : whole});
    }
  }

  std::unique_ptr<DataSet> data_;
  CodecOptions codec_;
};

}  // namespace

std::unique_ptr<SampleStore> open_data_set_store(const std::string& dataset,
                                                 const LoaderOptions& options,
                                                 const std::string& format) {
  FormatOptions how = format_options(options, options.engine);
  how.keeps = options.strategy == Strategy::automatic;
  how.format = format;
  auto data = open_data_set(dataset, how);
  tell_notes(data->facts());
  CodecOptions codec = codec_of(data->facts(), {options.codec, options.schema});
  return std::make_unique<DataSetStore>(std::move(data), std::move(codec));
}

}  // namespace forebay
