#include "format/hdf5/library.hpp"

#include <cstdlib>

namespace forebay::hdf5 {
namespace {

// Guards the library, not data of ours: it has one state for the whole process.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Where the library fails it may lose objects of its own, and would say so when the program ends.
void print_nothing_at_exit() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

herr_t keep_innermost(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

Library::Library() : lock_(library_mutex()) {
  H5open();
  // Registered behind the library's own handler, so it runs before that.
  static const int registered = std::atexit(print_nothing_at_exit);
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

}  // namespace forebay::hdf5
