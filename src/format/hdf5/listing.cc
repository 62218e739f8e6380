// Which data sets a file lists, and which links to other files.
#include <algorithm>

#include "format/hdf5/dataset.hpp"

namespace forebay::hdf5 {
namespace {

/// Notes names of what is of a type. Generic, because that of `info` depends on the library's
/// version.
template <auto kWanted>
constexpr auto kNote = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
  try {
    if (info->type == kWanted) static_cast<std::vector<std::string>*>(into)->push_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
};

}  // namespace

std::vector<std::string> list_datasets(const Library& library, const DriverState& state,
                                       hid_t file) {
  std::vector<std::string> names;
  if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, kNote<H5O_TYPE_DATASET>, &names, H5O_INFO_BASIC) <
      0) {
    if (state.failure) throw *state.failure;
    throw Error(ErrorKind::corrupt, "its data sets cannot be listed: " + library.last_error(),
                "the file is damaged: restore it from a copy, or name data sets with '#NAME,...'",
                {.file = state.file->path()});
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> list_external_links(hid_t file) {
  std::vector<std::string> names;
  // Where it fails, listing data sets has failed as well.
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, kNote<H5L_TYPE_EXTERNAL>, &names);
  std::ranges::sort(names);
  return names;
}

std::optional<Elsewhere> external_link(hid_t file, const std::string& path) {
  std::size_t end = path.find('/', 1);
  for (;; end = path.find('/', end + 1)) {
    const std::string begin = path.substr(0, end);
    H5L_info_t info{};
    if (H5Lget_info(file, begin.c_str(), &info, H5P_DEFAULT) < 0) return {};
    if (info.type == H5L_TYPE_EXTERNAL) {
      std::vector<char> value(info.u.val_size);
      const char* name = nullptr;
      const char* object = nullptr;
      if (H5Lget_val(file, begin.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0 ||
          H5Lunpack_elink_val(value.data(), value.size(), nullptr, &name, &object) < 0) {
        return {};
      }
      return Elsewhere{.file = name, .object = object + path.substr(begin.size())};
    }
    if (end == std::string::npos) return {};
  }
}

}  // namespace forebay::hdf5
