// Any bytes as a .npy or .npz file: a result whose rows lie inside the file, or an Error.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "forebay/error.hpp"
#include "format/raw/open_raw.hpp"
#include "format/sample_reader.hpp"

namespace forebay {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_ends(const DataSet& source, std::uint64_t file_bytes) {
  if (source.facts().entries == 0) return;
  const std::vector<std::uint64_t> ids{source.facts().entries - 1, 0};
  const auto plan = source.plan(ids);
  for (const FileExtent& extent : plan->extents()) {
    require(extent.offset <= file_bytes && extent.length <= file_bytes - extent.offset);
  }
  SampleReader reader(source, {});
  reader.read(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t f = 0; f < source.facts().schema.fields.size(); ++f) {
      require(reader.part(i, f).size() == source.facts().schema.fields[f].bytes());
    }
  }
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const char* name = size > 0 && data[0] == 'P' ? "fuzz.npz" : "fuzz.npy";
  try {
    read_ends(*raw::open_npy(name, {memory_file(name, bytes)}, {}), size);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
