#include "format/hdf5/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/dataset_files.hpp"
#include "format/strided_field.hpp"

namespace forebay::hdf5 {
namespace {

// Dimensions and sizes below it can be multiplied by a chunk's or a type's without wrapping.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;
// What fits into a header of the file: compact data, and fill values.
constexpr std::uint64_t kMostHeaderBytes = 65536;

[[noreturn]] void refuse(ErrorKind kind, const std::string& happened, const std::string& remedy) {
  throw Error(kind, happened, remedy);
}

[[noreturn]] void damaged(const std::string& what) {
  refuse(ErrorKind::corrupt, what, "the file is damaged or was cut: restore it from a copy");
}

/// What is known of a data set while its storage is found out.
struct Description {
  hid_t id = -1;
  Id type;
  Id properties;
  ElementLayout element;
  std::vector<std::uint64_t> shape;  // rows first, where a sample is one
  SampleIs sample = SampleIs::row;
  std::uint64_t row_bytes = 0;

  std::uint64_t rows() const { return sample == SampleIs::row ? shape[0] : 1; }
  std::uint64_t bytes() const { return rows() * row_bytes; }
};

/// One element of what was never written, in this machine's byte order.
std::vector<std::byte> fill_value(const Description& of) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(of.properties.get(), &defined) < 0 ||
      defined != H5D_FILL_VALUE_USER_DEFINED) {
    return {std::byte{0}};
  }
  const std::size_t size = H5Tget_size(of.type.get());
  if (size > kMostHeaderBytes) damaged(fmt::format("a fill value of {} bytes is impossible", size));
  std::vector<std::byte> value(size);
  if (H5Pget_fill_value(of.properties.get(), of.type.get(), value.data()) < 0) {
    damaged("its fill value cannot be read");
  }
  swap_bytes(value, of.element.swap);
  return value;
}

ChunkedLayout chunked_layout(const Description& of) {
  ChunkedLayout layout;
  layout.shape = of.shape;
  layout.element_bytes = H5Tget_size(of.type.get());
  layout.swap = of.element.swap;
  layout.fill = fill_value(of);
  return layout;
}

/// A sample that is all of the data set is its only row.
std::shared_ptr<const FieldStorage> chunked_field(const Description& of, ChunkedLayout layout) {
  if (of.sample == SampleIs::whole) {
    layout.shape.insert(layout.shape.begin(), 1);
    layout.chunk.insert(layout.chunk.begin(), 1);
  }
  return std::make_shared<ChunkedField>(std::move(layout));
}

/// Values that were never written, as one chunk that does not exist.
std::shared_ptr<const FieldStorage> unwritten(const Description& of) {
  ChunkedLayout layout = chunked_layout(of);
  for (const std::uint64_t size : of.shape)
    layout.chunk.push_back(std::max<std::uint64_t>(size, 1));
  layout.places.resize(of.bytes() > 0 ? 1 : 0);
  return chunked_field(of, std::move(layout));
}

std::shared_ptr<const FieldStorage> compact(const Description& of) {
  // The library copies as many bytes as the shape says, whatever it holds (found by
  // fuzzing 1.10.8).
  if (of.bytes() > kMostHeaderBytes || H5Dget_storage_size(of.id) < of.bytes()) {
    damaged(fmt::format("its headers hold {} bytes where its shape needs {}",
                        H5Dget_storage_size(of.id), of.bytes()));
  }
  std::vector<std::byte> values(of.bytes());
  if (!values.empty() &&
      H5Dread(of.id, of.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    damaged("its compact data cannot be read");
  }
  swap_bytes(values, of.element.swap);
  return std::make_shared<CompactField>(std::move(values), of.row_bytes, "in the file's headers");
}

std::shared_ptr<const FieldStorage> contiguous(const Description& of, std::uint64_t file_bytes) {
  if (H5Pget_external_count(of.properties.get()) != 0) {
    refuse(ErrorKind::unsupported, "its values lie in other files (external storage)", kRewrite);
  }
  // Behind a user block the library makes an address even of "nowhere", so the status is asked.
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  if (H5Dget_space_status(of.id, &status) < 0) damaged("libhdf5 cannot tell where it is stored");
  if (status == H5D_SPACE_STATUS_NOT_ALLOCATED || of.bytes() == 0) return unwritten(of);
  const haddr_t offset = H5Dget_offset(of.id);
  const StridedLayout layout{
      .first = offset, .stride = of.row_bytes, .row_bytes = of.row_bytes, .swap = of.element.swap};
  if (H5Dget_storage_size(of.id) < of.bytes() || !fits(layout, of.rows(), file_bytes)) {
    damaged(fmt::format("{} bytes at offset {} do not lie inside the file of {} bytes", of.bytes(),
                        offset, file_bytes));
  }
  return std::make_shared<StridedField>(layout, "contiguous");
}

std::shared_ptr<const FieldStorage> chunked(const Description& of, const Library& library,
                                            DriverState& state) {
  ChunkedLayout layout = chunked_layout(of);
  read_chunk_shape(of.properties.get(), layout);
  read_filters(of.properties.get(), layout);
  find_chunks(library, state, of.id, layout);
  return chunked_field(of, std::move(layout));
}

std::shared_ptr<const FieldStorage> storage_of(const Description& of, const Library& library,
                                               DriverState& state) {
  switch (H5Pget_layout(of.properties.get())) {
    case H5D_COMPACT:
      return compact(of);
    case H5D_CONTIGUOUS:
      return contiguous(of, state.size);
    case H5D_CHUNKED:
      return chunked(of, library, state);
    case H5D_VIRTUAL:
      refuse(ErrorKind::unsupported, "it is a virtual data set, put together from others",
             std::string("name the files that hold its parts instead, or ") + kRewrite);
    default:
      damaged("libhdf5 cannot tell how it is laid out: " + library.last_error());
  }
}

/// Every data set that h5py can read, one after the other through memory: in chunks of its choice,
/// deflated, with the filters of hdf5plugin where that is there.
std::string line_that_rewrites(const std::string& path) {
  return python_line(
      "import sys, importlib.util as u, h5py; u.find_spec(\"hdf5plugin\") and "
      "__import__(\"hdf5plugin\"); a, b = h5py.File(sys.argv[1], \"r\"), h5py.File(sys.argv[2], "
      "\"w\"); a.visititems(lambda n, d: isinstance(d, h5py.Dataset) and b.create_dataset(n, "
      "data=d[()], dtype=d.dtype, compression=\"gzip\" if d.shape else None) and None or None)",
      {path, beside(path, "-new.h5")});
}

bool holds_nothing(hid_t dataset) {
  const Id space(H5Dget_space(dataset), H5Sclose);
  return H5Sget_simple_extent_type(space.get()) == H5S_NULL;
}

}  // namespace

std::vector<std::uint64_t> shape_of(hid_t dataset) {
  const Id space(H5Dget_space(dataset), H5Sclose);
  std::array<hsize_t, H5S_MAX_RANK> dimensions{};
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > H5S_MAX_RANK ||
      H5Sget_simple_extent_dims(space.get(), dimensions.data(), nullptr) != rank) {
    damaged("its shape cannot be read");
  }
  std::vector<std::uint64_t> shape(dimensions.begin(), dimensions.begin() + rank);
  for (const std::uint64_t size : shape) {
    if (size > kMostBytes) damaged(fmt::format("a dimension of {} is impossible", size));
  }
  return shape;
}

Dataset read_dataset(const Library& library, DriverState& state, hid_t id,
                     const std::string& stored, SampleIs sample) {
  try {
    Description of{.id = id,
                   .type = Id(H5Dget_type(id), H5Tclose),
                   .properties = Id(H5Dget_create_plist(id), H5Pclose),
                   .shape = shape_of(id),
                   .sample = sample};
    if (holds_nothing(id)) {
      refuse(ErrorKind::unsupported, "it holds nothing, not even a single value",
             "leave the data set out with '#NAME,...'");
    }
    if (sample == SampleIs::row && of.shape.empty()) {
      refuse(ErrorKind::unsupported, "it is a single value, not a list of samples",
             "name data sets whose first dimension counts the samples");
    }
    of.element = element_layout(of.type.get());
    Dataset dataset{.stored = stored, .rows = of.rows(), .field = {}, .storage = {}};
    dataset.field = {.name = field_name(stored), .type = of.element.type, .shape = {}};
    dataset.field.shape.assign(of.shape.begin() + (sample == SampleIs::row ? 1 : 0),
                               of.shape.end());
    dataset.field.shape.insert(dataset.field.shape.end(), of.element.shape.begin(),
                               of.element.shape.end());
    of.row_bytes = dataset.field.bytes();
    if (of.row_bytes > 0 && of.rows() > kMostBytes / of.row_bytes) {
      damaged(fmt::format("{} rows of {} bytes are impossible", of.rows(), of.row_bytes));
    }
    dataset.storage = storage_of(of, library, state);
    return dataset;
  } catch (const Error& error) {
    if (state.failure) throw *state.failure;
    std::string remedy = error.remedy();
    if (remedy.ends_with(kRewrite)) remedy += ": " + line_that_rewrites(state.file->path());
    throw Error(error.kind(),
                fmt::format("data set '{}': {}", shown_name(stored), error.happened()), remedy,
                error.within({.file = state.file->path()}).where());
  }
}

namespace {

/// Row i is all of data set i.
class ManyDatasets final : public FieldStorage {
 public:
  explicit ManyDatasets(std::span<const Dataset> datasets) : row_bytes_(datasets[0].field.bytes()) {
    for (const Dataset& one : datasets) rows_.push_back(one.storage);
  }

  bool in_place() const override {
    return std::ranges::all_of(rows_, [](const auto& one) { return one->in_place(); });
  }
  bool in_file() const override {
    return std::ranges::all_of(rows_, [](const auto& one) { return one->in_file(); });
  }
  void extents(std::span<const std::uint64_t> rows, std::uint32_t file,
               std::vector<FileExtent>& out) const override {
    for (const std::uint64_t row : rows) rows_[row]->extents(kOnly, file, out);
  }
  std::span<const std::byte> value(std::uint64_t row, std::uint32_t file,
                                   const FileBytes& bytes) const override {
    return rows_[row]->value(0, file, bytes);
  }
  void units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const override;
  std::uint64_t decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                       std::uint32_t file, const FileBytes& bytes, std::span<std::byte> out,
                       DecodeSpace& space) const override;
  std::string describe() const override { return "a data set each: " + rows_[0]->describe(); }

 private:
  static constexpr std::array<std::uint64_t, 1> kOnly{0};

  std::vector<std::shared_ptr<const FieldStorage>> rows_;
  std::uint64_t row_bytes_;
};

// Where only some data sets lie in place, the others are copied.
void ManyDatasets::units(std::span<const std::uint64_t> rows, std::vector<DecodeUnit>& out) const {
  if (in_place() || row_bytes_ == 0) return;
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    const std::size_t before = out.size();
    rows_[rows[i]]->units(kOnly, out);
    if (out.size() == before) out.push_back({});
    for (std::size_t u = before; u < out.size(); ++u) out[u].first = i;
  }
}

std::uint64_t ManyDatasets::decode(const DecodeUnit& unit, std::span<const std::uint64_t> rows,
                                   std::uint32_t file, const FileBytes& bytes,
                                   std::span<std::byte> out, DecodeSpace& space) const {
  const FieldStorage& storage = *rows_[rows[unit.first]];
  const auto row = out.subspan(unit.first * row_bytes_, row_bytes_);
  if (storage.in_place()) {
    std::ranges::copy(storage.value(0, file, bytes), row.begin());
    return 0;
  }
  return storage.decode({.piece = unit.piece, .first = 0, .count = 1}, kOnly, file, bytes, row,
                        space);
}

}  // namespace

std::shared_ptr<const FieldStorage> one_behind_the_other(std::span<const Dataset> datasets) {
  return std::make_shared<ManyDatasets>(datasets);
}

}  // namespace forebay::hdf5
