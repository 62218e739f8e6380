// A plan of records by an index: their leaves and overflow runs; keys and values where they lie.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "format/lmdb/record_index.hpp"

namespace forebay::lmdb {

/// An index, its lock, which plans share, and what it refers to.
struct LockedIndex {
  std::mutex mutex;
  std::shared_ptr<void> database;
  PeerMemory memory;
  std::shared_ptr<RecordIndex> index;
};

class RecordPlan final : public Plan {
 public:
  RecordPlan(std::shared_ptr<LockedIndex> index, std::span<const IdRun> runs);

  std::size_t units() const override { return 0; }
  void decode(std::size_t, const FileBytes&, std::span<std::byte>, DecodeSpace&) const override {}
  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte> scratch) const override;
  std::span<const std::byte> key(std::size_t position, const FileBytes& bytes) const override;
  void unpack(std::size_t parts, const FileBytes& bytes, std::span<const std::byte> scratch,
              const FoundSink& sink) const override;

 private:
  struct PlannedRun {
    IdRun ids;
    std::size_t position = 0;  ///< of the first
  };

  void find_extents() const override;
  Record record(std::size_t position, const FileBytes& bytes) const;

  std::shared_ptr<LockedIndex> index_;
  std::vector<PlannedRun> runs_;
  mutable bool found_ = false;  ///< the extents; under the lock
};

}  // namespace forebay::lmdb
