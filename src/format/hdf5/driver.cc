#include "format/hdf5/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace forebay::hdf5 {

namespace {

// Guards the library, not data of ours: it has one state for the whole process.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Where the library fails it may lose objects of its own, and would say so when the program ends.
/// Its end waits for its own lock, which a thread holds that storage does not answer: then the
/// program ends without it.
void print_nothing_at_exit(int status, void*) {
  std::unique_lock lock(library_mutex(), std::defer_lock);
  // Asked for again and again: the thread sanitizer does not know of waits with a limit.
  for (int tries = 0; tries < 200; ++tries) {
    if (lock.try_lock()) {
      H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

herr_t keep_innermost(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

Library::Library() : lock_(library_mutex()) {
  H5open();
  // Registered behind the library's own handler, so it runs before that.
  static const int registered = ::on_exit(print_nothing_at_exit, nullptr);
  static_cast<void>(registered);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

// What the rest of the process has set is put back: others may use the library, and want to see.
Library::~Library() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::string Library::last_error() const {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.empty() ? "no reason given" : text;
}
namespace {

// Metadata come in pieces of some hundred bytes that lie near each other; shared file systems
// answer a few larger requests sooner.
constexpr std::uint64_t kWindowBytes = 16384;

// The library sees the first member only.
struct OpenDriver {
  H5FD_t base = {};
  DriverState* state = nullptr;
  haddr_t end_of_addresses = 0;
};

// What travels in the library's access properties, which copies it.
struct DriverInfo {
  DriverState* state = nullptr;
};

OpenDriver& of(H5FD_t* file) { return *reinterpret_cast<OpenDriver*>(file); }
const OpenDriver& of(const H5FD_t* file) { return *reinterpret_cast<const OpenDriver*>(file); }

H5FD_t* open_driver(const char* name, unsigned flags, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr || (flags & H5F_ACC_RDWR) != 0) return nullptr;
  // An external link opens other files with the same driver.
  if (info->state->file->path() != name) return nullptr;
  auto* driver = new (std::nothrow) OpenDriver;
  if (driver == nullptr) return nullptr;
  driver->state = info->state;
  return &driver->base;
}

herr_t close_driver(H5FD_t* file) {
  delete &of(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = 0;
  return 0;
}

haddr_t get_end_of_addresses(const H5FD_t* file, H5FD_mem_t) { return of(file).end_of_addresses; }

herr_t set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  of(file).end_of_addresses = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) { return of(file).state->size; }

void fill_window(DriverState& state, std::uint64_t offset) {
  state.window.resize(std::min(kWindowBytes, state.size - offset));
  state.window_offset = offset;
  try {
    state.file->read(offset, state.window);
  } catch (...) {
    state.window.clear();
    throw;
  }
}

void read_metadata(DriverState& state, std::uint64_t offset, std::span<std::byte> out) {
  if (out.size() > kWindowBytes) return state.file->read(offset, out);
  const bool inside = offset >= state.window_offset &&
                      offset - state.window_offset <= state.window.size() &&
                      out.size() <= state.window.size() - (offset - state.window_offset);
  if (!inside) fill_window(state, offset);
  std::memcpy(out.data(), state.window.data() + (offset - state.window_offset), out.size());
}

// Called from C: no exception may leave it.
herr_t read_driver(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t offset, std::size_t length,
                   void* into) {
  DriverState& state = *of(file).state;
  if (type == H5FD_MEM_DRAW && state.looks_up) {
    state.wanted = WantedData{.offset = offset, .length = length};
    return 0;
  }
  if (offset > state.size || length > state.size - offset) return -1;
  try {
    read_metadata(state, offset, {static_cast<std::byte*>(into), length});
    return 0;
  } catch (const Error& error) {
    state.failure = error;
  } catch (const std::exception&) {
    // Out of memory; the library reports the failed read.
  }
  return -1;
}

herr_t write_driver(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

int compare(const H5FD_t* a, const H5FD_t* b) { return a < b ? -1 : (a > b ? 1 : 0); }

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value =
      static_cast<H5FD_class_value_t>(512);  // the range of drivers that nobody registers
#endif
  driver.name = "forebay";
  driver.maxaddr = (haddr_t{1} << 63) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open_driver;
  driver.close = close_driver;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = get_end_of_addresses;
  driver.set_eoa = set_end_of_addresses;
  driver.get_eof = get_end_of_file;
  driver.read = read_driver;
  driver.write = write_driver;
  for (H5FD_mem_t& kind : driver.fl_map) kind = H5FD_MEM_DEFAULT;
  return driver;
}

Error open_error(const Library& library, const DriverState& state) {
  if (state.failure) return *state.failure;
  return {ErrorKind::corrupt,
          fmt::format("libhdf5 cannot open this file of {} bytes: {}", state.size,
                      library.last_error()),
          "the file is damaged, was cut, or is still being written: copy it again from its source "
          "('h5clear -s' of the HDF5 tools helps where a writer was killed)",
          {.file = state.file->path()}};
}

}  // namespace

DriverFile::DriverFile(const Library& library, DriverState& state) {
  state.size = state.file->size();
  const H5FD_class_t driver = driver_class();  // copied by the library
  driver_ = Id(H5FDregister(&driver), H5FDunregister);
  access_ = Id(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const DriverInfo info{.state = &state};
  if (!driver_.valid() || !access_.valid() ||
      H5Pset_driver(access_.get(), driver_.get(), &info) < 0) {
    throw Error(ErrorKind::unsupported,
                "libhdf5 does not take a file driver: " + library.last_error(),
                "use a libhdf5 of version 1.10 or later", {.file = state.file->path()});
  }
  file_ = Id(H5Fopen(state.file->path().c_str(), H5F_ACC_RDONLY, access_.get()), H5Fclose);
  if (!file_.valid()) throw open_error(library, state);
}

}  // namespace forebay::hdf5
