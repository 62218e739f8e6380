#include "exchange/exchange.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/messages.hpp"
#include "comm/node_groups.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kAlignment = 64;  // a cache line
constexpr std::chrono::seconds kLongestFarewell{5};
// How often to look whether another node has failed.
constexpr std::chrono::milliseconds kNews{100};

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Exchange::Exchange(ExchangeParts parts, const ExchangeOptions& options)
    : options_(options), board_(std::move(parts.board)) {
  collectively(*parts.world, [&] { check_options(); });
  comm_ = parts.world->split(0, parts.world->rank());
  node_ = parts.node->split(0, parts.node->rank());
  leaders_ = comm_->split(node_->rank() == 0 ? 0 : 1, comm_->rank());
  for (Communicator* comm : {comm_.get(), node_.get(), leaders_.get()}) {
    comm->set_timeout(options_.filling_patience);
    comm->set_interrupt([this] { check_others(); });
  }
  node_of_ = find_nodes(*comm_, *node_).node;
  if (!options_.grow) collectively(*comm_, [&] { require_memory(); });
  const auto buffers = static_cast<std::size_t>(options_.buffers);
  const std::uint64_t bytes = aligned(options_.share_bytes) * buffers;
  memory_ = comm_->expose(*node_, bytes, options_.memory);
  if (!options_.grow) collectively(*comm_, [&] { memory_->reserve(0, bytes); });
  transport_ = choose_transport(*comm_, *memory_, parts.progress,
                                {.forced = options_.transport,
                                 .longest_rest = options_.longest_rest,
                                 .failed = [this](const Error& error) { board_->fail(error); }});
  listen(parts.progress);
  tables_.resize(buffers);
  share_ = empty_share(0);
  comm_->barrier();
}

Exchange::~Exchange() { meet_at_the_end(); }

/// Also while nobody waits for anything, for check().
void Exchange::listen(ProgressThread* progress) {
  if (progress == nullptr || !comm_->concurrent()) return;
  notices_ = progress->add(
      [board = board_, next = std::chrono::steady_clock::now()]() mutable {
        const auto now = std::chrono::steady_clock::now();
        if (now < next) return false;
        next = now + kNews;
        board->poll();
        return false;
      },
      kNews);
}

void Exchange::meet_at_the_end() {
  if (!memory_ || board_->failed()) return;
  try {
    comm_->set_timeout(kLongestFarewell);
    comm_->barrier();
  } catch (const Error& error) {
    if (board_->failed()) return;
    log(LogLevel::warning, "the exchange ends here before it ends elsewhere: {}", error.what());
    board_->fail(Error(ErrorKind::cancelled,
                       "this rank has left the exchange, and with it its share of the samples",
                       "end loaders on all ranks at about the same time"));
  }
}

void Exchange::check_options() const {
  const auto refuse = [](const std::string& happened, const char* remedy) {
    throw Error(ErrorKind::usage, happened, remedy);
  };
  if (options_.buffers < 1 || options_.buffers > 16) {
    refuse(fmt::format("an exchange of {} buffers", options_.buffers), "use 1, or 2 to overlap");
  }
  if (options_.longest_piece < 1 || options_.longest_piece > kLongestMessage) {
    refuse(fmt::format("pieces of {} bytes", options_.longest_piece), "use 1 to 2^30");
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  if (options_.share_bytes > kMost) {
    refuse(fmt::format("a share of {} bytes", options_.share_bytes), "lower the memory ratio");
  }
}

/// MPI would allocate what is not there, and the first touch would then kill the process.
void Exchange::require_memory() const {
  const auto shares = gather_all(*node_, options_.share_bytes);
  std::uint64_t needed = 0;
  for (const std::uint64_t share : shares) {
    needed += aligned(share) * static_cast<std::uint64_t>(options_.buffers);
  }
  const std::uint64_t free = free_shared_memory();
  if (needed <= free) return;
  throw Error(ErrorKind::io,
              fmt::format("the shares of this node need {} bytes of shared memory, {} are free",
                          needed, free),
              "make /dev/shm larger (mount -o remount,size=...), or lower --memory-ratio");
}

std::size_t Exchange::buffer_of(std::uint64_t generation) const {
  return generation % static_cast<std::uint64_t>(options_.buffers);
}

HeldShare Exchange::empty_share(std::uint64_t generation) const {
  const std::uint64_t first = buffer_of(generation) * aligned(options_.share_bytes);
  const auto reserve = [memory = memory_.get(), first](std::uint64_t begin, std::uint64_t end) {
    memory->reserve(first + begin, end - begin);
  };
  return {memory_->mine().subspan(first, options_.share_bytes), options_.sample_bytes, reserve};
}

HeldShare& Exchange::filling() {
  if (filling_) return share_;
  throw Error(ErrorKind::usage, "the shares are open: there is none to fill", "call begin() first");
}

std::uint64_t Exchange::open() {
  filling();
  share_tables(tables_[buffer_of(next_)]);
  memory_->publish();
  comm_->barrier();
  filling_ = false;
  generations_.open();
  return next_++;
}

void Exchange::begin() {
  if (filling_) throw Error(ErrorKind::usage, "a share is being filled already", "call open()");
  const auto buffers = static_cast<std::uint64_t>(options_.buffers);
  if (next_ >= buffers) {
    generations_.wait_released(next_ - buffers, policy(options_.filling_patience, {}));
  }
  comm_->barrier();
  share_ = empty_share(next_);
  filling_ = true;
}

std::uint64_t Exchange::swap() {
  const std::uint64_t generation = open();
  begin();
  return generation;
}

// All tables, one after the other by rank, in the shared memory of each node: every rank writes its
// own on its node, and the first ranks of the nodes tell each other the rest.
void Exchange::share_tables(Tables& tables) {
  const bool same = options_.sample_bytes != 0;
  const ShareSize mine{.samples = share_.samples(),
                       .table_bytes = same ? 0 : encoded_table_bytes(share_.ends())};
  const auto sizes = gather_all(*comm_, mine);
  tables.of_ranks.clear();
  if (same) {
    for (const ShareSize& size : sizes) {
      tables.of_ranks.push_back(ShareTable::fixed(size.samples, options_.sample_bytes));
    }
    return;
  }
  std::vector<std::uint64_t> begins{0};
  for (const ShareSize& size : sizes) begins.push_back(begins.back() + size.table_bytes);
  if (!tables.memory || tables.memory->bytes().size() < begins.back()) {
    tables.memory = node_->share(begins.back() + begins.back() / 4, SharedMemoryKind::posix);
  }
  collectively(*comm_, [&] { tables.memory->reserve(0, begins.back()); });
  const auto all = tables.memory->bytes().first(begins.back());
  const std::uint64_t me = begins[static_cast<std::size_t>(comm_->rank())];
  encode_table(share_.ends(), all.subspan(me, mine.table_bytes));
  spread(all, begins);
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    tables.of_ranks.push_back(
        ShareTable::over(all.subspan(begins[rank], sizes[rank].table_bytes), sizes[rank].samples));
  }
}

void Exchange::spread(std::span<std::byte> tables, std::span<const std::uint64_t> begins) {
  node_->barrier();
  if (node_->rank() == 0 && leaders_->size() > 1) {
    for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank) {
      leaders_->broadcast(tables.subspan(begins[rank], begins[rank + 1] - begins[rank]),
                          node_of_[rank]);
    }
  }
  node_->barrier();
}

const Exchange::Tables& Exchange::tables_of(std::uint64_t generation) const {
  if (generation >= generations_.opened() || generations_.is_released(generation)) {
    throw Error(ErrorKind::usage,
                fmt::format("filling {} of the shares is not to be read: {} were opened",
                            generation, generations_.opened()),
                "read it after open() and before release()");
  }
  return tables_[buffer_of(generation)];
}

ShareTable::Place Exchange::place(const Tables& tables, const Wanted& wanted) const {
  const bool known = wanted.owner >= 0 && wanted.owner < comm_->size();
  const std::uint64_t samples =
      known ? tables.of_ranks[static_cast<std::size_t>(wanted.owner)].samples() : 0;
  if (wanted.index < samples) {
    return tables.of_ranks[static_cast<std::size_t>(wanted.owner)].at(wanted.index);
  }
  throw Error(ErrorKind::usage,
              fmt::format("rank {} has no sample number {}: it holds {}", wanted.owner,
                          wanted.index, samples),
              "ask for what the shares were filled with", {.sample = wanted.sample});
}

std::uint64_t Exchange::bytes_of(std::uint64_t generation, const Wanted& wanted) const {
  return place(tables_of(generation), wanted).bytes;
}

std::uint64_t Exchange::samples(std::uint64_t generation, int owner) const {
  return tables_of(generation).of_ranks.at(static_cast<std::size_t>(owner)).samples();
}

FetchPlan Exchange::plan(std::uint64_t generation, std::span<const Wanted> wanted,
                         std::span<const std::span<std::byte>> to) const {
  const Tables& tables = tables_of(generation);
  const auto buffers = static_cast<std::uint64_t>(options_.buffers);
  FetchPlan plan(options_.longest_piece);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [offset, bytes] = place(tables, wanted[i]);
    if (i >= to.size() || to[i].size() != bytes) {
      throw Error(ErrorKind::usage,
                  fmt::format("a sample of {} bytes of rank {} has {} bytes of room", bytes,
                              wanted[i].owner, i < to.size() ? to[i].size() : 0),
                  "give it as many bytes as it has", {.sample = wanted[i].sample});
    }
    if (bytes == 0) continue;
    const int owner = wanted[i].owner;
    const std::uint64_t at = buffer_of(generation) * (memory_->bytes(owner) / buffers) + offset;
    const auto near = memory_->direct(owner);
    if (near.empty()) {
      plan.add_far(wanted[i], at, to[i]);
    } else {
      plan.add_near(near.subspan(at, bytes), to[i]);
    }
  }
  return plan;
}

void Exchange::wait_opened(std::uint64_t generation, const GiveUp& give_up) {
  generations_.wait_opened(generation, policy(options_.filling_patience, give_up));
}

void Exchange::fetch(std::uint64_t generation, std::span<const Wanted> wanted,
                     std::span<const std::span<std::byte>> to, const GiveUp& give_up) {
  wait_opened(generation, give_up);
  const std::int64_t begin = now_ns();
  FetchPlan plan = this->plan(generation, wanted, to);
  if (plan.far_bytes() > 0) {
    read_far(plan, give_up);
  } else {
    plan.copy_near();
  }
  fetched_samples_ += wanted.size();
  near_bytes_ += plan.near_bytes();
  far_bytes_ += plan.far_bytes();
  fetch_ns_ += now_ns() - begin;
}

// What is near is copied while the rest is on its way.
void Exchange::read_far(FetchPlan& plan, const GiveUp& give_up) {
  const std::lock_guard lock(far_mutex_);
  RemoteReader& reader = **transport_.reader;
  try {
    reader.start(plan.far());
    plan.copy_near();
    reader.finish(policy(options_.patience, give_up));
  } catch (const Error& error) {
    throw error.within({.sample = plan.first_far().sample});
  }
}

WaitPolicy Exchange::policy(std::chrono::milliseconds patience, const GiveUp& give_up) const {
  return {.timeout = patience, .interrupt = [this, give_up] {
            check_others();
            if (!give_up || !give_up()) return;
            throw Error(ErrorKind::cancelled, "the wait for samples of other ranks was given up");
          }};
}

void Exchange::check_others() const {
  if (comm_->concurrent()) board_->poll();
  board_->check();
}

void Exchange::release(std::uint64_t generation) { generations_.release(generation); }

bool Exchange::quiet() const { return !transport_.reader || (*transport_.reader)->quiet(); }

ExchangeFigures Exchange::figures() const {
  return {.samples = fetched_samples_,
          .near_bytes = near_bytes_,
          .far_bytes = far_bytes_,
          .fetch_seconds = static_cast<double>(fetch_ns_) * 1e-9};
}

std::string Exchange::describe() const {
  return fmt::format("samples lie in {}; between nodes: {}", memory_->describe(), transport_.why);
}

}  // namespace forebay
