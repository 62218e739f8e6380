// CIFAR-10, binary version: files of records of one label byte and 3 x 32 x 32 pixel bytes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

constexpr ImageShape kShape{3, 32, 32};
constexpr std::uint64_t kRecordBytes = 1 + 3 * 32 * 32;
constexpr std::int32_t kClasses = 10;

bool belongs(const std::string& name, const std::string& split) {
  return name.starts_with(split == "test" ? "test_batch" : "data_batch") && name.ends_with(".bin");
}

std::vector<std::string> find_batches(const Options& options) {
  if (!fs::is_directory(options.source)) return {options.source};
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(options.source)) {
    if (belongs(entry.path().filename().string(), options.split)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (!paths.empty()) return paths;
  throw Error(ErrorKind::not_found,
              fmt::format("no {}*.bin", options.split == "test" ? "test_batch" : "data_batch"),
              "give the directory of CIFAR-10's binary version", at_file(options.source));
}

class Cifar10Source final : public Source {
 public:
  explicit Cifar10Source(const Options& options) : encoder_(options) {
    for (const std::string& path : find_batches(options)) add_batch(path);
  }

  std::uint64_t count() const override { return batches_.back().end; }

  std::string fingerprint() const override {
    std::string text = "cifar10:";
    for (const Batch& batch : batches_) text += file_fingerprint(batch.file.path()) + ",";
    return text + encoder_.fingerprint();
  }

  std::string read(std::uint64_t index) override {
    const auto batch = std::find_if(batches_.begin(), batches_.end(),
                                    [&](const Batch& b) { return index < b.end; });
    const std::uint64_t offset = (index - batch->begin) * kRecordBytes;
    std::vector<std::byte> record(kRecordBytes);
    batch->file.read(offset, record);
    const auto label = std::to_integer<std::int32_t>(record[0]);
    if (label >= kClasses) {
      throw Error(ErrorKind::corrupt, fmt::format("label {} where CIFAR-10 has 0 to 9", label),
                  "the file is damaged, or not of CIFAR-10's binary version",
                  at_file(batch->file.path(), offset));
    }
    record.erase(record.begin());
    return encoder_.encode({kShape, std::move(record)}, label);
  }

 private:
  struct Batch {
    InputFile file;
    std::uint64_t begin, end;  // records of the source
  };

  void add_batch(const std::string& path) {
    const std::uint64_t size = file_size(path);
    if (size == 0 || size % kRecordBytes != 0) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{} bytes are not a whole number of {}-byte records", size, kRecordBytes),
          "the file was cut, or is not of CIFAR-10's binary version", at_file(path));
    }
    const std::uint64_t begin = batches_.empty() ? 0 : batches_.back().end;
    batches_.push_back({InputFile(path), begin, begin + size / kRecordBytes});
  }

  ImageEncoder encoder_;
  std::vector<Batch> batches_;
};

}  // namespace

std::unique_ptr<Source> open_cifar10_source(const Options& options) {
  return std::make_unique<Cifar10Source>(options);
}

}  // namespace forebay::pack
