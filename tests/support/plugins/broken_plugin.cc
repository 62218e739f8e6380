// A storage plug-in with one fault, which the build chooses by BREAK_... definitions; without any,
// it is sound and serves "test://": `rest` is a path, and a word in front of it makes files
// misbehave.
//
//   test://fine:/path        the file
//   test://halves:/path      every read gives half of what was wanted
//   test://short:/path       reads end 100 bytes before the size
//   test://lies:/path        says that it read one byte more than wanted
//   test://throws:/path      reads throw
//   test://fails:/path       reads fail with a text that is no line, and too long
//   test://nothing:/path     opens, and gives no file
//   test://sizeless:/path    the size cannot be told
//   test://slow:/path        reads take a minute
//   test://stuck:/path       open takes a minute
//   test://crawls:/path      a read takes 20 ms
//   test://silent:/path      reads take a minute, wherever they begin
//   test://badclose:/path    close throws
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "forebay/storage_plugin.h"

namespace {

struct TestFile {
  int descriptor = -1;
  std::string mode;
};

int fail(int code, const std::string& text, char* error, size_t size) {
  if (size > 0) std::strncpy(error, text.c_str(), size);  // no zero when it is too long: on purpose
  return code;
}

int init(void**, char* error, size_t size) {
#if defined(BREAK_INIT_FAILS)
  return fail(FOREBAY_STORAGE_IO, "the server is not there", error, size);
#elif defined(BREAK_INIT_THROWS)
  throw std::runtime_error("no configuration");
#else
  static_cast<void>(error);
  static_cast<void>(size);
  return FOREBAY_STORAGE_OK;
#endif
}

void shut_down(void*) {}

int open_file(void*, const char* name, void** file, char* error, size_t size) {
  const std::string text = name;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return fail(FOREBAY_STORAGE_USAGE, "no mode", error, size);
  TestFile opened{.descriptor = -1, .mode = text.substr(0, colon)};
  if (opened.mode == "nothing") return FOREBAY_STORAGE_OK;
  if (opened.mode == "stuck") std::this_thread::sleep_for(std::chrono::minutes(1));
  opened.descriptor = ::open(text.c_str() + colon + 1, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (opened.descriptor < 0) return fail(FOREBAY_STORAGE_NOT_FOUND, "not there", error, size);
  if (::fstat(opened.descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(opened.descriptor);
    return fail(FOREBAY_STORAGE_NOT_FOUND, "a folder", error, size);
  }
  *file = new TestFile(opened);
  return FOREBAY_STORAGE_OK;
}

std::uint64_t bytes_of(const TestFile& file) {
  struct stat status {};
  ::fstat(file.descriptor, &status);
  return static_cast<std::uint64_t>(status.st_size);
}

int size_of(void* file, std::uint64_t* bytes, char* error, size_t size) {
  const auto& opened = *static_cast<TestFile*>(file);
  if (opened.mode == "sizeless") return fail(42, "", error, size);
  *bytes = bytes_of(opened);
  return FOREBAY_STORAGE_OK;
}

int read_some(void* file, std::uint64_t offset, void* into, std::uint64_t wanted,
              std::uint64_t* got, char* error, size_t size) {
  const auto& opened = *static_cast<TestFile*>(file);
  // The first pages are sound, so that a data set can be opened.
  const bool far = offset >= 16384;
  if (far && opened.mode == "throws") throw std::runtime_error("lost\nmy way");
  if (far && opened.mode == "fails") {
    return fail(FOREBAY_STORAGE_IO, "line\none" + std::string(1000, 'x'), error, size);
  }
  if (opened.mode == "crawls") std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (opened.mode == "silent" || (far && opened.mode == "slow"))
    std::this_thread::sleep_for(std::chrono::minutes(1));
  if (opened.mode == "halves") wanted = (wanted + 1) / 2;
  const std::uint64_t all = bytes_of(opened);
  const std::uint64_t end = opened.mode == "short" ? all - 100 : all;
  if (offset >= end) return FOREBAY_STORAGE_OK;
  const auto count =
      ::pread(opened.descriptor, into, std::min(wanted, end - offset), static_cast<off_t>(offset));
  if (count < 0) return fail(FOREBAY_STORAGE_IO, "pread", error, size);
  *got = static_cast<std::uint64_t>(count) + (far && opened.mode == "lies" ? wanted : 0);
  return FOREBAY_STORAGE_OK;
}

void close_file(void* file) {
  auto* const opened = static_cast<TestFile*>(file);
  const bool throws = opened->mode == "badclose";
  ::close(opened->descriptor);
  delete opened;
  if (throws) throw std::runtime_error("closed badly");
}

}  // namespace

#ifndef BREAK_NO_TABLE
const forebay_storage_plugin forebay_storage_plugin_v1 = {
#ifdef BREAK_VERSION
    FOREBAY_STORAGE_ABI + 1,
#else
    FOREBAY_STORAGE_ABI,
#endif
#ifdef BREAK_TABLE_SIZE
    32,
#else
    sizeof(forebay_storage_plugin),
#endif
#if defined(BREAK_SCHEME_TAKEN)
    "file",
#elif defined(BREAK_SCHEME)
    "Not A Scheme",
#elif defined(BREAK_INIT_FAILS) || defined(BREAK_INIT_THROWS)
    "broken",
#else
    "test",
#endif
    init,
    shut_down,
    open_file,
    size_of,
#ifdef BREAK_NO_READ
    nullptr,
#else
    read_some,
#endif
    close_file,
    nullptr,
};
#endif
