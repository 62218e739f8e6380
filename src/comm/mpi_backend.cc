#include "comm/mpi_backend.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/mpi_in_process.hpp"
#include "comm/mpi_launcher.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "FOREBAY_MPI_BACKEND";
constexpr const char* kEntry = "forebay_mpi_backend";
constexpr std::array kFlavours = {MpiFlavour::openmpi, MpiFlavour::mpich, MpiFlavour::abi};
constexpr const char* kInstall =
    "install Open MPI (Debian: libopenmpi3) or MPICH (Debian: libmpich12; PyPI: mpich), and a "
    "Forebay "
    "that was built where its mpicxx is";

/// Beside this library, whose own address this is.
fs::path file_of(MpiFlavour flavour) {
  static constexpr char kHere = 0;
  Dl_info where{};
  fs::path folder;
  if (::dladdr(&kHere, &where) != 0 && where.dli_fname != nullptr) {
    folder = fs::path(where.dli_fname).parent_path();
  }
  return folder / fmt::format("libforebay-mpi-{}.so", short_name(flavour));
}

/// The table of a backend that was built with this library; throws unsupported for any other.
const MpiBackendTable& checked_table(void* handle, const fs::path& file) {
  const Where where{.file = file};
  const char* const remedy = "install both from one build of Forebay";
  using Entry = const MpiBackendTable*();
  auto* const entry = reinterpret_cast<Entry*>(::dlsym(handle, kEntry));
  if (entry == nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("this is no MPI backend of Forebay: it does not export {}", kEntry),
                remedy, where);
  }
  const MpiBackendTable& table = *entry();
  if (table.layout == kMpiBackendLayout && std::strcmp(table.version, FOREBAY_VERSION) == 0) {
    return table;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("the MPI backend is of Forebay {} (interface {}), this is Forebay {} "
                          "(interface {})",
                          table.layout == kMpiBackendLayout ? table.version : "of another version",
                          table.layout, FOREBAY_VERSION, kMpiBackendLayout),
              remedy, where);
}

/// A backend must not bring a second MPI library, as one does that was built for another file.
void require_one_mpi(const fs::path& file) {
  const auto libraries = mpi_in_process();
  if (libraries.size() < 2) return;
  throw Error(ErrorKind::usage,
              fmt::format("this process has two MPI libraries: {}", describe(libraries)),
              fmt::format("use one of them, also for the program's other packages; {} is an "
                          "alternative only in a process without MPI",
                          kVariable),
              {.file = file});
}

/// What loading a backend has given: itself, or the reason why there is none.
struct Attempt {
  MpiBackend* mpi = nullptr;
  std::string fault = {};
};

/// Throws where the backend is there and would work, but not here.
Attempt load(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return {.fault = fmt::format("there is no {}", file.string())};
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    return {.fault = reason == nullptr ? "the loader gives no reason" : reason};
  }
  try {
    const MpiBackendTable& table = checked_table(handle, file);
    require_one_mpi(file);
    return {.mpi = table.mpi};
  } catch (...) {
    ::dlclose(handle);
    throw;
  }
}

/// Backends to try, in this order.
struct Choice {
  std::vector<fs::path> files;
  std::string failure;  ///< what is wrong where none of them can be loaded
};

Choice named(const std::string& name) {
  const std::string failure = fmt::format("{}={} cannot be loaded", kVariable, name);
  if (fs::path(name).is_absolute()) return {.files = {name}, .failure = failure};
  for (const MpiFlavour flavour : kFlavours) {
    if (name == short_name(flavour)) return {.files = {file_of(flavour)}, .failure = failure};
  }
  throw Error(ErrorKind::usage, fmt::format("{}={} names no MPI backend", kVariable, name),
              "give openmpi, mpich, abi, or the absolute path of a backend");
}

/// An MPI that is there decides: a second one could not work.
Choice of_process(const std::vector<LoadedMpi>& libraries, const char* name) {
  const MpiFlavour flavour = libraries.front().flavour;
  bool differs = false;
  for (const LoadedMpi& mpi : libraries) differs = differs || mpi.flavour != flavour;
  if (differs) {
    throw Error(ErrorKind::usage,
                fmt::format("this process has two kinds of MPI: {}", describe(libraries)),
                "start it without one of them");
  }
  if (name != nullptr && !fs::path(name).is_absolute() &&
      std::strcmp(name, short_name(flavour)) != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("{}={}, but this process has {}", kVariable, name, describe(libraries)),
                fmt::format("leave {} out, or start the program with the other MPI", kVariable));
  }
  if (name != nullptr) return named(name);
  return {
      .files = {file_of(flavour)},
      .failure = fmt::format("this process has {}, which Forebay cannot use", describe(libraries))};
}

/// The launcher's own first. A library of the standard ABI may be any MPI.
Choice of_environment() {
  std::vector<MpiFlavour> order(kFlavours.begin(), kFlavours.end());
  const auto launcher = find_mpi_launcher();
  if (launcher && launcher->flavour == MpiFlavour::openmpi) {
    order = {MpiFlavour::openmpi, MpiFlavour::abi, MpiFlavour::mpich};
  } else if (launcher) {
    order = {MpiFlavour::mpich, MpiFlavour::abi, MpiFlavour::openmpi};
  }
  Choice choice{.failure = "no MPI library can be loaded"};
  for (const MpiFlavour flavour : order) choice.files.push_back(file_of(flavour));
  return choice;
}

Choice choose() {
  const char* const name = std::getenv(kVariable);
  const auto libraries = mpi_in_process();
  if (!libraries.empty()) return of_process(libraries, name);
  return name != nullptr ? named(name) : of_environment();
}

/// What a process has once, because it has MPI once: MPI_Init cannot be repeated, and MPI calls
/// back into the backend when it is finalized. Never destroyed, as that may come after all
/// destructors.
struct Process {
  std::mutex mutex;
  std::atomic<MpiBackend*> backend = nullptr;
  std::string passed_over;
};

Process& process() {
  static auto& only = *new Process;
  return only;
}

}  // namespace

std::string_view to_string(MpiFlavour flavour) {
  constexpr std::array kNames = {"Open MPI", "MPICH", "the MPI 5 ABI"};
  return kNames.at(static_cast<std::size_t>(flavour));
}

const char* short_name(MpiFlavour flavour) {
  constexpr std::array kNames = {"openmpi", "mpich", "abi"};
  return kNames.at(static_cast<std::size_t>(flavour));
}

MpiBackend& mpi_backend() {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (all.backend != nullptr) return *all.backend;
  const Choice choice = choose();
  std::string faults;
  for (const fs::path& file : choice.files) {
    const Attempt attempt = load(file);
    if (attempt.mpi != nullptr) {
      all.passed_over = faults;
      all.backend = attempt.mpi;
      return *attempt.mpi;
    }
    faults += (faults.empty() ? "" : "; ") + attempt.fault;
  }
  throw Error(ErrorKind::unsupported, fmt::format("{}: {}", choice.failure, faults), kInstall);
}

MpiBackend* loaded_mpi_backend() { return process().backend; }

std::string passed_over_mpi() {
  const std::lock_guard lock(process().mutex);
  return process().passed_over;
}

}  // namespace forebay
