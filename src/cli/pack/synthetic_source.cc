// Data of any size without a data set of that size: generated images, or the records of an existing
// data set over and over, as the papers made CIFAR10-Large and ImageNet-Large.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cli/dataset_options.hpp"
#include "cli/pack/source.hpp"
#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "format/registry.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"
#include "read/data_access.hpp"

namespace forebay::pack {
namespace {

struct Preset {
  std::string_view name;
  ImageShape shape;
  std::uint32_t classes;
  std::uint64_t count;  // small enough for a laptop; the papers' sizes are asked for by --count
};

constexpr std::array<Preset, 2> kPresets{
    {{"cifar10-large", {3, 32, 32}, 10, 100'000}, {"imagenet-large", {3, 256, 256}, 1000, 2'000}}};

Preset find_preset(const Options& options) {
  if (options.preset.empty()) {
    if (!options.shape || !options.count) {
      throw Error(ErrorKind::usage, "generated data need a shape and a count",
                  "give --preset, or --shape CxHxW and --count N");
    }
    return {"", *options.shape, 10, *options.count};
  }
  for (const Preset& preset : kPresets) {
    if (preset.name == options.preset) return preset;
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a preset", options.preset),
              "use cifar10-large or imagenet-large");
}

// SplitMix64, a generator whose whole state is a counter: any record is drawn on its own.
std::uint64_t draw(std::uint64_t state) { return mix(state + kGolden); }

class GeneratedSource final : public Source {
 public:
  explicit GeneratedSource(const Options& options)
      : encoder_(options),
        preset_(find_preset(options)),
        seed_(options.seed),
        count_(options.count.value_or(preset_.count)) {}

  std::uint64_t count() const override { return count_; }

  std::string fingerprint() const override {
    return fmt::format("generated:{},{} classes,seed={},{}", to_string(preset_.shape),
                       preset_.classes, seed_, encoder_.fingerprint());
  }

  std::string read(std::uint64_t index) override {
    Image image{.shape = preset_.shape, .pixels = std::vector<std::byte>(preset_.shape.bytes())};
    const std::uint64_t stream = draw(draw(seed_) ^ index);
    for (std::size_t at = 0; at < image.pixels.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = draw(stream + at);
      std::memcpy(image.pixels.data() + at, &word,
                  std::min(sizeof(word), image.pixels.size() - at));
    }
    const auto label = static_cast<std::int32_t>(draw(~stream) % preset_.classes);
    return encoder_.encode(std::move(image), label);
  }

 private:
  ImageEncoder encoder_;
  Preset preset_;
  std::uint64_t seed_;
  std::uint64_t count_;
};

std::unique_ptr<const DataSet> open_samples(const Options& options) {
  FormatOptions how = format_options(LoaderOptions(), ReadEngine::mmap);
  how.format = "lmdb";
  how.leave_out = options.leave_out;
  how.keep_records = options.keep_records;
  std::unique_ptr<const DataSet> data = open_mapped(options.source, how);
  // Parts of samples are records of their own, and stay such.
  if (data->facts().parts.empty()) return data;
  how.convention = ConventionName::plain;
  return open_mapped(options.source, how);
}

/// The records of a data set that are samples, as reading finds them.
class ReplicatedSource final : public Source {
 public:
  explicit ReplicatedSource(const Options& options)
      : data_(open_samples(options)),
        reader_(*data_, {.engine = usable_engine(*data_, Engine::mmap), .bulk = {}}),
        count_(options.count.value_or(data_->facts().entries)) {
    if (data_->facts().entries == 0) {
      throw Error(ErrorKind::usage, "the data set has no records to replicate",
                  "name another one, or '-' to generate records", at_file(options.source));
    }
    if (options.shape || options.encode != Encoding::raw || !options.preset.empty()) {
      throw Error(ErrorKind::usage, "replicated records keep their shape and encoding",
                  "leave out --shape, --encode and --preset");
    }
    tell_notes(data_->facts());
  }

  std::uint64_t count() const override { return count_; }
  std::string fingerprint() const override {
    return fmt::format("replicated:{}", data_->facts().fingerprint);
  }

  ClassNames classes() const override { return data_->facts().labels; }

  std::string read(std::uint64_t index) override {
    const std::uint64_t sample = index % data_->facts().entries;
    if (sample < first_ || sample - first_ >= reader_.size()) bring(sample);
    const auto value = reader_.value(sample - first_);
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }

 private:
  /// `sample`, and some that are likely to be asked for next.
  void bring(std::uint64_t sample) {
    constexpr std::uint64_t kAtOnce = 256;
    first_ = sample;
    reader_.read(std::vector<IdRun>{{sample, std::min(kAtOnce, data_->facts().entries - sample)}});
    data_->check_unchanged();
  }

  std::unique_ptr<const DataSet> data_;
  SampleReader reader_;
  std::uint64_t count_;
  std::uint64_t first_ = 0;  ///< of those in reader_
};

}  // namespace

std::unique_ptr<Source> open_synthetic_source(const Options& options) {
  if (options.source == "-") return std::make_unique<GeneratedSource>(options);
  return std::make_unique<ReplicatedSource>(options);
}

}  // namespace forebay::pack
