// How libhdf5 reads our files: a file driver of its virtual file layer, over forebay::File.
//
//   metadata   come from the File, a stretch at a time; every read is checked against its size
//   raw data   are not read where chunks are looked up: the driver notes where they would have been
//              read from (the library reads some metadata as raw data, too: global heaps)
//
// The second is how chunks are found. The library has functions that tell a chunk's address, but
// they walk over all chunks each time (1.10 to 1.14), which makes listing n chunks n^2 work, and
// some of them leave out the user block in front of the file. Asked to read a chunk as it is stored
// (H5Dread_chunk), the library looks it up in its index, in O(log n), and tells the driver.
//
// Nothing is locked: the driver has no lock. Paths of other files, to which external links lead,
// are refused.
#pragma once

#include <hdf5.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "forebay/storage.hpp"

namespace forebay::hdf5 {

// libhdf5, kept in its place: one caller at a time, silent, and its errors as ours.
//
// The library is used while a data set is opened and never again: what it knows (types, shapes,
// layouts, where chunks are) is copied, and no handle outlives the call. Reading and decoding are
// ours. So it does not matter that the library lets one thread in at a time, that its handles do
// not survive a fork, or that it locks files.

/// While it lives, this thread alone uses the library (through Forebay), and the library prints
/// nothing. Local; blocks while another thread opens a data set.
class Library : private NonCopyable {
 public:
  Library();
  ~Library();

  /// What the library says about its last failure: the innermost message, which names the cause.
  std::string last_error() const;

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Owns one identifier of the library.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t id, Close close) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// A stretch of raw data that the library wanted.
struct WantedData {
  std::uint64_t offset = 0;  ///< from the start of the file, user block included
  std::uint64_t length = 0;
};

/// What the driver and its user share; lives longer than the library's file.
struct DriverState {
  std::shared_ptr<const File> file;
  std::uint64_t size = 0;
  bool looks_up = false;             ///< raw data are noted, not read
  std::optional<WantedData> wanted;  ///< by the last read of raw data then
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
