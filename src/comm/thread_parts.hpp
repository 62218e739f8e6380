// What ranks as threads, and a process alone, have in the place of MPI's files and windows.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/common_file.hpp"
#include "comm/nonblocking.hpp"
#include "comm/remote_memory.hpp"
#include "forebay/communicator.hpp"
#include "forebay/storage.hpp"

namespace forebay {

/// Plain reads, between which the ranks wait for each other as MPI's might. Keeps `comm`.
std::unique_ptr<CommonFile> open_by_threads(std::shared_ptr<Communicator> comm,
                                            const std::string& path);

using ThreadMemory = std::shared_ptr<std::vector<std::byte>>;
/// `parts`: of all ranks. `near`: which ranks are on this node. All of it lies in this process, but
/// other nodes' only a reader may see.
std::unique_ptr<RemoteMemory> memory_of_threads(int rank, std::vector<ThreadMemory> parts,
                                                std::vector<bool> near);

// Non-blocking collectives among ranks that are threads of one process.
//
// Operations are numbered by the order in which a rank starts them. The n-th operation of all ranks
// is one slot, in which each shows its memory; the last one to come does the work for all, in the
// order of ranks, so that no one ever waits for anyone. A slot keeps the owners of all memory, and
// goes when the last rank has let go of its operation.

/// What the ranks of one NonblockingCollectives share. Thread-safe.
class ThreadOperations;

/// `ended` tells whether a rank has ended with an error: what it has not started never comes.
std::shared_ptr<ThreadOperations> make_thread_operations(int ranks, std::function<bool()> ended);

/// Rank `rank`'s part of them.
std::unique_ptr<NonblockingCollectives> thread_nonblocking(
    std::shared_ptr<ThreadOperations> operations, int rank);

}  // namespace forebay
