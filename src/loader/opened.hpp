// What opening a loader finds out, step by step: each step makes a value of its own out of those
// before it, and fails on all ranks together.
//
//   connect      Ranks     all of them and those of this node, and how they hear of failures
//   team up      Team      who shares a stage, and who reads for it
//   open         Source    the data set, open on roots; what all ranks know of it; where it lies
//   agree        Opened    how values are decoded, and the memory that this leaves for the stage
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "core/placement.hpp"
#include "read/data_access.hpp"
#include "read/mpiio_reader.hpp"
#include "read/root_map.hpp"
#include "read/root_reader.hpp"

namespace forebay {

struct Ranks {
  std::shared_ptr<Communicator> world;  ///< all of them: a duplicate, ours alone
  std::shared_ptr<Communicator> node;
  std::shared_ptr<FailureBoard> board;
  std::shared_ptr<EndSignal> end;
  /// This rank and all ranks as the order knows them: with those of other shards.
  int order_rank = 0;
  int order_ranks = 1;
};

struct Team : Ranks {
  std::shared_ptr<Communicator> group;  ///< the ranks of the node that share a stage
  std::shared_ptr<Communicator> roots;  ///< all roots, on a root
  std::vector<RankGroup> groups;        ///< all of them, their ranks numbered as in the order
  int root = -1;                        ///< this rank's root number, -1 when it does not read
  const RankGroup& own_group() const;
  int all_roots() const;
  /// Last, so that it ends before what it uses; and what uses it before it.
  std::shared_ptr<ProgressThread> progress;
  ProgressThread::Registration notices;
};

struct Source {
  std::string path;
  ReadSetup setup;
  std::shared_ptr<DataAccess> data;    ///< of a root
  DataFacts facts;                     ///< as rank 0 knows them
  std::uint64_t private_bytes = 0;     ///< of a root, beside the stage
  std::uint64_t index_bytes = 0;       ///< that the roots of this node share
  std::shared_ptr<CommonSteps> steps;  ///< of a root, where roots read together
  ProgressThread::Registration steps_served;
};

/// Every rank's consumer holds one batch; what is decoded ahead is as much as half of the stage's
/// memory has room for.
struct DecodePlan {
  unsigned ahead = 0;
  std::uint64_t arrays_bytes = 0;  ///< of decoded batches of all ranks that share the stage
};

struct Opened {
  LoaderOptions options;
  Team team;
  Source source;
  std::string identity;  ///< of the data set
  std::shared_ptr<const Codec> codec;
  std::uint64_t first_value_bytes = 0;  ///< on rank 0
  DecodePlan decoding;

  /// What decoded batches and readers leave of the memory of this rank's stage,
  std::uint64_t bytes_beside_arrays() const;
  /// and the index of that: for its buffers.
  std::uint64_t buffer_bytes() const;
  /// Whether this rank's stage lies in POSIX shared memory: one rank alone needs none.
  bool has_posix_stage() const;
  Placement placement(Component component) const;
};

/// Collective over `comm`; see Loader::open.
Opened open_together(Communicator& comm, const std::string& path, const LoaderOptions& options);

}  // namespace forebay
