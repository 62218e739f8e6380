// Any bytes as an HDF5 file: opening, planning and decoding end in samples or in an Error.
//
// libhdf5 reads the metadata, and its versions differ in how well they take hostile ones: a crash
// inside the library is not ours to mend. What is ours is that all it returns is checked.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "forebay/error.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "format/sample_reader.hpp"

namespace forebay {
namespace {

// Keeps one input from asking for hundreds of megabytes or a million chunks; larger samples take
// the same paths.
constexpr std::uint64_t kMostBytes = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_some(const DataSet& source) {
  std::uint64_t sample_bytes = 1;
  for (const Field& field : source.facts().schema.fields) {
    if (field.bytes() > kMostBytes) return;
    sample_bytes += field.bytes();
  }
  const std::uint64_t count = std::min(source.facts().entries, kMostBytes / sample_bytes);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 300); ++i) {
    ids.push_back(i * 7919 % source.facts().entries);
  }
  SampleReader reader(source, {});
  reader.read(ids);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t f = 0; f < source.facts().schema.fields.size(); ++f) {
      const auto value = reader.part(i, f);
      require(value.size() == source.facts().schema.fields[f].bytes());
      for (const std::byte byte : value) sum += std::to_integer<std::size_t>(byte);
    }
  }
  require(sum < SIZE_MAX);
}

}  // namespace
}  // namespace forebay

// The library leaks where it fails, and asks for as much memory as the bytes say, which malloc may
// refuse.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    read_some(*hdf5::open_hdf5("fuzz.h5", {memory_file("fuzz.h5", bytes)}, {}));
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
