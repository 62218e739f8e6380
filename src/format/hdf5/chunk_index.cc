#include "format/hdf5/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace forebay::hdf5 {
namespace {

constexpr std::uint64_t kMostChunkBytes = UINT32_MAX;  // by the format
// A chunk that exists takes more than this in the index, so a grid that has many more places than
// the file has room for is mostly holes, or a lie.
constexpr std::uint64_t kBytesAChunk = 8;
constexpr std::uint64_t kSmallGrid = std::uint64_t{1} << 20;
constexpr unsigned kMostFilters = 32;  // by the format
constexpr std::size_t kMostFilterValues = 64;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::corrupt, what, "the file is damaged or was cut: restore it from a copy");
}

using Coordinates = std::array<hsize_t, H5S_MAX_RANK>;

std::uint64_t grid_size(const ChunkedLayout& layout, std::uint64_t file_bytes) {
  const std::uint64_t most = std::max(kSmallGrid, file_bytes / kBytesAChunk);
  std::uint64_t size = 1;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const std::uint64_t along = layout.grid(d);
    if (along == 0) return 0;
    if (size > most / along) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("it has more than {} chunks in a file of {} bytes", most, file_bytes),
                  kRewrite);
    }
    size *= along;
  }
  return size;
}

/// Moves to the next chunk of the grid, row-major.
void next_chunk(const ChunkedLayout& layout, Coordinates& at) {
  for (std::size_t d = layout.shape.size(); d-- > 0;) {
    at[d] += layout.chunk[d];
    if (at[d] < layout.shape[d]) return;
    at[d] = 0;
  }
}

std::uint64_t bytes_of_chunk(const ChunkedLayout& layout) {
  std::uint64_t bytes = layout.element_bytes;
  for (const std::uint64_t size : layout.chunk) bytes *= size;
  return bytes;
}

void check_place(const WantedData& wanted, const Coordinates& at, const ChunkedLayout& layout,
                 std::uint64_t file_bytes) {
  const auto where = [&] {
    return fmt::format("the chunk at ({})",
                       fmt::join(at.begin(), at.begin() + layout.shape.size(), ", "));
  };
  if (wanted.length > file_bytes || wanted.offset > file_bytes - wanted.length) {
    damaged(fmt::format("{}: {} bytes at offset {} do not lie inside the file of {} bytes", where(),
                        wanted.length, wanted.offset, file_bytes));
  }
  const std::uint64_t chunk_bytes = bytes_of_chunk(layout);
  const bool possible = layout.filters.empty()
                            ? wanted.length == chunk_bytes
                            : wanted.length > 0 && wanted.length <= kMostChunkBytes;
  if (!possible) {
    damaged(fmt::format("{}: it has {} bytes where its shape needs {}", where(), wanted.length,
                        chunk_bytes));
  }
}

/// Where chunks are looked up, and where what was found goes.
struct Lookup {
  DriverState& state;
  hid_t dataset;
  ChunkedLayout& layout;
};

/// False: there is no chunk at `at`, as far as the library can tell.
bool find_chunk(const Lookup& lookup, const Coordinates& at, ChunkPlace& place) {
  DriverState& state = lookup.state;
  std::byte nothing{};  // the driver reads no raw data
  std::uint32_t skipped = 0;
  state.wanted.reset();
  state.looks_up = true;
  const herr_t status = H5Dread_chunk(lookup.dataset, H5P_DEFAULT, at.data(), &skipped, &nothing);
  state.looks_up = false;
  if (status < 0) {
    if (state.failure) throw *state.failure;
    return false;
  }
  if (!state.wanted) damaged("libhdf5 does not tell where a chunk is");
  check_place(*state.wanted, at, lookup.layout, state.size);
  place = {.offset = state.wanted->offset,
           .length = static_cast<std::uint32_t>(state.wanted->length),
           .skipped = skipped};
  return true;
}

/// Asks for every place of the grid until all `existing` chunks are found.
std::uint64_t find_in_grid(const Lookup& lookup, hsize_t existing) {
  Coordinates at{};
  std::uint64_t found = 0;
  for (ChunkPlace& place : lookup.layout.places) {
    if (found == existing) break;
    if (find_chunk(lookup, at, place)) ++found;
    next_chunk(lookup.layout, at);
  }
  return found;
}

/// The place in the row-major grid of the chunk at `at`.
std::uint64_t place_in_grid(const ChunkedLayout& layout, const Coordinates& at) {
  std::uint64_t place = 0;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    if (at[d] >= layout.shape[d] || at[d] % layout.chunk[d] != 0) {
      damaged(fmt::format("its index names a chunk at {} along dimension {}, of {} in chunks of {}",
                          at[d], d, layout.shape[d], layout.chunk[d]));
    }
    place = place * layout.grid(d) + at[d] / layout.chunk[d];
  }
  return place;
}

/// Asks the index for the coordinates of its chunks. (The addresses that it gives beside them leave
/// out the user block in some versions.)
std::uint64_t find_named_chunks(const Library& library, const Lookup& lookup, hid_t space,
                                hsize_t existing) {
  std::uint64_t found = 0;
  for (hsize_t i = 0; i < existing; ++i) {
    Coordinates at{};
    if (H5Dget_chunk_info(lookup.dataset, space, i, at.data(), nullptr, nullptr, nullptr) < 0) {
      damaged("its chunks cannot be listed: " + library.last_error());
    }
    ChunkPlace& place = lookup.layout.places[place_in_grid(lookup.layout, at)];
    const bool again = place.length != 0;
    if (find_chunk(lookup, at, place) && !again) ++found;
  }
  return found;
}

}  // namespace

void read_chunk_shape(hid_t properties, ChunkedLayout& layout) {
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const auto rank = static_cast<int>(layout.shape.size());
  if (H5Pget_chunk(properties, H5S_MAX_RANK, chunk.data()) != rank) {
    damaged("its chunks have another rank than it has");
  }
  layout.chunk.assign(chunk.begin(), chunk.begin() + rank);
  std::uint64_t bytes = layout.element_bytes;
  for (const std::uint64_t size : layout.chunk) {
    if (size == 0 || bytes > kMostChunkBytes / size) {
      damaged(fmt::format("chunks of shape {} are impossible", fmt::join(layout.chunk, "x")));
    }
    bytes *= size;
  }
}

void read_filters(hid_t properties, ChunkedLayout& layout) {
  const int count = H5Pget_nfilters(properties);
  if (count < 0 || count > static_cast<int>(kMostFilters)) damaged("its filters cannot be read");
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    std::array<unsigned, kMostFilterValues> values{};
    std::array<char, 128> name{};
    std::size_t value_count = values.size();
    unsigned flags = 0;
    unsigned config = 0;
    const H5Z_filter_t id = H5Pget_filter2(properties, i, &flags, &value_count, values.data(),
                                           name.size() - 1, name.data(), &config);
    if (id < 0) damaged("its filters cannot be read");
    value_count = std::min(value_count, values.size());
    layout.filters.push_back(make_filter(id, printable_key(name.data()),
                                         {values.begin(), values.begin() + value_count}));
  }
  unsigned options = 0;
  layout.edges_unfiltered = H5Pget_chunk_opts(properties, &options) >= 0 &&
                            (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
}

void find_chunks(const Library& library, DriverState& state, hid_t dataset, ChunkedLayout& layout) {
  const std::uint64_t cells = grid_size(layout, state.size);
  layout.places.resize(cells);
  if (cells == 0) return;
  const Id space(H5Dget_space(dataset), H5Sclose);
  hsize_t existing = 0;
  if (H5Dget_num_chunks(dataset, space.get(), &existing) < 0) {
    damaged("its chunks cannot be listed: " + library.last_error());
  }
  const Lookup lookup{.state = state, .dataset = dataset, .layout = layout};
  // Naming the chunk of a number walks over all before it, asking for a hole costs a lookup.
  const bool sparse = existing <= cells / std::max<hsize_t>(existing, 1);
  const std::uint64_t found = sparse ? find_named_chunks(library, lookup, space.get(), existing)
                                     : find_in_grid(lookup, existing);
  // A chunk that was not found may as well not exist; only the count tells.
  if (found != existing) {
    damaged(fmt::format("its index names {} chunks, of which {} can be found", existing, found));
  }
}

}  // namespace forebay::hdf5
