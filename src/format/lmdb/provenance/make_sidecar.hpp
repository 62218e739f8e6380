// Making the sidecar of an existing database, and comparing one with the tree.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/sidecar.hpp"

namespace forebay::lmdb {

/// Records done so far.
using SidecarProgress = std::function<void(std::uint64_t records)>;

enum class WantedForm : std::uint8_t { automatic, table, recipe };

struct MadeSidecar {
  SidecarForm form = SidecarForm::table;
  std::vector<std::byte> bytes;
  std::string why;  ///< automatic: why it is no recipe; empty when it is one
};

/// Walks every leaf once, and for a recipe compares the replay with each of them. Local.
/// Throws usage when a recipe was asked for and none fits (the message says why); as Tree.
MadeSidecar make_sidecar(Database& database, WantedForm form, const SidecarProgress& progress = {});

/// The first difference between `leaves` and the tree, every leaf compared; empty when there is
/// none. Throws as Tree.
std::string first_difference(LeafProducer& leaves, Database& database,
                             const SidecarProgress& progress = {});

}  // namespace forebay::lmdb
