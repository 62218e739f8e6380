// The figures that every run can give. One struct a rank; whoever has gathered them combine()s
// them.
//
// How to read them: exposed_seconds near zero means that reading hides behind computing; near the
// run time means that training starves. skew_seconds is time that a rank waited for slower ranks.
// read amplification (bytes_requested / bytes_delivered) above 1.4 for small records means that
// bytes are read which nobody gets.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace forebay {

struct LoaderStatistics {
  double open_seconds = 0;         ///< from the call of open to its return
  double first_batch_seconds = 0;  ///< from the call of open to the first delivered batch
  double seek_seconds = 0;  ///< locating records, in the reader, waiting for who helps included
  double read_seconds = 0;  ///< reading records into the stage; with mmap the page faults are here
  double wait_seconds = 0;  ///< the reader waited for a free buffer: large is good
  double turn_seconds = 0;  ///< the reader waited for its turn to read (staggering)
  double decode_seconds = 0;   ///< turning stored values into fields, in all threads together
  double exposed_seconds = 0;  ///< the consumer waited for data: exposed I/O
  double exposed_decode_seconds = 0;  ///< it waited for data that were there to be decoded
  double skew_seconds = 0;            ///< the consumer waited for slower ranks

  /// How many roots may read at once (staggering), on ranks that read; all of them where none is
  /// held back, 0 as long as the number is looked for.
  std::uint64_t roots_at_once = 0;

  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t repeated = 0;         ///< of these, those that fill batches at the end of an epoch
  std::uint64_t dropped = 0;          ///< left out at the end of epochs; counted by rank 0 for all
  std::uint64_t skipped = 0;          ///< left out of their batches: they do not decode
  std::uint64_t bytes_delivered = 0;  ///< stored values handed to the consumer
  /// Samples that this rank has read from storage, in orders that are new in every epoch. Fewer
  /// than were delivered (over all ranks): the rest came from memory once more.
  std::uint64_t samples_read = 0;
  std::uint64_t samples_fetched = 0;  ///< out of the memory of all ranks
  std::uint64_t near_bytes = 0;       ///< of these, copied inside the node
  std::uint64_t far_bytes = 0;        ///< of these, read from other nodes
  double fetch_seconds = 0;           ///< the fetching thread was at it
  /// Deliveries, over all ranks, between two of one sample, on average, where samples are used
  /// again before they are replaced; 0 where they are not.
  double reuse_distance = 0;
  /// Asked from the file system (mapped: pages that were used, or touched in vain).
  std::uint64_t bytes_requested = 0;
  std::uint64_t requests = 0;  ///< explicit reads (mapped: none)
  std::uint64_t pages_visited = 0;
  std::uint64_t records_skipped = 0;
  std::uint64_t missed_pages = 0;     ///< speculation (lmm-dm): needed, and not read ahead
  std::uint64_t redundant_pages = 0;  ///< speculation: read ahead, and not needed
  std::uint64_t chunks_decoded = 0;   ///< of files with fields: filtered chunks
  std::uint64_t bytes_decoded = 0;    ///< of these chunks, once decoded
  std::uint64_t index_bytes = 0;      ///< memory of the index, which the roots of a node share

  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  double busy_seconds = 0;     ///< CPU time of the process since open
  double elapsed_seconds = 0;  ///< wall time since open
  std::uint64_t peak_resident_bytes =
      0;                            ///< most memory of the process so far, mapped pages included
  std::uint64_t private_bytes = 0;  ///< heap and stacks now: what a memory limit bites on
  std::uint64_t mapped_bytes = 0;   ///< mapped files and shared memory now

  /// 1 = the process slept all the time since open, 0 = it computed all the time.
  double asleep_share() const;
  double read_amplification() const;
  /// Part of the deliveries that needed no reading. Of the sums over ranks; 0 where samples_read is
  /// not counted.
  double saved_share() const;
};

/// Sums over ranks; the maximum for the times that opening took and for memory. elapsed_seconds is
/// summed like busy_seconds, so that asleep_share() is the mean.
LoaderStatistics combine(std::span<const LoaderStatistics> ranks);

/// One JSON object with a member a field, plus the derived shares.
std::string to_json(const LoaderStatistics& statistics);

}  // namespace forebay
