// Which data sets a file lists, and which links that lead to no data set of their own.
#include <algorithm>
#include <set>
#include <span>

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

/// By what identifies an object in the file.
struct HardLinks {
  std::set<std::vector<std::byte>> seen;
  std::vector<std::string> again;
};

constexpr auto kNoteAgain = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
  try {
    if (info->type != H5L_TYPE_HARD) return 0;
    auto& links = *static_cast<HardLinks*>(into);
    const auto id = std::as_bytes(std::span(&info->u, 1));
    if (!links.seen.emplace(id.begin(), id.end()).second) links.again.push_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
};

/// In its own file.
bool leads_somewhere(hid_t file, const std::string& link) {
  return H5Oexists_by_name(file, link.c_str(), H5P_DEFAULT) > 0;
}

struct LinkValue {
  std::string name;
  std::vector<char> value;
};

/// The first on the way of `path` that is `wanted`.
template <typename Wanted>
std::optional<LinkValue> first_link(hid_t file, const std::string& path, Wanted&& wanted) {
  std::size_t end = path.find('/', 1);
  for (;; end = path.find('/', end + 1)) {
    LinkValue link{.name = path.substr(0, end), .value = {}};
    H5L_info_t info{};
    if (H5Lget_info(file, link.name.c_str(), &info, H5P_DEFAULT) < 0) return {};
    if (wanted(link.name, info.type)) {
      link.value.resize(info.u.val_size);
      const auto got =
          H5Lget_val(file, link.name.c_str(), link.value.data(), link.value.size(), H5P_DEFAULT);
      return got < 0 ? std::nullopt : std::optional(std::move(link));
    }
    if (end == std::string::npos) return {};
  }
}

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

std::vector<std::string> list_links(hid_t file, LinkKind kind) {
  std::vector<std::string> names;
  const H5L_iterate_t external = kNote<H5L_TYPE_EXTERNAL>;
  const H5L_iterate_t soft = kNote<H5L_TYPE_SOFT>;
  // Where it fails, listing data sets has failed as well.
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, kind == LinkKind::external ? external : soft, &names);
  if (kind == LinkKind::dangling) {
    std::erase_if(names, [&](const std::string& name) { return leads_somewhere(file, name); });
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> list_second_names(hid_t file) {
  HardLinks links;
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, kNoteAgain, &links);
  std::ranges::sort(links.again);
  return std::move(links.again);
}

std::optional<Elsewhere> external_link(hid_t file, const std::string& path) {
  const auto link = first_link(
      file, path, [](const std::string&, H5L_type_t type) { return type == H5L_TYPE_EXTERNAL; });
  const char* name = nullptr;
  const char* object = nullptr;
  if (!link ||
      H5Lunpack_elink_val(link->value.data(), link->value.size(), nullptr, &name, &object) < 0) {
    return {};
  }
  return Elsewhere{.file = name, .object = object + path.substr(link->name.size())};
}

std::optional<std::string> dangling_target(hid_t file, const std::string& path) {
  const auto link = first_link(file, path, [&](const std::string& name, H5L_type_t type) {
    return type == H5L_TYPE_SOFT && !leads_somewhere(file, name);
  });
  if (!link) return {};
  return std::string(link->value.begin(), std::ranges::find(link->value, '\0'));
}

}  // namespace forebay::hdf5
