// The yardstick: how fast large plain preads get a whole file into memory.
//
//   plain_read FILE READERS [BLOCK_BYTES]
//
// READERS threads take the next block of BLOCK_BYTES (8 MiB unless given) in file order until the
// end. Prints one JSON line. Nothing is looked at: this is what the file system and one memory copy
// allow, and no reader of records in that file can deliver more bytes than this moves.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::size_t size() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) throw std::system_error(errno, std::generic_category());
    return static_cast<std::size_t>(status.st_size);
  }
  /// Bytes read: `length`, or fewer at the end of the file or after an error.
  std::size_t read(std::byte* into, std::size_t length, std::size_t offset) const {
    std::size_t done = 0;
    while (done < length) {
      const ssize_t got =
          pread(descriptor_, into + done, length - done, static_cast<off_t>(offset + done));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  int descriptor_;
};

/// Reads blocks until none is left; returns the bytes.
std::size_t read_blocks(const OpenFile& file, std::size_t block, std::size_t size,
                        std::atomic<std::size_t>& next) {
  const auto buffer = std::make_unique<std::byte[]>(block);
  std::size_t bytes = 0;
  for (std::size_t offset = next.fetch_add(block); offset < size; offset = next.fetch_add(block)) {
    bytes += file.read(buffer.get(), block, offset);
  }
  return bytes;
}

void run(const std::string& path, unsigned long readers, std::size_t block) {
  if (readers == 0 || block == 0) throw std::invalid_argument("READERS and BLOCK_BYTES: from 1 on");
  const OpenFile file(path);
  const std::size_t size = file.size();
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> bytes{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (unsigned long i = 0; i < readers; ++i) {
      threads.emplace_back([&] { bytes += read_blocks(file, block, size, next); });
    }
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (bytes != size) throw std::runtime_error(path + ": could not be read to its end");
  fmt::print(R"({{"readers":{},"block":{},"bytes":{},"seconds":{:.6f}}})"
             "\n",
             readers, block, size, elapsed.count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fputs("usage: plain_read FILE READERS [BLOCK_BYTES]\n", stderr);
    return 2;
  }
  try {
    run(argv[1], std::stoul(argv[2]), argc == 4 ? std::stoul(argv[3]) : std::size_t{8} << 20);
  } catch (const std::exception& error) {
    fmt::print(stderr, "plain_read: {}\n", error.what());
    return 1;
  }
}
