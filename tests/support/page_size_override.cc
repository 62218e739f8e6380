#include "tests/support/page_size_override.hpp"

#include <dlfcn.h>
#include <unistd.h>

namespace forebay::test {
namespace {

thread_local long page_size_override = 0;

}  // namespace

PageSizeOverride::PageSizeOverride(std::size_t bytes) {
  page_size_override = static_cast<long>(bytes);
}

PageSizeOverride::~PageSizeOverride() { page_size_override = 0; }

}  // namespace forebay::test

extern "C" long sysconf(int name) noexcept {
  using Function = long (*)(int);
  static const auto original = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "sysconf"));
  if (name == _SC_PAGESIZE && forebay::test::page_size_override != 0) {
    return forebay::test::page_size_override;
  }
  return original(name);
}
