// What the size of the stage's pages is worth to a kernel that computes on it.
//
//   stage_pages [MEBIBYTES]
//
// The same two kernels over memory of five kinds. `stream` is what a decoder does to a batch: bytes
// to floats, minus a mean, summed. `random` sums 8-byte words at random places, one from each page
// visited, so that nearly every access needs another translation. `fill_ms` is what making the
// memory cost. Prints one JSON line for each kind. `huge_mib` is how much of it has 2 MiB pages;
// the kinds that this system does not allow show 0.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

#include "core/non_copyable.hpp"

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kRandomReads = 20'000'000;
constexpr int kRepeats = 3;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older C libraries do not name

enum class Pages { plain, advised, collapsed };

struct Kind {
  const char* name;
  bool shared;
  Pages pages;
};

constexpr Kind kKinds[] = {
    {"private, 4 KiB pages", false, Pages::plain},
    {"private, MADV_HUGEPAGE", false, Pages::advised},
    {"shared, 4 KiB pages", true, Pages::plain},
    {"shared, MADV_HUGEPAGE", true, Pages::advised},
    {"shared, MADV_COLLAPSE", true, Pages::collapsed},
};

double seconds_of(auto&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Memory at a multiple of 2 MiB; shared memory as the stage gets it: a tmpfs file without a name.
class Memory : private forebay::NonCopyable {
 public:
  Memory(const Kind& kind, std::size_t size) : size_(size), span_(size + kHugePage) {
    base_ = mmap(nullptr, span_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto at = (reinterpret_cast<std::uintptr_t>(base_) + kHugePage - 1) & ~(kHugePage - 1);
    int fd = -1;
    if (kind.shared) {
      fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
      if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
        throw std::runtime_error("/dev/shm: no file can be made");
      }
    }
    const int flags = kind.shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    address_ =
        mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    if (fd >= 0) close(fd);
    if (address_ == MAP_FAILED) throw std::runtime_error("no memory");
    if (kind.pages != Pages::advised) madvise(address_, size, MADV_NOHUGEPAGE);
    if (kind.pages == Pages::advised) madvise(address_, size, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < size; i += 4096) bytes()[i] = static_cast<unsigned char>(i >> 12);
    if (kind.pages == Pages::collapsed) {
      madvise(address_, size, MADV_HUGEPAGE);  // takes MADV_NOHUGEPAGE back
      madvise(address_, size, kCollapse);
    }
  }
  ~Memory() { munmap(base_, span_); }

  std::span<unsigned char> bytes() const { return {static_cast<unsigned char*>(address_), size_}; }

  /// From the kernel's own account of this mapping.
  std::size_t huge_bytes() const {
    std::ifstream maps("/proc/self/smaps");
    const std::string start = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(address_));
    std::string line;
    while (std::getline(maps, line) && !line.starts_with(start)) {
    }
    std::size_t kib = 0;
    while (std::getline(maps, line) && !line.starts_with("VmFlags")) {
      if (line.starts_with("AnonHugePages:") || line.starts_with("ShmemPmdMapped:")) {
        kib += std::stoul(line.substr(line.find(':') + 1));
      }
    }
    return kib << 10;
  }

 private:
  std::size_t size_;
  std::size_t span_;
  void* base_ = nullptr;
  void* address_ = nullptr;
};

float stream(std::span<const unsigned char> bytes) {
  float sums[16] = {};
  for (std::size_t i = 0; i + 16 <= bytes.size(); i += 16) {
    for (std::size_t k = 0; k < 16; ++k) sums[k] += static_cast<float>(bytes[i + k]) - 127.5F;
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

std::uint64_t random_words(std::span<const unsigned char> bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  const std::size_t count = bytes.size() / sizeof(std::uint64_t);
  std::uint64_t state = 1;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kRandomReads; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sum += words[static_cast<std::size_t>((state >> 32) * count >> 32)];
  }
  return sum;
}

void measure(const Kind& kind, std::size_t size) {
  double stream_s = 1e9;
  double random_s = 1e9;
  std::size_t huge = 0;
  double fill_s = 1e9;
  std::uint64_t seen = 0;  // printed, so that no kernel is optimized away
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Memory memory(kind, size);
    const std::chrono::duration<double> made = std::chrono::steady_clock::now() - begin;
    fill_s = std::min(fill_s, made.count());
    stream_s = std::min(stream_s, seconds_of([&] {
                          seen += static_cast<std::uint64_t>(stream(memory.bytes()) != 0);
                        }));
    random_s = std::min(random_s, seconds_of([&] { seen += random_words(memory.bytes()); }));
    huge = memory.huge_bytes();
  }
  fmt::print(R"({{"memory":"{}","mib":{},"huge_mib":{},"fill_ms":{:.0f},"stream_mb_s":{:.0f},)"
             R"("random_ns":{:.2f},"seen":{}}})"
             "\n",
             kind.name, size >> 20, huge >> 20, fill_s * 1e3,
             static_cast<double>(size) / 1e6 / stream_s,
             random_s * 1e9 / static_cast<double>(kRandomReads), seen % 10);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::size_t mebibytes = argc > 1 ? std::stoul(argv[1]) : 1024;
    for (const Kind& kind : kKinds) measure(kind, mebibytes << 20);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stage_pages: {}\n", error.what());
    return 1;
  }
}
