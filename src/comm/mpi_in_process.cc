#include "comm/mpi_in_process.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace forebay {
namespace {

/// Names of all objects of the process that may be an MPI library or need one. The program itself
/// has the name "", under which dlopen() means all that was linked to it.
std::vector<std::string> objects() {
  std::vector<std::string> names = {""};
  const auto note = [](dl_phdr_info* object, std::size_t, void* out) {
    const std::string name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
    const std::string file = std::filesystem::path(name).filename();
    // Not our own backends: the library that one of them needs is here by itself.
    if (file.find("mpi") != std::string::npos && !file.starts_with("libforebay")) {
      static_cast<std::vector<std::string>*>(out)->push_back(name);
    }
    return 0;
  };
  ::dl_iterate_phdr(note, &names);
  return names;
}

/// The object that defines the function, among those that `handle` stands for.
std::optional<Dl_info> definition(void* handle, const char* function) {
  Dl_info where{};
  const void* const symbol = ::dlsym(handle, function);
  if (symbol == nullptr || ::dladdr(symbol, &where) == 0) return std::nullopt;
  return where.dli_fname == nullptr ? std::nullopt : std::optional(where);
}

/// The kind of the MPI library that lies at `where`.
MpiFlavour flavour_of(void* handle, const Dl_info& where) {
  const std::string name = std::filesystem::path(where.dli_fname).filename();
  if (name.starts_with("libmpi_abi.")) return MpiFlavour::abi;
  // The mpi.h of every Open MPI names this function, and no other's does.
  const auto own = definition(handle, "OMPI_C_MPI_DUP_FN");
  return own && own->dli_fbase == where.dli_fbase ? MpiFlavour::openmpi : MpiFlavour::mpich;
}

/// The MPI library that the object is or needs.
std::optional<LoadedMpi> mpi_of(const std::string& object) {
  void* const handle = ::dlopen(object.empty() ? nullptr : object.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return std::nullopt;
  std::optional<LoadedMpi> found;
  // Tools that count calls define MPI_Init_thread as well, but not this name.
  if (const auto where = definition(handle, "PMPI_Init_thread")) {
    found = LoadedMpi{
        .flavour = flavour_of(handle, *where), .file = where->dli_fname, .base = where->dli_fbase};
  }
  ::dlclose(handle);
  return found;
}

}  // namespace

std::vector<LoadedMpi> mpi_in_process() {
  std::vector<LoadedMpi> found;
  for (const std::string& object : objects()) {
    const auto mpi = mpi_of(object);
    if (mpi && std::ranges::find(found, mpi->base, &LoadedMpi::base) == found.end()) {
      found.push_back(*mpi);
    }
  }
  return found;
}

std::string describe(const std::vector<LoadedMpi>& libraries) {
  std::string text;
  for (const LoadedMpi& mpi : libraries) {
    if (!text.empty()) text += " and ";
    text += fmt::format("{} ({})", to_string(mpi.flavour), mpi.file);
  }
  return text;
}

}  // namespace forebay
