// The state of the page cache before each measured run.
//
//   cold   every run begins with caches dropped, once per kernel (several virtual nodes may share
//          one); only root may
//   warm   each node reads the whole files once, before the first run
//
// What a host keeps below a virtual machine, or a server below a mount, is out of reach: cold means
// cold in this kernel.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/layout.hpp"

namespace forebay::bench {

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
