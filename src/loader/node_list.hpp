// What the ranks of a node draw from, window by window over all epochs, where roots read for them:
// a window has the buffers of all ranks that begin to serve in its iterations (DrawWindows), each
// sample as often as ranks want it, by sample: what neighbours want of one page is read together.
//
//   window     |0                 |1                 |2   ...
//   entries    |rank 0   |rank 1  |rank 0   |rank 1  |
//   file       ...|r1|r0 r0|..|r1 r0|....  in the order of the file, an equal part to each root
//
// All windows of an epoch are there on every node, also where a node has nothing to read in some:
// so the turns of all roots are the same.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loader/buffer_walk.hpp"
#include "loader/draw_buffers.hpp"
#include "order/draw_windows.hpp"

namespace forebay {

/// Who reads for whom.
struct NodeShare {
  std::vector<int> ranks;  ///< of the order, those that share the stage; own entries in this order
  std::size_t own = 0;     ///< of these, the rank that asks
  int root = -1;           ///< its number among the roots; -1: it does not read
  int roots = 1;
};

class NodeList final : public DrawBuffers {
 public:
  /// `order` is that of `epochs`, and of `windows`.
  NodeList(const OrderOptions& order, RunEpochs epochs, const DrawWindows& windows, NodeShare share,
           Begin begin = Begin::whole);

  std::shared_ptr<const DrawBuffer> at(std::uint64_t number) override;
  void forget(std::uint64_t number, std::uint64_t window) override;
  std::optional<std::uint64_t> windows_for(std::uint64_t epoch, std::uint64_t iteration) override;

  std::uint64_t iterations(std::uint64_t window) override;
  /// Of a root.
  std::vector<SampleRun> runs(const WindowPart& part) override;

 private:
  /// Samples of a buffer that one rank draws from.
  struct Piece {
    std::vector<Run> loads;
    Run slots;  ///< of these
    std::uint64_t entry = 0;
  };
  struct Window {
    std::uint64_t epoch = 0;
    std::uint64_t end = 0;  ///< behind its iterations, counted in the epoch
    std::vector<Piece> pieces = {};
  };
  /// A rank whose buffers are listed here.
  struct Member {
    RankBuffers buffers;
    std::uint64_t entry;  ///< where its part of a window begins
    std::uint64_t share;  ///< draws an iteration
    bool own = false;
    std::optional<Buffer> next = {};  ///< not, or not all of it, in a window yet
    std::uint64_t listed = 0;         ///< draws of that one which are
  };

  bool begin_epoch();
  void extend();
  void add_buffers(Member& member, Window& window);
  void add_piece(const Member& member, Window& window, const Run& draws, const Run& slots,
                 std::uint64_t entry);

  std::mutex mutex_;
  RunEpochs epochs_;
  DrawWindows grid_;
  NodeShare share_;
  std::vector<Member> members_;  ///< all on a root; else this rank alone
  std::shared_ptr<const RunEpoch> epoch_;
  std::uint64_t step_ = 0;        ///< of the epoch, in no window yet
  bool small_;                    ///< windows are, until the first whole one is through
  std::uint64_t small_from_ = 0;  ///< where the run has begun, then
  bool ended_ = false;
  bool draws_nothing_ = false;  ///< the own rank, in this epoch and all that follow
  Numbered<Window> windows_;
  Numbered<DrawBuffer> own_;
};

}  // namespace forebay
