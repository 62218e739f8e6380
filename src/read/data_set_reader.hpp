// Samples of any data set into the stage, each as one value: see format/data_set.hpp.
//
//   plan      which bytes the samples of a part need, each once    DataSet::plan
//   read      in few large requests                                BulkReader
//
// Where samples lie in their file as they are delivered, they are read straight into the stage and
// entries point at them. Else bytes are read into memory of the reader's own, and
//
//   decode    what cannot be used as it lies in the file                      } by several threads
//   assemble  the parts of each sample are copied to their place             }
//
// A part whose bytes do not fit into that memory is brought in slices, by sample. Slices alternate
// between two halves of the memory, so that one is on its way while the one before is unpacked,
// also over the end of a part:
//
//   read 0 | read 1             | read 2             | ...
//          | decode, assemble 0 | decode, assemble 1 | ...
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/worker_pool.hpp"
#include "format/sample_reader.hpp"
#include "read/piece_reader.hpp"
#include "read/private_memory.hpp"
#include "read/reading_list.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

struct DataSetParts {
  const DataSet* data = nullptr;
  std::unique_ptr<BulkReader> bulk;  ///< of data->whole()
  std::uint64_t gap_bytes = 0;
  std::uint64_t private_bytes = 0;  ///< memory for what is read and decoded beside the stage
  unsigned threads = 1;             ///< that decode, the reading thread among them
  Placement placement;              ///< of the others
};

/// All references must outlive it.
class DataSetReader final : public PieceReader {
 public:
  DataSetReader(DataSetParts parts, ReadingList& list, Stage& stage, int root, Turns& turns);
  ~DataSetReader() override;

  void read(const WindowPart& part, const std::optional<WindowPart>& next) override;
  void check_unchanged() override;
  ReadTotals totals() const override;
  bool abandoned() const override { return parts_.bulk->abandoned(); }
  void leave() override { parts_.bulk->cancel(); }

 private:
  /// Consecutive samples of a part, and the bytes that they need.
  struct Slice {
    std::size_t first = 0;  ///< of Transfer::ids
    std::unique_ptr<const Plan> plan;
    std::vector<PlacedExtent> reads;
    std::span<std::byte> memory = {};
    std::vector<ReadRequest> requests = {};
  };
  /// A part on its way into the stage.
  struct Transfer {
    WindowPart part;
    std::vector<std::uint64_t> ids;  ///< ascending, but for repeats and the data set's end
    std::vector<std::uint64_t> entries;
    std::vector<Slice> slices;
    bool begun = false;    ///< in the stage
    bool reading = false;  ///< its first slice
  };
  std::unique_ptr<Transfer> prepare(const WindowPart& part);
  bool fits(std::uint64_t bytes, std::uint64_t scratch) const;
  void cut(Transfer& transfer, std::size_t first, std::size_t count);
  void bring(Transfer& transfer, const std::optional<WindowPart>& next);
  void start(Transfer& transfer, Slice& slice);
  void start_next();
  void begin(Transfer& transfer);
  void finish();
  void unpack(const Transfer& transfer, const Slice& slice);
  void point_at(const Transfer& transfer, const Slice& slice, const FileBytes& bytes,
                std::span<const std::byte> scratch);
  void assemble(const Transfer& transfer, const Slice& slice, const FileBytes& bytes,
                std::span<const std::byte> scratch);
  std::span<std::byte> take_keys(const Transfer& transfer, const Slice& slice,
                                 const FileBytes& data);
  void decode(const Slice& slice, const FileBytes& bytes, std::span<std::byte> scratch);

  // These outlive parts_.bulk, which reads what they ask for until it is told otherwise.
  std::unique_ptr<Transfer> current_;
  std::unique_ptr<Transfer> next_;  ///< what the next call is for: planned, perhaps started
  std::array<PrivateMemory, 2> memory_;
  std::size_t half_ = 0;  ///< of memory_, for the next slice
  PrivateMemory scratch_;
  DataSetParts parts_;
  const bool in_place_;       ///< samples are read straight into the stage
  const bool scratch_is_it_;  ///< what decoding writes is what is delivered
  WorkerPool pool_;
  std::mutex spaces_mutex_;
  std::vector<DecodeSpace> spaces_;  ///< those that no thread uses
  ReadingList& list_;
  Stage& stage_;
  int root_;
  Turns& turns_;
  ReadTotals totals_;
  DecodeCounters decoded_before_;       ///< of the source, by others
  std::vector<std::uint32_t> touched_;  ///< files read from since they were last checked
};

}  // namespace forebay
