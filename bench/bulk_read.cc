// How fast the engines fill shared memory from a file, window after window, as roots do.
//
//   bulk_read FILE ENGINE DEPTH PIECE_BYTES WINDOW_BYTES [cold] [direct] [random=COUNT]
//
// ENGINE: mmap, pread, uring; or plain: DEPTH threads of bare preads, each into its own part of the
// window; or copy: the same threads copy out of a mapping whose pages are there. WINDOW_BYTES of
// shared memory are touched beforehand and filled again and again until the file is read once.
// `cold` drops the file (only) from the page cache first; `random` reads COUNT pieces at random
// places, none twice, with read-ahead off. Prints one JSON line.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/cold_file.hpp"
#include "core/non_copyable.hpp"
#include "storage/bulk_reader.hpp"

namespace {

using forebay::Engine;
using forebay::ReadRequest;

struct Run {
  std::string path;
  std::string engine;
  unsigned depth = 1;
  std::size_t piece = 0;
  std::size_t window = 0;
  bool cold = false;
  bool direct = false;
  std::size_t random = 0;
};

/// Pages that everybody who maps them sees: of a file, or of memory.
class Mapping : private forebay::NonCopyable {
 public:
  Mapping(std::size_t size, int protection, int flags, int fd = -1) : size_(size) {
    address_ = mmap(nullptr, size, protection, MAP_SHARED | flags, fd, 0);
    if (address_ == MAP_FAILED) throw std::runtime_error("no pages can be mapped");
  }
  ~Mapping() { munmap(address_, size_); }

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_}; }

 private:
  void* address_;
  std::size_t size_;
};

Engine engine_of(const std::string& name) {
  if (name == "mmap") return Engine::mmap;
  if (name == "pread") return Engine::pread;
  if (name == "uring") return Engine::uring;
  throw std::invalid_argument("ENGINE is plain, copy, mmap, pread or uring");
}

/// The windows of the run: what each read() is asked for.
std::vector<std::vector<ReadRequest>> plan(const Run& run, std::size_t size,
                                           std::span<std::byte> memory) {
  std::vector<std::vector<ReadRequest>> windows;
  if (run.random == 0) {
    for (std::size_t at = 0; at < size; at += run.window) {
      windows.push_back({{at, memory.first(std::min(run.window, size - at))}});
    }
    return windows;
  }
  std::vector<std::size_t> pieces(size / run.piece);
  std::iota(pieces.begin(), pieces.end(), std::size_t{0});
  std::ranges::shuffle(pieces, std::mt19937_64(1));
  pieces.resize(std::min(run.random, pieces.size()));
  const std::size_t in_window = run.window / run.piece;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i % in_window == 0) windows.emplace_back();
    windows.back().push_back(
        {pieces[i] * run.piece, memory.subspan(i % in_window * run.piece, run.piece)});
  }
  return windows;
}

/// Bytes that `read` (place in the file, memory) brings, which tells how many: thread t fills its
/// part of the memory over and over.
template <typename Read>
std::size_t fill(const Run& run, std::size_t size, std::span<std::byte> memory, const Read& read) {
  const std::size_t part = std::max(memory.size() / run.depth, run.piece);
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> bytes{0};
  const auto body = [&](std::size_t thread) {
    std::size_t place = 0;
    for (std::size_t at = next.fetch_add(run.piece); at < size; at = next.fetch_add(run.piece)) {
      if (place + run.piece > part) place = 0;
      const auto into = memory.subspan(thread * part + place, std::min(run.piece, size - at));
      bytes += read(at, into);
      place += run.piece;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < run.depth; ++t) threads.emplace_back(body, t);
  }
  return bytes;
}

std::size_t read_plainly(const Run& run, std::size_t size, std::span<std::byte> memory) {
  const int fd = open(run.path.c_str(), O_RDONLY);
  const std::size_t bytes = fill(run, size, memory, [fd](std::size_t at, auto into) {
    const ssize_t got = pread(fd, into.data(), into.size(), static_cast<off_t>(at));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  });
  close(fd);
  return bytes;
}

void measure(const Run& run) {
  const bool copy = run.engine == "copy";
  const bool plain = run.engine == "plain" || copy;
  // A plain reader needs a piece of memory for each thread.
  const Mapping memory(plain ? std::max(run.window, run.depth * run.piece) : run.window,
                       PROT_READ | PROT_WRITE, MAP_ANONYMOUS);
  std::ranges::fill(memory.bytes(), std::byte{1});
  const auto file = forebay::open_file(run.path, plain ? Engine::pread : engine_of(run.engine));
  const auto windows =
      plain ? std::vector<std::vector<ReadRequest>>{} : plan(run, file->size(), memory.bytes());
  std::unique_ptr<forebay::BulkReader> reader;
  if (!plain) {
    reader = make_bulk_reader(file, engine_of(run.engine),
                              {.depth = run.depth,
                               .request_bytes = run.piece,
                               .scattered = run.random > 0,
                               .direct = run.direct});
  }
  if (run.cold) drop_from_cache(run.path);
  std::optional<Mapping> pages;  // the file, with all that its cache has of it
  if (copy) {
    const int fd = open(run.path.c_str(), O_RDONLY);
    pages.emplace(file->size(), PROT_READ, MAP_POPULATE, fd);
    close(fd);
  }
  const auto begin = std::chrono::steady_clock::now();
  std::size_t bytes = 0;
  if (copy) {
    bytes = fill(run, file->size(), memory.bytes(), [&pages](std::size_t at, auto into) {
      std::memcpy(into.data(), pages->bytes().data() + at, into.size());
      return into.size();
    });
  } else if (plain) {
    bytes = read_plainly(run, file->size(), memory.bytes());
  }
  for (const auto& window : windows) {
    reader->read(window, [&](std::size_t i) { bytes += window[i].into.size(); });
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  fmt::print(R"({{"engine":"{}{}","depth":{},"piece":{},"window":{},"cold":{},"random":{},)"
             R"("bytes":{},"seconds":{:.6f}}})"
             "\n",
             run.engine, run.direct ? "-direct" : "", run.depth, run.piece, run.window, run.cold,
             run.random, bytes, elapsed.count());
}

Run parse(int argc, char** argv) {
  Run run{.path = argv[1], .engine = argv[2]};
  run.depth = static_cast<unsigned>(std::stoul(argv[3]));
  run.piece = std::stoul(argv[4]);
  run.window = std::stoul(argv[5]);
  for (int i = 6; i < argc; ++i) {
    const std::string_view word = argv[i];
    run.cold = run.cold || word == "cold";
    run.direct = run.direct || word == "direct";
    if (word.starts_with("random=")) run.random = std::stoul(std::string(word.substr(7)));
  }
  if (run.depth == 0 || run.piece == 0 || run.window < run.piece) {
    throw std::invalid_argument("DEPTH and PIECE_BYTES: from 1 on; WINDOW_BYTES: at least a piece");
  }
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs(
        "usage: bulk_read FILE ENGINE DEPTH PIECE_BYTES WINDOW_BYTES [cold] [direct] "
        "[random=COUNT]\n",
        stderr);
    return 2;
  }
  try {
    measure(parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bulk_read: {}\n", error.what());
    return 1;
  }
}
