#include "bench/command/generate/maker.hpp"

#include "forebay/error.hpp"

#ifdef FOREBAY_HDF5

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "format/hdf5/driver.hpp"
#include "program/output.hpp"

namespace forebay::generate {
namespace {

namespace fs = std::filesystem;
using hdf5::Id;
using hdf5::Library;

[[noreturn]] void throw_io(const std::string& path, const std::string& happened) {
  throw Error(ErrorKind::io, happened, "check permissions and free space", at_file(path));
}

hid_t element_type(ElementType type) {
  if (type == ElementType::u16) return H5T_STD_U16LE;
  if (type == ElementType::f32) return H5T_IEEE_F32LE;
  throw Error(ErrorKind::unsupported, fmt::format("fields of {} are not written", to_string(type)));
}

/// `rows` samples of `field`.
std::vector<hsize_t> extents(std::uint64_t rows, const Field& field) {
  std::vector<hsize_t> found{rows};
  found.insert(found.end(), field.shape.begin(), field.shape.end());
  return found;
}

Id space_of(const std::vector<hsize_t>& sizes) {
  return {H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose};
}

/// The open file. Members end in reverse order: the file last.
class Hdf5File final : public SampleFile {
 public:
  Hdf5File(std::string path, Schema schema, const Hdf5Layout& layout)
      : path_(std::move(path)), partial_(path_ + ".partial"), schema_(std::move(schema)) {
    const Library library;
    file_ = checked(
        library, {H5Fcreate(partial_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose});
    for (const Field& field : schema_.fields) add(library, field, layout);
  }

  ~Hdf5File() override {
    if (complete_) return;
    {
      const Library library;
      fields_.clear();
      file_ = {};
    }
    ::unlink(partial_.c_str());
  }

  void write(std::uint64_t row, std::size_t number, std::span<const std::byte> value) override {
    const Library library;
    const Field& field = schema_.fields[number];
    const std::vector<hsize_t> one = extents(1, field);
    std::vector<hsize_t> start(one.size(), 0);
    start[0] = row;
    const Id memory = checked(library, space_of(one));
    const Id space = checked(library, {H5Dget_space(fields_[number].get()), H5Sclose});
    const bool written = H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                             one.data(), nullptr) >= 0 &&
                         H5Dwrite(fields_[number].get(), element_type(field.type), memory.get(),
                                  space.get(), H5P_DEFAULT, value.data()) >= 0;
    if (!written) fail(library);
  }

  void complete() override {
    close();
    const int fd = ::open(partial_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool flushed = fd >= 0 && ::fsync(fd) == 0;
    const int failure = errno;
    if (fd >= 0) ::close(fd);
    if (!flushed) throw_io(partial_, fmt::format("fsync: {}", std::strerror(failure)));
    std::error_code failed;
    fs::rename(partial_, path_, failed);
    if (failed) throw_io(path_, "cannot rename to it: " + failed.message());
    complete_ = true;
  }

 private:
  void close() {
    const Library library;
    fields_.clear();
    if (H5Fflush(file_.get(), H5F_SCOPE_GLOBAL) < 0) fail(library);
    file_ = {};
  }

  [[noreturn]] void fail(const Library& library) const {
    throw_io(partial_, "cannot write HDF5: " + library.last_error());
  }

  Id checked(const Library& library, Id id) const {
    if (!id.valid()) fail(library);
    return id;
  }

  void add(const Library& library, const Field& field, const Hdf5Layout& layout) {
    const Id space = checked(library, space_of(extents(layout.rows, field)));
    const Id made = checked(library, {H5Pcreate(H5P_DATASET_CREATE), H5Pclose});
    const Id access = checked(library, {H5Pcreate(H5P_DATASET_ACCESS), H5Pclose});
    // Equal samples are to give equal files: no times in them, and nothing is filled in advance.
    bool set = H5Pset_obj_track_times(made.get(), false) >= 0 &&
               H5Pset_fill_time(made.get(), H5D_FILL_TIME_NEVER) >= 0;
    if (layout.chunk_rows > 0 && layout.rows > 0) {
      const std::uint64_t rows = std::min(layout.chunk_rows, layout.rows);
      const auto chunk = extents(rows, field);
      set = set && H5Pset_chunk(made.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
            // One chunk is filled after the other: it is compressed once, when the next begins.
            H5Pset_chunk_cache(access.get(), 1, rows * field.bytes(), 1) >= 0;
      if (layout.gzip > 0) {
        set = set && H5Pset_deflate(made.get(), static_cast<unsigned>(layout.gzip)) >= 0;
      }
    }
    if (!set) fail(library);
    fields_.push_back(
        checked(library, {H5Dcreate2(file_.get(), field.name.c_str(), element_type(field.type),
                                     space.get(), H5P_DEFAULT, made.get(), access.get()),
                          H5Dclose}));
  }

  const std::string path_;
  const std::string partial_;
  const Schema schema_;
  Id file_;
  std::vector<Id> fields_;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<SampleFile> create_hdf5(const std::string& path, const Schema& schema,
                                        const Hdf5Layout& layout) {
  return std::make_unique<Hdf5File>(path, schema, layout);
}

}  // namespace forebay::generate

#else

namespace forebay::generate {

std::unique_ptr<SampleFile> create_hdf5(const std::string& path, const Schema&, const Hdf5Layout&) {
  throw Error(ErrorKind::unsupported, "this Forebay was built without HDF5",
              "build it with FOREBAY_HDF5=ON", {.file = path});
}

}  // namespace forebay::generate

#endif
