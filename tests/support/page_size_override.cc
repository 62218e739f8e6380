#include "tests/support/page_size_override.hpp"

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

// libc's own function under its second name.
extern "C" long __sysconf(int name);  // NOLINT(bugprone-reserved-identifier)

// Sanitizers call this before they are ready to be called back, hence no instrumentation.
extern "C" __attribute__((no_sanitize("thread", "address", "undefined"))) long sysconf(
    int name) noexcept {
  const long override = forebay::test::page_size_override;
  return name == _SC_PAGESIZE && override != 0 ? override : __sysconf(name);
}
