// The machine that runs are measured on: which ranks share a node, and what its page cache holds
// before each run.
//
//   cold   every run begins with caches dropped, once per kernel (several virtual nodes may share
//          one); only root may
//   warm   each node reads the whole files once, before the first run
//
// What a host keeps below a virtual machine, or a server below a mount, is out of reach: cold means
// cold in this kernel.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay::bench {

struct Layout {
  std::shared_ptr<Communicator> node;  ///< the ranks of this node
  std::vector<int> node_of_rank;       ///< nodes are numbered by their first rank
  int nodes = 0;

  bool leads_node() const { return node->rank() == 0; }
};

/// Collective.
Layout find_layout(Communicator& comm);

/// What stored results begin with: the benchmark's name, the date ("2026-03-07", universal time),
/// how MPI was started, ranks and nodes.
nlohmann::ordered_json heading_of(std::string_view bench, const Layout& layout);

/// Those that hold the samples of `dataset`, whatever its format. Throws as opening it does.
std::vector<std::string> files_of(const std::string& dataset);

class PageCache {
 public:
  /// Collective. Throws usage when `cold` is asked for and some node may not drop its caches.
  PageCache(Communicator& comm, const Layout& layout, std::vector<std::string> files, bool cold);

  /// Before a run. Collective.
  void prepare();

 private:
  void fill() const;

  Communicator* comm_;
  std::vector<std::string> files_;
  bool cold_;
  bool fills_;          ///< this rank reads the files for its node
  bool drops_ = false;  ///< this rank drops the caches of its kernel
};

}  // namespace forebay::bench
