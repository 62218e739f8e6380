#include "tensorflow/elements.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <span>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"

namespace forebay::tf {
namespace {

/// What one read may fetch; more is a mistake in the arguments.
constexpr std::uint64_t kMostBytesARead = std::uint64_t{1} << 30;

ReadError told(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::usage:
    case ErrorKind::unsupported:
      return {ReadError::Kind::usage, error.what()};
    case ErrorKind::not_found:
      return {ReadError::Kind::not_found, error.what()};
    default:
      return {ReadError::Kind::io, error.what()};
  }
}

[[noreturn]] void refuse(const std::string& happened, const std::string& remedy) {
  throw ReadError(ReadError::Kind::usage, happened + ": " + remedy);
}

}  // namespace

struct Elements::Source {
  std::shared_ptr<const File> file;
  std::uint64_t first = 0;  ///< of all elements
  std::uint64_t elements = 0;
};

/// Where an element is: number `at` of the block that begins with number `begin` of a file.
struct Elements::Place {
  std::size_t source = 0;
  std::uint64_t begin = 0;
  std::uint64_t at = 0;

  bool same_block(const Place& other) const {
    return source == other.source && begin == other.begin;
  }
};

struct Elements::Block {
  std::size_t source = 0;
  std::uint64_t begin = 0;
  std::vector<std::uint8_t> bytes = {};
};

Elements::Elements(const std::vector<std::string>& files, std::int64_t element_size,
                   std::int64_t count_per_read) {
  if (files.empty()) refuse("dataset_filename_list is empty", "name at least one file");
  if (element_size < 1) refuse("element_size is below 1", "give the bytes of an element");
  if (count_per_read < 1) refuse("count_per_read is below 1", "give 1 to read single elements");
  element_size_ = static_cast<std::size_t>(element_size);
  per_read_ = static_cast<std::uint64_t>(count_per_read);
  if (element_size_ > kMostBytesARead || per_read_ > kMostBytesARead / element_size_) {
    refuse("a read of count_per_read elements has more than 1 GiB", "lower count_per_read");
  }
  try {
    std::uint64_t first = 0;
    for (const std::string& name : files) {
      Source source{.file = open_file(name, Engine::pread), .first = first};
      const std::uint64_t size = source.file->size();
      if (size % element_size_ != 0) {
        refuse(name + ": its " + std::to_string(size) +
                   " bytes are no whole number of elements of " + std::to_string(element_size_),
               "give the size that the elements have");
      }
      source.elements = size / element_size_;
      first += source.elements;
      sources_.push_back(std::move(source));
    }
    if (first > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse("the files have more than 2^63 elements", "name fewer files");
    }
  } catch (const Error& error) {
    throw told(error);
  }
}

Elements::~Elements() = default;

std::int64_t Elements::count() const {
  return static_cast<std::int64_t>(sources_.back().first + sources_.back().elements);
}

Elements::Place Elements::place_of(std::int64_t id) const {
  const auto number = static_cast<std::uint64_t>(id);
  const auto after =
      std::upper_bound(sources_.begin(), sources_.end(), number,
                       [](std::uint64_t n, const Source& source) { return n < source.first; });
  // Empty files before it have the same first number, so this one has the element.
  const auto source = static_cast<std::size_t>(after - sources_.begin()) - 1;
  const std::uint64_t in_file = number - sources_[source].first;
  return {.source = source, .begin = in_file / per_read_ * per_read_, .at = in_file % per_read_};
}

std::vector<Elements::Place> Elements::places_of(const std::int64_t* ids, std::size_t count) const {
  std::vector<Place> places;
  places.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= this->count()) {
      refuse("index_array names element " + std::to_string(ids[i]) + " of " +
                 std::to_string(this->count()),
             "elements are numbered from 0 over all files");
    }
    places.push_back(place_of(ids[i]));
  }
  return places;
}

void Elements::fill(Block& block) const {
  const Source& source = sources_[block.source];
  const std::uint64_t elements = std::min(per_read_, source.elements - block.begin);
  block.bytes.resize(elements * element_size_);
  source.file->read(block.begin * element_size_, std::as_writable_bytes(std::span(block.bytes)));
}

std::shared_ptr<Elements::Block> Elements::kept(const Place& place) const {
  const std::scoped_lock lock(mutex_);
  const bool fits = last_ && last_->source == place.source && last_->begin == place.begin;
  return fits ? last_ : nullptr;
}

void Elements::read(const std::int64_t* ids, std::size_t count, std::uint8_t* out,
                    const RunAll& run_all) {
  if (count == 0) return;
  const std::vector<Place> places = places_of(ids, count);
  // Those of one block behind each other, blocks in the order of the files.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&places](std::size_t a, std::size_t b) {
    const Place& x = places[a];
    const Place& y = places[b];
    return x.source != y.source ? x.source < y.source : x.begin < y.begin;
  });
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || !places[order[i]].same_block(places[order[i - 1]])) starts.push_back(i);
  }
  starts.push_back(count);
  std::mutex mutex;
  std::exception_ptr failed;
  std::shared_ptr<Block> last;
  run_all(starts.size() - 1, [&](std::size_t number) {
    try {
      const Place& first = places[order[starts[number]]];
      std::shared_ptr<Block> block = kept(first);
      if (!block) {
        block = std::make_shared<Block>(Block{.source = first.source, .begin = first.begin});
        fill(*block);
      }
      for (std::size_t i = starts[number]; i < starts[number + 1]; ++i) {
        const std::size_t element = order[i];
        std::memcpy(out + element * element_size_,
                    block->bytes.data() + places[element].at * element_size_, element_size_);
      }
      const std::scoped_lock lock(mutex);
      if (first.same_block(places.back())) last = std::move(block);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  });
  try {
    if (failed) std::rethrow_exception(failed);
  } catch (const Error& error) {
    throw told(error);
  }
  const std::scoped_lock lock(mutex_);
  if (per_read_ > 1) last_ = std::move(last);
}

}  // namespace forebay::tf
