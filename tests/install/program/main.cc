// A project outside the tree: opens a file with Forebay, and sees an Error as one.
#include <cstdio>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/storage.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto file = forebay::open_file(argv[1], forebay::Engine::mmap);
  const auto alone = forebay::self_communicator();
  std::printf("%llu bytes, %d rank\n", static_cast<unsigned long long>(file->size()),
              alone->size());
  try {
    forebay::open_file("/nonexistent", forebay::Engine::pread);
  } catch (const forebay::Error& error) {
    return error.kind() == forebay::ErrorKind::not_found && !file->map().empty() ? 0 : 1;
  }
  return 1;
}
