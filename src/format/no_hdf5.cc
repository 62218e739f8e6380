// What stands in for HDF5 where Forebay is built without it.
#ifndef FOREBAY_HDF5

#include <array>

#include "forebay/error.hpp"
#include "format/hdf5/open_hdf5.hpp"

namespace forebay::hdf5 {

bool is_hdf5(const File& file) {
  // Only files without a user block: enough to say what is missing.
  std::array<std::byte, 4> start{};
  if (file.size() < start.size()) return false;
  file.read(0, start);
  return start == std::array{std::byte{0x89}, std::byte{'H'}, std::byte{'D'}, std::byte{'F'}};
}

std::unique_ptr<DataSet> open_hdf5(const std::string&, DataFiles files,
                                   std::span<const FieldChoice>) {
  throw Error(ErrorKind::unsupported, "Forebay was built without HDF5",
              "build it again with libhdf5-dev installed and FOREBAY_HDF5=ON",
              {.file = files.front()->path()});
}

}  // namespace forebay::hdf5

#endif
