// Any bytes as a tar archive: samples whose parts lie inside the file, or an Error.
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "forebay/error.hpp"
#include "format/sample_reader.hpp"
#include "format/tar/tar.hpp"

namespace forebay {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_all(const DataSet& data) {
  std::vector<std::uint64_t> ids(data.facts().entries);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  SampleReader reader(data, {});
  reader.read(ids);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    require(!data.key(i).empty());
    for (std::size_t p = 0; p < data.facts().part_count(); ++p) bytes += reader.part(i, p).size();
  }
  require(bytes <= data.facts().value_bytes);
}

void open_and_read(std::span<const std::byte> bytes) {
  DataFiles files{memory_file("fuzz.tar", bytes)};
  FoundMembers found;
  tar::find_members(*files[0], 0, found);
  read_all(MemberSet("fuzz.tar", "tar", std::move(files), std::move(found).choose({}, "fuzz.tar")));
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  try {
    open_and_read({reinterpret_cast<const std::byte*>(data), size});
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
