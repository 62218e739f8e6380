// Where Forebay was built without HDF5 there is nothing to write with.
#include "bench/command/generate/hdf5_file.hpp"
#include "forebay/error.hpp"

namespace forebay::generate {

class Hdf5File::Parts {};

Hdf5File::Hdf5File(std::string path, const Schema&, const Hdf5Layout&) {
  throw Error(ErrorKind::unsupported, "this Forebay was built without HDF5",
              "build it with FOREBAY_HDF5=ON", {.file = std::move(path)});
}

Hdf5File::~Hdf5File() = default;
void Hdf5File::write(std::uint64_t, std::size_t, std::span<const std::byte>) {}
void Hdf5File::complete() {}

}  // namespace forebay::generate
