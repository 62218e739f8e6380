#include "comm/thread_parts.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

class CopyingReader final : public RemoteReader {
 public:
  explicit CopyingReader(std::vector<ThreadMemory> parts) : parts_(std::move(parts)) {}

  void start(std::span<const RemotePiece> pieces) override {
    for (const RemotePiece& piece : pieces) {
      const auto& part = *parts_[static_cast<std::size_t>(piece.owner)];
      if (piece.to.empty()) continue;
      std::memcpy(piece.to.data(), part.data() + piece.offset, piece.to.size());
    }
  }
  void finish(const WaitPolicy& policy) override {
    if (policy.interrupt) policy.interrupt();
  }
  bool serve() override { return false; }
  bool quiet() const override { return true; }

 private:
  std::vector<ThreadMemory> parts_;
};

/// Plain reads, between which the ranks wait for each other as MPI's might.
class ThreadFile final : public CommonFile {
 public:
  ThreadFile(std::shared_ptr<Communicator> comm, const std::string& path)
      : comm_(std::move(comm)), file_(open_file(path, Engine::pread)) {}

  // As with MPI, an error keeps nobody from what the others wait for.
  void read_all(std::span<const FilePiece> pieces) override {
    std::exception_ptr failed;
    try {
      for (const FilePiece& piece : pieces) read(piece.offset, piece.into);
    } catch (...) {
      failed = std::current_exception();
    }
    comm_->barrier();
    if (failed) std::rethrow_exception(failed);
  }
  /// What is behind the end of the file is left as it is.
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) override {
    const std::uint64_t size = file_->size();
    const std::uint64_t count = std::min<std::uint64_t>(into.size(), size - std::min(offset, size));
    if (count > 0) file_->read(offset, into.first(count));
    return count;
  }
  std::string describe() const override { return "plain reads in the place of MPI-IO"; }

 private:
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<const File> file_;
};

/// All of it lies in this process, but other nodes' only a reader may see.
class ThreadRemoteMemory final : public RemoteMemory {
 public:
  ThreadRemoteMemory(int rank, std::vector<ThreadMemory> parts, std::vector<bool> near)
      : rank_(rank), parts_(std::move(parts)), near_(std::move(near)) {}

  std::span<std::byte> mine() const override { return *parts_[static_cast<std::size_t>(rank_)]; }
  std::span<const std::byte> direct(int rank) const override {
    const auto place = static_cast<std::size_t>(rank);
    return near_[place] ? std::span<const std::byte>(*parts_[place]) : std::span<const std::byte>();
  }
  std::uint64_t bytes(int rank) const override {
    return parts_[static_cast<std::size_t>(rank)]->size();
  }
  bool several_nodes() const override { return std::ranges::find(near_, false) != near_.end(); }
  void publish() override {}
  std::unique_ptr<RemoteReader> make_reader(Transport, std::string&) override {
    return std::make_unique<CopyingReader>(parts_);
  }
  std::string describe() const override { return "memory of this process"; }

 private:
  int rank_;
  std::vector<ThreadMemory> parts_;
  std::vector<bool> near_;
};

enum class Kind : std::uint8_t { all_reduce, broadcast, all_gather, all_to_all, barrier };

/// What one rank has given to one operation.
struct Part {
  Kind kind = Kind::barrier;
  TensorType type = TensorType::float32;
  Combination how = Combination::sum;
  int root = 0;
  SharedBytes mine;
  SharedBytes theirs;  ///< the result, where it has a place of its own
};

bool fits(const Part& a, const Part& b) {
  return a.kind == b.kind && a.how == b.how && a.root == b.root && a.type == b.type &&
         a.mine.bytes.size() == b.mine.bytes.size();
}

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!to.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
}

void reduce(std::span<const Part> parts) {
  std::vector<const std::byte*> sources;
  for (const Part& part : parts) sources.push_back(part.mine.bytes.data());
  std::vector<std::byte> result(parts.front().mine.bytes.size());
  combine_all(parts.front().type, parts.front().how, sources, result);
  for (const Part& part : parts) copy(part.mine.bytes, result);
}

void gather(std::span<const Part> parts) {
  const std::size_t size = parts.front().mine.bytes.size();
  for (const Part& to : parts) {
    for (std::size_t from = 0; from < parts.size(); ++from) {
      copy(to.theirs.bytes.subspan(from * size, size), parts[from].mine.bytes);
    }
  }
}

void exchange(std::span<const Part> parts) {
  const std::size_t block = parts.front().mine.bytes.size() / parts.size();
  for (std::size_t to = 0; to < parts.size(); ++to) {
    for (std::size_t from = 0; from < parts.size(); ++from) {
      copy(parts[to].theirs.bytes.subspan(from * block, block),
           parts[from].mine.bytes.subspan(to * block, block));
    }
  }
}

void carry_out(std::span<const Part> parts) {
  const Part& first = parts.front();
  switch (first.kind) {
    case Kind::all_reduce:
      return reduce(parts);
    case Kind::broadcast:
      for (const Part& part : parts) {
        copy(part.mine.bytes, parts[static_cast<std::size_t>(first.root)].mine.bytes);
      }
      return;
    case Kind::all_gather:
      return gather(parts);
    case Kind::all_to_all:
      return exchange(parts);
    case Kind::barrier:
      return;
  }
}

struct Slot {
  explicit Slot(std::size_t ranks) : parts(ranks) {}

  std::vector<Part> parts;
  std::size_t came = 0;
  std::atomic<bool> complete = false;
  std::string fault;  ///< read when complete
};

}  // namespace

class ThreadOperations {
 public:
  ThreadOperations(int ranks, std::function<bool()> ended)
      : ranks_(static_cast<std::size_t>(ranks)), ended_(std::move(ended)) {}

  int ranks() const { return static_cast<int>(ranks_); }
  bool ended() const { return ended_ && ended_(); }

  std::shared_ptr<Slot> show(std::uint64_t number, int rank, Part part) {
    std::shared_ptr<Slot> slot;
    {
      const std::lock_guard lock(mutex_);
      auto& place = slots_[number];
      if (!place) place = std::make_shared<Slot>(ranks_);
      slot = place;
      slot->parts[static_cast<std::size_t>(rank)] = std::move(part);
      if (++slot->came < ranks_) return slot;
      slots_.erase(number);
    }
    complete(*slot);
    return slot;
  }

 private:
  static void complete(Slot& slot) {
    const Part& first = slot.parts.front();
    if (std::ranges::all_of(slot.parts, [&](const Part& part) { return fits(first, part); })) {
      carry_out(slot.parts);
    } else {
      slot.fault = "ranks have started different operations";
    }
    slot.complete.store(true, std::memory_order_release);
  }

  std::size_t ranks_;
  std::function<bool()> ended_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Slot>> slots_;  ///< for which some ranks have not come
};

namespace {

class ThreadOperation final : public StartedOperation {
 public:
  ThreadOperation(std::shared_ptr<ThreadOperations> operations, std::shared_ptr<Slot> slot)
      : operations_(std::move(operations)), slot_(std::move(slot)) {}

  bool done() override {
    if (!slot_->complete.load(std::memory_order_acquire)) {
      if (!operations_->ended() || slot_->complete) return false;
      throw Error(ErrorKind::communication, "another rank ended", "");
    }
    if (!slot_->fault.empty()) throw Error(ErrorKind::communication, slot_->fault, "");
    return true;
  }

 private:
  std::shared_ptr<ThreadOperations> operations_;
  std::shared_ptr<Slot> slot_;
};

class ThreadNonblocking final : public NonblockingCollectives {
 public:
  ThreadNonblocking(std::shared_ptr<ThreadOperations> operations, int rank)
      : operations_(std::move(operations)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return operations_->ranks(); }

  Operation all_reduce(SharedBytes values, TensorType type, Combination how) override {
    return start({.kind = Kind::all_reduce, .type = type, .how = how, .mine = std::move(values)});
  }
  Operation broadcast(SharedBytes data, int root) override {
    return start({.kind = Kind::broadcast, .root = root, .mine = std::move(data)});
  }
  Operation all_gather(SharedBytes mine, SharedBytes all) override {
    require_gatherable(mine.bytes.size(), all.bytes.size(), size());
    return start({.kind = Kind::all_gather, .mine = std::move(mine), .theirs = std::move(all)});
  }
  Operation all_to_all(SharedBytes mine, SharedBytes theirs) override {
    require_exchangeable(mine.bytes.size(), theirs.bytes.size(), size());
    return start({.kind = Kind::all_to_all, .mine = std::move(mine), .theirs = std::move(theirs)});
  }
  Operation barrier() override { return start({}); }

 private:
  Operation start(Part part) {
    auto slot = operations_->show(started_++, rank_, std::move(part));
    return std::make_unique<ThreadOperation>(operations_, std::move(slot));
  }

  std::shared_ptr<ThreadOperations> operations_;
  int rank_;
  std::uint64_t started_ = 0;
};

}  // namespace

std::shared_ptr<ThreadOperations> make_thread_operations(int ranks, std::function<bool()> ended) {
  return std::make_shared<ThreadOperations>(ranks, std::move(ended));
}

std::unique_ptr<NonblockingCollectives> thread_nonblocking(
    std::shared_ptr<ThreadOperations> operations, int rank) {
  return std::make_unique<ThreadNonblocking>(std::move(operations), rank);
}

std::unique_ptr<CommonFile> open_by_threads(std::shared_ptr<Communicator> comm,
                                            const std::string& path) {
  return std::make_unique<ThreadFile>(std::move(comm), path);
}

std::unique_ptr<RemoteMemory> memory_of_threads(int rank, std::vector<ThreadMemory> parts,
                                                std::vector<bool> near) {
  return std::make_unique<ThreadRemoteMemory>(rank, std::move(parts), std::move(near));
}

}  // namespace forebay
