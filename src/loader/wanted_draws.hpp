// Where in the memory of all ranks the samples are that one rank draws, in the order of its draws:
// what its fetching thread is to bring (ReadBuffer::Source).
#pragma once

#include <memory>
#include <optional>

#include "exchange/read_buffer.hpp"
#include "loader/opened_loads.hpp"
#include "loader/run_epochs.hpp"

namespace forebay {

/// Data that are held for the whole run: rank p has the samples from floor(p * N / P) on.
Run held_by(int rank, std::uint64_t entries, int ranks);

/// Draws from data that are held. One thread at a time.
class HeldDraws {
 public:
  HeldDraws(RunEpochs epochs, int rank) : epochs_(std::move(epochs)), rank_(rank) {}
  std::optional<WantedBatch> next();

 private:
  RunEpochs epochs_;
  int rank_;
  std::optional<RunEpoch> epoch_;
  std::uint64_t draw_ = 0;  ///< of the epoch, the next
  std::uint64_t end_ = 0;
};

/// Draws from one load after the other. One thread at a time.
class LoadedDraws {
 public:
  LoadedDraws(std::shared_ptr<OpenedLoads> loads, int rank)
      : loads_(std::move(loads)), rank_(rank) {}
  /// Waits until the filling thread has told of the load.
  std::optional<WantedBatch> next();

 private:
  std::shared_ptr<OpenedLoads> loads_;
  int rank_;
  std::optional<OpenedLoad> load_;
  std::uint64_t done_ = 0;  ///< draws of it
};

}  // namespace forebay
