// How libhdf5 reads our files: a file driver of its virtual file layer, over forebay::File.
//
//   metadata   come from the File, a stretch at a time; every read is checked against its size
//   raw data   are not read at all: the driver notes where they would have been read from
//
// The second is how chunks are found. The library has functions that tell a chunk's address, but
// they walk over all chunks each time (1.10 to 1.14), which makes listing n chunks n^2 work, and
// some of them leave out the user block in front of the file. Asked to read a chunk as it is stored
// (H5Dread_chunk), the library looks it up in its index, in O(log n), and tells the driver.
//
// Nothing is locked: the driver has no lock. Paths of other files, to which external links lead,
// are refused.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forebay/storage.hpp"
#include "format/hdf5/library.hpp"

namespace forebay::hdf5 {

/// A stretch of raw data that the library wanted.
struct WantedData {
  std::uint64_t offset = 0;  ///< from the start of the file, user block included
  std::uint64_t length = 0;
};

/// What the driver and its user share; lives longer than the library's file.
struct DriverState {
  std::shared_ptr<const File> file;
  std::uint64_t size = 0;
  std::optional<WantedData> wanted;  ///< by the last read of raw data
  std::optional<Error> failure;      ///< of the File, which the library cannot carry
  std::uint64_t window_offset = 0;
  std::vector<std::byte> window;  ///< metadata that were read ahead
};

/// The library's file over `state.file`, read-only. Must be closed before `state` and while the
/// Library is held. Throws corrupt, io, unsupported.
class DriverFile {
 public:
  DriverFile(const Library& library, DriverState& state);

  hid_t get() const { return file_.get(); }

 private:
  Id driver_;
  Id access_;
  Id file_;
};

}  // namespace forebay::hdf5
