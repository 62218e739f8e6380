// A training run on disk: everything from which it goes on with the same numbers.
//
//   offset  bytes   content
//   0       16      "FOREBAY-TRAIN-2\n"
//   16      8       H, length of the header (little endian, as all numbers here)
//   24      H       header: one JSON object (CheckpointHeader)
//   24+H    4*P     parameters (float)
//           4*S     statistics: running means and variances
//           4*Q     state of the solver
//   end-8   8       XXH3-64 of all bytes before
//
// Files are named for their iteration ("000000000938.checkpoint") and appear whole or not at all:
// written under a temporary name, flushed to the device, then renamed. They are not trusted: every
// length is checked against the size of the file, and the whole against its hash. Version 1 knew
// one solver and images alone; it is refused.
//
// All functions are local to one process, and throw Error naming the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "train/network.hpp"
#include "train/solver.hpp"

namespace forebay {

struct CheckpointHeader {
  std::string net;
  Shape input;
  std::uint64_t outputs = 0;
  std::string solver;
  std::uint64_t parameters = 0;    ///< P
  std::uint64_t statistics = 0;    ///< S
  std::uint64_t solver_state = 0;  ///< Q
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;   ///< iterations done
  std::uint64_t batches = 0;     ///< of the loader, in them
  std::uint64_t epoch = 0;       ///< epochs done, tests included
  double loss_sum = 0;           ///< over the samples of the unfinished epoch,
  std::uint64_t loss_count = 0;  ///< and their number
  GrowthState growth;            ///< of the batch
  std::string train_state;       ///< Loader::state of the training set
  std::string test_state;        ///< of the test set; empty without one
  bool operator==(const CheckpointHeader&) const = default;
};

/// JSON text form of a header, for other ranks. parse throws corrupt.
std::string to_text(const CheckpointHeader& header);
CheckpointHeader parse_checkpoint_header(const std::string& text);

/// The arrays of a run, in the network and in the solver; not owned.
struct TrainingState {
  std::span<float> parameters;
  std::span<float> statistics;
  std::span<float> solver;
};

/// Writes a checkpoint into `directory` (made if missing) and returns its path. Throws io.
std::string write_checkpoint(const std::string& directory, const CheckpointHeader& header,
                             const TrainingState& state);

/// Removes all but the `keep` latest checkpoints in `directory` up to that of `iteration`; those of
/// later iterations are of another run. Returns how many. What cannot be removed stays.
std::size_t thin_checkpoints(const std::string& directory, std::uint64_t iteration,
                             std::uint64_t keep);
/// Removes what runs that were killed while they wrote have left, where file systems know no files
/// without names; nothing that was written to within the last hour.
void remove_unfinished_checkpoints(const std::string& directory);

/// The checkpoint of the highest iteration in `directory`. Throws not_found.
std::string latest_checkpoint(const std::string& directory);

/// Reads and checks the header alone. Throws not_found, io, corrupt.
CheckpointHeader read_checkpoint_header(const std::string& path);

/// Reads the arrays into `state`, whose lengths must be those of the header.
/// Throws not_found, io, corrupt; what `state` holds is then undefined.
void read_checkpoint(const std::string& path, const TrainingState& state);

}  // namespace forebay
