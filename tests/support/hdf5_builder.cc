#include "tests/support/hdf5_builder.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace forebay::test {
namespace {

constexpr std::uint16_t kFill = 7;

hid_t need(hid_t id) {
  if (id < 0) throw std::runtime_error("libhdf5 failed while a test file was written");
  return id;
}

void need_done(herr_t status) { need(status); }

hid_t element_type(const Hdf5Recipe& recipe) {
  if (recipe.bytes) return H5T_STD_U8LE;
  return recipe.native ? H5T_NATIVE_USHORT : H5T_STD_U16BE;
}

hid_t properties_of(const Hdf5Recipe& recipe) {
  const hid_t properties = need(H5Pcreate(H5P_DATASET_CREATE));
  need_done(H5Pset_fill_value(properties, H5T_NATIVE_USHORT, &kFill));
  if (recipe.compact) need_done(H5Pset_layout(properties, H5D_COMPACT));
  if (recipe.early) need_done(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY));
  if (recipe.chunk.empty()) return properties;
  const std::vector<hsize_t> chunk(recipe.chunk.begin(), recipe.chunk.end());
  need_done(H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()));
  if (recipe.edges_unfiltered) {
    need_done(H5Pset_chunk_opts(properties, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
  }
  if (recipe.shuffle) need_done(H5Pset_shuffle(properties));
  if (recipe.deflate >= 0) need_done(H5Pset_deflate(properties, recipe.deflate));
  if (recipe.fletcher32) need_done(H5Pset_fletcher32(properties));
  return properties;
}

void write_rows(hid_t dataset, hid_t space, const Hdf5Recipe& recipe) {
  std::vector<hsize_t> count(recipe.shape.begin(), recipe.shape.end());
  count[0] = std::min<hsize_t>(count[0], recipe.written);
  std::uint64_t elements = 1;
  for (const hsize_t size : count) elements *= size;
  if (elements == 0) return;
  std::vector<std::uint16_t> values(elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    values[i] = hdf5_value(recipe.name, i);
    if (recipe.bytes) values[i] &= 0xff;
  }
  const std::vector<hsize_t> start(count.size(), 0);
  const hid_t memory =
      need(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  need_done(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
  need_done(H5Dwrite(dataset, H5T_NATIVE_USHORT, memory, space, H5P_DEFAULT, values.data()));
  H5Sclose(memory);
}

void write_dataset(hid_t file, const Hdf5Recipe& recipe) {
  const std::vector<hsize_t> shape(recipe.shape.begin(), recipe.shape.end());
  std::vector<hsize_t> most = shape;
  if (recipe.grows) most[0] = H5S_UNLIMITED;
  const hid_t space =
      need(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), most.data()));
  const hid_t properties = properties_of(recipe);
  const hid_t links = need(H5Pcreate(H5P_LINK_CREATE));
  need_done(H5Pset_create_intermediate_group(links, 1));
  const hid_t dataset = need(H5Dcreate2(file, recipe.name.c_str(), element_type(recipe), space,
                                        links, properties, H5P_DEFAULT));
  write_rows(dataset, space, recipe);
  H5Dclose(dataset);
  H5Pclose(links);
  H5Pclose(properties);
  H5Sclose(space);
}

}  // namespace

void Hdf5Builder::build(const std::string& path) const {
  const hid_t creation = need(H5Pcreate(H5P_FILE_CREATE));
  const hid_t access = need(H5Pcreate(H5P_FILE_ACCESS));
  need_done(H5Pset_userblock(creation, user_block_));
  if (latest_) need_done(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  const hid_t file = need(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access));
  for (const Hdf5Recipe& recipe : recipes_) write_dataset(file, recipe);
  H5Fclose(file);
  H5Pclose(access);
  H5Pclose(creation);
}

std::vector<std::byte> hdf5_row(const Hdf5Recipe& recipe, std::uint64_t row) {
  std::uint64_t elements = 1;
  for (std::size_t d = 1; d < recipe.shape.size(); ++d) elements *= recipe.shape[d];
  std::vector<std::byte> bytes(elements * (recipe.bytes ? 1 : 2));
  for (std::uint64_t i = 0; i < elements; ++i) {
    const std::uint16_t value =
        row < recipe.written ? hdf5_value(recipe.name, row * elements + i) : kFill;
    if (recipe.bytes) {
      bytes[i] = static_cast<std::byte>(value & 0xff);
    } else {
      std::memcpy(&bytes[2 * i], &value, 2);
    }
  }
  return bytes;
}

}  // namespace forebay::test
