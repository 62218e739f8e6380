// Elements of one fixed size in files that lie one behind the other, for TensorFlow's operation.
// Nothing here knows TensorFlow, and this header is C++17, as TensorFlow's own are: what is C++20
// stays in elements.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace forebay::tf {

/// A failure of the library, in words that the operation passes on.
struct ReadError : std::runtime_error {
  enum class Kind : std::uint8_t { usage, not_found, io };
  ReadError(Kind what, const std::string& message) : std::runtime_error(message), kind(what) {}
  Kind kind;
};

/// Does work(0) to work(count - 1) in any order, perhaps at once, and returns when all is done.
using RunAll = std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

/// Element i of all files is at i * element_size of their bytes; a file has whole elements only.
/// Reads go through forebay/storage.hpp, so a name may be a URL that a plug-in serves.
///
/// A read fetches `count_per_read` neighbours, beginning at a multiple of that in its file. The
/// block that a call has used last is kept for the next one: elements in their own order are read
/// once. Thread-safe.
class Elements {
 public:
  /// Opens all files. Throws ReadError.
  Elements(const std::vector<std::string>& files, std::int64_t element_size,
           std::int64_t count_per_read);
  ~Elements();
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  std::int64_t count() const;
  /// Fills `out` with the `count` elements that `ids` names, in that order. Throws ReadError; for
  /// an id that does not exist, before anything is read.
  void read(const std::int64_t* ids, std::size_t count, std::uint8_t* out, const RunAll& run_all);

 private:
  struct Source;
  struct Block;
  struct Place;
  using Blocks = std::vector<std::shared_ptr<Block>>;

  Place place_of(std::int64_t id) const;
  std::vector<Place> places_of(const std::int64_t* ids, std::size_t count) const;
  std::shared_ptr<Block> kept(const Place& place) const;
  void fill(Block& block) const;

  std::size_t element_size_;
  std::uint64_t per_read_;
  std::vector<Source> sources_;
  mutable std::mutex mutex_;     // guards last_
  std::shared_ptr<Block> last_;  // immutable once it is here
};

}  // namespace forebay::tf
