#include "measure/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/node_groups.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"
#include "forebay/storage.hpp"
#include "format/convention/database_list.hpp"
#include "format/dataset_files.hpp"
#include "format/lmdb/dataset_path.hpp"
#include "format/registry.hpp"

namespace forebay::bench {
namespace {

constexpr const char* kSwitch = "/proc/sys/vm/drop_caches";

/// A name that all processes of one running kernel share, and no others.
std::array<char, 40> kernel_name() {
  std::array<char, 40> name{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(name.data(), name.size() - 1);
  return name;
}

void drop_caches() {
  ::sync();  // pages that are not written yet would stay
  std::ofstream file(kSwitch);
  if (file << "3" && file.flush()) return;
  throw Error(ErrorKind::io, std::string("cannot drop the page cache: ") + std::strerror(errno),
              "run as root, or without --cold", {.file = kSwitch});
}

}  // namespace

Layout find_layout(Communicator& comm) {
  Layout layout;
  layout.node = comm.split_by_node();
  NodesOfRanks nodes = find_nodes(comm, *layout.node);
  layout.node_of_rank = std::move(nodes.node);
  layout.nodes = nodes.count;
  return layout;
}

nlohmann::ordered_json heading_of(std::string_view bench, const Layout& layout) {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
  return {{"bench", bench},
          {"date", date.data()},
          {"mpi", mpi_thread_level()},
          {"ranks", layout.node_of_rank.size()},
          {"nodes", layout.nodes}};
}

std::vector<std::string> files_of(const std::string& dataset) {
  const Format format = find_format(recognise_files(dataset), dataset);
  if (!format.names_itself) return find_files(dataset);
  std::vector<std::string> files;
  for (const std::string& database : convention::all_databases(dataset)) {
    files.push_back(lmdb::resolve_dataset_path(database).data_file);
  }
  return files;
}

PageCache::PageCache(Communicator& comm, const Layout& layout, std::vector<std::string> files,
                     bool cold)
    : comm_(&comm), files_(std::move(files)), cold_(cold), fills_(!cold && layout.leads_node()) {
  if (!cold_) return;
  const auto kernels = gather_all(comm, kernel_name());
  const auto first = std::ranges::find(kernels, kernel_name());
  drops_ = first - kernels.begin() == comm.rank();
  collectively(comm, [&] {
    if (!drops_ || ::access(kSwitch, W_OK) == 0) return;
    throw Error(ErrorKind::usage, "--cold needs permission to drop the page cache",
                "run as root, or without --cold", {.file = kSwitch});
  });
}

void PageCache::prepare() {
  collectively(*comm_, [&] {
    if (drops_) drop_caches();
    if (fills_) fill();
  });
  fills_ = false;
}

void PageCache::fill() const {
  std::vector<std::byte> block(std::size_t{8} << 20);
  for (const std::string& path : files_) {
    const auto file = open_file(path, Engine::pread);
    const std::uint64_t size = file->size();
    for (std::uint64_t offset = 0; offset < size; offset += block.size()) {
      file->read(offset, std::span(block).first(std::min(block.size(), size - offset)));
    }
  }
}

}  // namespace forebay::bench
