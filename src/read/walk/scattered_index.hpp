// locate=scatter: one root seeks for all (TOPC 2019, section 5.1; extent_scatter.hpp).
//
// Before each part, root 0 walks the tree over the samples of all roots and sends everyone the
// leaves of its own. What a root has received becomes a small index of just these leaves, numbered
// from 0, which checks the pages as the index over the whole tree does:
//
//   received piece          samples 800-830        samples 2400-2430
//   leaves                  [790..][811..][822..]  [2396..][2417..]
//   in the small index      [0..  ][21.. ][32..  ]  [43..  ][64..  ]
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "format/lmdb/leaf_index.hpp"
#include "read/root_map.hpp"
#include "read/walk/extent_scatter.hpp"

namespace forebay {

/// Used by the reading thread of one root.
class ScatteredIndex final : public lmdb::RecordIndex {
 public:
  /// `roots` carries nothing else; `database` outlives this. A wait for root 0 lasts at most
  /// `limit`.
  ScatteredIndex(lmdb::Database& database, std::shared_ptr<const RootMap> map,
                 const std::shared_ptr<Communicator>& roots, std::chrono::milliseconds limit,
                 GiveUp give_up);

  /// Gets ready for `part`: seeks for all, or hears what was found. All roots prepare the same
  /// parts in the same order. Throws what Tree throws, communication, cancelled (given up).
  void prepare(const WindowPart& part);
  /// This root prepares nothing any more: where it has sought for all, everyone seeks for itself.
  void leave() {
    if (me_ == 0) link_.leave();
  }

  std::uint64_t entries() const override { return facts_.entries; }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) override;
  void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
              const RecordSink& sink) override;
  std::uint64_t memory_bytes() const override;

 private:
  /// Samples of a received piece, and where they are in the small index.
  struct Stretch {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t local = 0;
  };

  std::vector<LocatedPiece> locate(int root, const WindowPart& part);
  void adopt(const std::vector<LocatedPiece>& pieces);
  std::uint64_t local(std::uint64_t first, std::uint64_t count) const;

  lmdb::Database& database_;
  lmdb::TreeFacts facts_;
  std::shared_ptr<const RootMap> map_;
  int me_;
  int roots_;
  ExtentLink link_;
  GiveUp give_up_;
  std::uint64_t step_ = 0;
  lmdb::Cursor cursor_;  ///< of a root that seeks
  std::vector<Stretch> stretches_;
  std::vector<std::byte> memory_;
  std::unique_ptr<lmdb::LeafIndex> small_;
};

}  // namespace forebay
