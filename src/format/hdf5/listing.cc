// Which data sets a file lists, and which links that lead to no data set of their own.
#include <algorithm>

#include "format/hdf5/dataset.hpp"

namespace forebay::hdf5 {
namespace {

struct Objects {
  std::vector<std::string> all;
  std::vector<std::string> datasets;
  std::vector<std::string> with_attributes;
};

// Generic, because the types of `info` depend on the library's version.
constexpr auto kNoteObject = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
  try {
    auto& objects = *static_cast<Objects*>(into);
    objects.all.emplace_back(name);
    if (info->type == H5O_TYPE_DATASET) objects.datasets.emplace_back(name);
    // Their names are not asked for: on damaged files that ends the process (found by fuzzing
    // 1.10.8).
    const bool file = std::string_view(name) == ".";
    if (info->num_attrs > 0 && !file) objects.with_attributes.emplace_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
};

/// `aliases` gets all hard links.
constexpr auto kNoteLink = [](hid_t, const char* name, const auto* info, void* into) -> herr_t {
  try {
    auto& names = *static_cast<Listing*>(into);
    if (info->type == H5L_TYPE_HARD) names.aliases.emplace_back(name);
    if (info->type == H5L_TYPE_SOFT) names.soft.emplace_back(name);
    if (info->type == H5L_TYPE_EXTERNAL) names.external.emplace_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
};

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

bool leads_somewhere(hid_t file, const std::string& link) {
  return H5Oexists_by_name(file, link.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> Listing::links() const {
  std::vector<std::string> all = aliases;
  all.insert(all.end(), soft.begin(), soft.end());
  all.insert(all.end(), external.begin(), external.end());
  return all;
}

Listing list_names(const Library& library, const DriverState& state, hid_t file,
                   const std::string& group) {
  const std::string root = "/" + group;
  Objects objects;
  Listing names;
  if (H5Ovisit_by_name2(file, root.c_str(), H5_INDEX_NAME, H5_ITER_INC, kNoteObject, &objects,
                        H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT) < 0 ||
      H5Lvisit_by_name(file, root.c_str(), H5_INDEX_NAME, H5_ITER_INC, kNoteLink, &names,
                       H5P_DEFAULT) < 0) {
    if (state.failure) throw *state.failure;
    throw Error(ErrorKind::corrupt, "its data sets cannot be listed: " + library.last_error(),
                "the file is damaged: restore it from a copy, or name data sets with '#NAME,...'",
                {.file = state.file->path()});
  }
  std::ranges::sort(objects.all);
  std::erase_if(names.aliases, [&](const std::string& name) {
    return std::ranges::binary_search(objects.all, name);
  });
  names.datasets = std::move(objects.datasets);
  names.with_attributes = std::move(objects.with_attributes);
  for (auto* list :
       {&names.datasets, &names.with_attributes, &names.aliases, &names.soft, &names.external}) {
    std::ranges::sort(*list);
    if (group.empty()) continue;
    for (std::string& name : *list) name.insert(0, group + "/");
  }
  return names;
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
