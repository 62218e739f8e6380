// Reading through MPI-IO (engine mpiio), in its two ways:
//
//   independent   each root by itself (MPI_File_read_at), by the threads of the pread engine
//   collective    the reads of all roots for one part of a window in one call
//                 (MPI_File_read_at_all), so that the library can merge them and let few processes
//                 read for all
//
// The collective way needs all roots to make the same calls. They do, because in the strided order
// every root reads every part of every window, if only nothing; with staggering or orders in which
// ranks read for themselves they do not. A root that fails or ends early must not leave the others
// in a call that they cannot leave, so before each call, and after it, the roots meet in a step
// that all take or none (CommonSteps): the second one tells all that nobody's read has failed, as a
// library may report an error only to the rank that met it. Reads that only one root makes (a scan
// at open, what an index that was wrong has to read again) go the independent way.
//
// Inside a collective call nothing can be given up: a server that does not answer ends in the
// timeout of those who wait for the data.
#pragma once

#include <memory>
#include <string>

#include "comm/common_file.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

/// Reads `path` independently; `file` is the same file, for its size and identity. Collective only
/// over `alone`, a communicator of this rank.
std::unique_ptr<BulkReader> make_independent_reader(Communicator& alone,
                                                    std::shared_ptr<const File> file,
                                                    const BulkOptions& options);

class CollectiveReader final : public BulkReader {
 public:
  /// `common` is open on all roots. `give_up` ends waits for other roots.
  CollectiveReader(std::shared_ptr<const File> file, std::unique_ptr<CommonFile> common,
                   std::shared_ptr<CommonSteps> steps, GiveUp give_up);

  /// Only notes what to read: the others cannot be waited for behind the caller's back.
  void start(std::span<const ReadRequest> requests) override;
  /// Throws cancelled when another root has failed or ended.
  void finish(const Done& done) override;
  void cancel() noexcept override { requests_ = {}; }
  BulkCounters counters() const override { return counters_; }
  bool abandoned() const override { return false; }
  std::string describe() const override;

 private:
  void meet_others();
  void read_with_others(std::span<const ReadRequest> requests);

  std::shared_ptr<const File> file_;
  std::unique_ptr<CommonFile> common_;
  std::shared_ptr<CommonSteps> steps_;
  GiveUp give_up_;
  std::span<const ReadRequest> requests_;
  BulkCounters counters_;
};

}  // namespace forebay
