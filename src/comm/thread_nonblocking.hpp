// Non-blocking collectives among ranks that are threads of one process.
//
// Operations are numbered by the order in which a rank starts them. The n-th operation of all ranks
// is one slot, in which each shows its memory; the last one to come does the work for all, in the
// order of ranks, so that no one ever waits for anyone. A slot keeps the owners of all memory, and
// goes when the last rank has let go of its operation.
#pragma once

#include <functional>
#include <memory>

#include "comm/nonblocking.hpp"

namespace forebay {

/// What the ranks of one NonblockingCollectives share. Thread-safe.
class ThreadOperations;

/// `ended` tells whether a rank has ended with an error: what it has not started never comes.
std::shared_ptr<ThreadOperations> make_thread_operations(int ranks, std::function<bool()> ended);

/// Rank `rank`'s part of them.
std::unique_ptr<NonblockingCollectives> thread_nonblocking(
    std::shared_ptr<ThreadOperations> operations, int rank);

}  // namespace forebay
