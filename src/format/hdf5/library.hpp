// libhdf5, kept in its place: one caller at a time, silent, and its errors as ours.
//
// The library is used while a data set is opened and never again: what it knows (types, shapes,
// layouts, where chunks are) is copied, and no handle outlives the call. Reading and decoding are
// ours. So it does not matter that the library lets one thread in at a time, that its handles do
// not survive a fork, or that it locks files.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "forebay/error.hpp"

namespace forebay::hdf5 {

/// While it lives, this thread alone uses the library (through Forebay), and the library prints
/// nothing. Local; blocks while another thread opens a data set.
class Library {
 public:
  Library();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

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

}  // namespace forebay::hdf5
