// What one rank draws from, buffer by buffer over all epochs, and in which windows of the stage
// that is: for its consumer, and, on a root, for the thread that loads windows.
//
//   DrawList   a rank that reads for itself: buffers and windows are the same
//   NodeList   a rank whose node has roots that read for it: a window has buffers of all ranks
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "read/reading_list.hpp"

namespace forebay {

struct DrawBuffer {
  std::uint64_t epoch = 0;
  std::uint64_t first = 0;  ///< draws of the rank in the epoch, from here on
  std::uint64_t count = 0;
  std::uint64_t first_slot = 0;  ///< of the order's buffer that this is, or is a piece of
  std::uint64_t samples = 0;     ///< that are loaded for it
  std::uint64_t window = 0;      ///< never less than that of the buffer before
  std::uint64_t entry = 0;       ///< of the window, where its samples begin

  bool serves(std::uint64_t of_epoch, std::uint64_t draw) const {
    return epoch == of_epoch && draw >= first && draw - first < count;
  }
};

/// Thread-safe.
class DrawBuffers : public ReadingList {
 public:
  /// How the first buffer of the run is read: whole, or, where the order has nothing against it, in
  /// pieces that begin with one iteration and double, so that the first batch need not wait for
  /// all.
  enum class Begin : std::uint8_t { whole, small };

  /// Buffer `number`, from what was not forgotten on; nothing behind the end of the run.
  virtual std::shared_ptr<const DrawBuffer> at(std::uint64_t number) = 0;
  /// Buffers below `number` are not asked for any more, nor are windows below `window`, which all
  /// roots have read.
  virtual void forget(std::uint64_t number, std::uint64_t window) = 0;
  /// Below which window all has to be there that any rank which shares the stage needs at
  /// `iteration` of `epoch`; nothing where each looks after itself. Ascending.
  virtual std::optional<std::uint64_t> windows_for(std::uint64_t epoch,
                                                   std::uint64_t iteration) = 0;
};

/// Throws usage when a window of `samples` of one rank is more than it has entries for.
void require_entries(std::uint64_t samples, std::uint64_t most);

}  // namespace forebay
