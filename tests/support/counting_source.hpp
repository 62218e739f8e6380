// A record source that needs no file: sample i has the key "i" and a value made from i alone.
#pragma once

#include <cstring>
#include <string>

#include "forebay/error.hpp"
#include "format/record_source.hpp"

namespace forebay::test {

inline std::string counting_value(std::uint64_t sample) {
  return std::string(sample % 97, static_cast<char>('a' + sample % 26)) + std::to_string(sample);
}

class CountingSource final : public RecordSource {
 public:
  explicit CountingSource(std::uint64_t entries) : entries_(entries) {}

  /// Reading this sample throws.
  CountingSource& fail_at(std::uint64_t sample) {
    fail_at_ = sample;
    return *this;
  }

  const std::string& path() const override { return path_; }
  std::uint64_t entries() const override { return entries_; }
  std::uint64_t stored_bytes() const override { return 100 * entries_; }
  DatasetFingerprint fingerprint() const override { return {"counting"}; }
  void seek(std::uint64_t sample) override { next_ = sample; }
  void read(std::uint64_t count, const RecordSink& sink) override {
    for (std::uint64_t i = 0; i < count; ++i, ++next_) {
      if (next_ == fail_at_) throw Error(ErrorKind::io, "bad sector", "replace the disk");
      const std::string key = std::to_string(next_);
      const std::string value = counting_value(next_);
      sink({.sample = next_,
            .key = std::as_bytes(std::span(key)),
            .value = std::as_bytes(std::span(value))});
    }
  }
  void check_unchanged() override {}
  SourceCounters counters() const override { return {}; }

 private:
  std::string path_ = "counting";
  std::uint64_t entries_;
  std::uint64_t next_ = 0;
  std::uint64_t fail_at_ = UINT64_MAX;
};

inline std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace forebay::test
