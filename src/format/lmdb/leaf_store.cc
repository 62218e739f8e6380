#include "format/lmdb/leaf_store.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/clock.hpp"
#include "format/lmdb/leaf_index.hpp"

namespace forebay::lmdb {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kEmpty = 0, kBusy = 1, kReady = 2;  // states of a segment
constexpr std::uint32_t kTouched = 1;                       // mark of a leaf

constexpr const char* kRemedy =
    "locate the records in another way, or make the sidecar anew with 'forebay provenance'";

// A leaf's page and its number of records.
constexpr unsigned kRecordBits = 16;

std::uint64_t align(std::uint64_t offset) { return (offset + 63) / 64 * 64; }

/// Where the parts of the memory begin.
struct Places {
  std::uint64_t states, leaves, cells, end;

  Places(std::uint64_t segments, const TreeFacts& facts)
      : states(64),
        leaves(align(states + segments * 4)),
        cells(align(leaves + facts.leaf_pages * 16)),
        end(facts.overflow_pages == 0 ? cells : cells + facts.entries * 8) {}
};

}  // namespace

/// All zero at first. `stamp` tells two indexes of one place from each other.
struct LeafStore::Header {
  std::uint64_t stamp;
  std::uint64_t filled;    ///< bytes
  std::uint32_t give_ups;  ///< of the indexes that use this memory
};

struct LeafStore::Leaf {
  std::uint64_t page_records;
  std::uint32_t first;  ///< sample, counted from the start of the segment
  std::uint32_t mark;

  PageNumber page() const { return page_records >> kRecordBits; }
  std::uint32_t records() const { return page_records & ((1U << kRecordBits) - 1); }
};

/// Writes one segment, checking each number before it is kept.
class LeafStore::Filler {
 public:
  Filler(LeafStore& store, std::size_t segment)
      : store_(store), from_(store.directory_[segment]), to_(store.directory_[segment + 1]) {
    const auto places = Places(store.directory_.size() - 1, store.facts_);
    reserve(places.leaves + from_.first_leaf * 16, (to_.first_leaf - from_.first_leaf) * 16);
    leaf_ = from_.first_leaf;
    sample_ = from_.first_sample;
  }

  void add(const LeafLayout& leaf) {
    if (leaf_ == to_.first_leaf) refuse(leaf, "more leaves than its directory says");
    if (leaf.records == 0 || leaf.records > max_nodes(store_.facts_.page_size) ||
        leaf.records > to_.first_sample - sample_) {
      refuse(leaf, fmt::format("{} records on a leaf", leaf.records));
    }
    if (leaf.page < kFirstTreePage || leaf.page >= store_.facts_.end_page) {
      refuse(leaf, "a leaf outside the file");
    }
    store_.leaves_[leaf_].page_records = leaf.page << kRecordBits | leaf.records;
    store_.leaves_[leaf_].first = static_cast<std::uint32_t>(sample_ - from_.first_sample);
    add_runs(leaf);
    ++leaf_;
    sample_ += leaf.records;
  }

  void finish() {
    if (leaf_ != to_.first_leaf || sample_ != to_.first_sample) {
      refuse({},
             fmt::format("{} records on {} leaves where its directory says {} on {}",
                         sample_ - from_.first_sample, leaf_ - from_.first_leaf,
                         to_.first_sample - from_.first_sample, to_.first_leaf - from_.first_leaf));
    }
    std::atomic_ref(store_.header_->filled).fetch_add(filled_, std::memory_order_relaxed);
  }

 private:
  void add_runs(const LeafLayout& leaf) {
    if (leaf.runs.empty()) return;
    if (store_.cells_ == nullptr) refuse(leaf, "overflow runs in a tree without such pages");
    if (!has_cells_) reserve_cells();
    const PageNumber end = store_.facts_.end_page;
    std::uint32_t next_slot = 0;
    for (const LeafRun& run : leaf.runs) {
      if (run.slot < next_slot || run.slot >= leaf.records) {
        refuse(leaf, fmt::format("an overflow run of record {} of {}", run.slot, leaf.records));
      }
      if (run.pages == 0 || run.pages >> kRunBits != 0 || run.page < kFirstTreePage ||
          run.page >= end || run.pages > end - run.page) {
        refuse(leaf, fmt::format("an overflow run of {} pages at page {}", run.pages, run.page));
      }
      store_.cells_[sample_ + run.slot] = run.page << kRunBits | run.pages;
      next_slot = run.slot + 1U;
    }
  }

  void reserve_cells() {
    has_cells_ = true;
    const auto places = Places(store_.directory_.size() - 1, store_.facts_);
    reserve(places.cells + from_.first_sample * 8, (to_.first_sample - from_.first_sample) * 8);
  }

  void reserve(std::uint64_t offset, std::uint64_t size) {
    if (store_.memory_.reserve) store_.memory_.reserve(offset, size);
    filled_ += size;
  }

  [[noreturn]] void refuse(const LeafLayout& leaf, const std::string& what) const {
    store_.mismatch(leaf.page,
                    fmt::format("the index names {} (leaf {}, sample {})", what, leaf_, sample_));
  }

  LeafStore& store_;
  Segment from_, to_;
  std::uint64_t leaf_, sample_;
  std::uint64_t filled_ = 0;
  bool has_cells_ = false;
};

std::uint64_t required_bytes(const LeafProducer& producer, const TreeFacts& facts) {
  return Places(producer.directory().size() - 1, facts).end;
}

LeafStore::LeafStore(std::unique_ptr<LeafProducer> producer, TreeFacts facts,
                     const DamageExplainer& explainer, IndexMemory memory)
    : producer_(std::move(producer)),
      directory_(producer_->directory()),
      facts_(std::move(facts)),
      explainer_(&explainer),
      memory_(std::move(memory)) {
  if (facts_.end_page >= kMostPages) {
    throw Error(ErrorKind::unsupported,
                fmt::format("files of {} and more pages cannot be indexed", kMostPages),
                "split the data set", {.file = facts_.file});
  }
  check_directory();
  attach();
}

void LeafStore::check_directory() const {
  bool ascends = !directory_.empty() && directory_[0] == Segment{};
  for (std::size_t i = 1; ascends && i < directory_.size(); ++i) {
    const Segment& before = directory_[i - 1];
    const Segment& here = directory_[i];
    ascends = before.first_leaf < here.first_leaf && before.first_sample < here.first_sample &&
              here.first_sample - before.first_sample <= kMaxSegmentSamples;
  }
  const Segment end = ascends ? directory_.back() : Segment{};
  if (ascends && end.first_sample == facts_.entries && end.first_leaf == facts_.leaf_pages) return;
  throw IndexMismatch(
      ErrorKind::corrupt,
      fmt::format("the index has {} records on {} leaves where the tree has {} on {}",
                  end.first_sample, end.first_leaf, facts_.entries, facts_.leaf_pages),
      kRemedy, {.file = facts_.file});
}

void LeafStore::attach() {
  const Places places(directory_.size() - 1, facts_);
  if (memory_.bytes.size() < places.end ||
      reinterpret_cast<std::uintptr_t>(memory_.bytes.data()) % 8 != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("an index of {} records needs {} aligned bytes, not {}", facts_.entries,
                            places.end, memory_.bytes.size()),
                "ask required_bytes()", {.file = facts_.file});
  }
  if (memory_.reserve) memory_.reserve(0, places.leaves);
  std::byte* const base = memory_.bytes.data();
  header_ = reinterpret_cast<Header*>(base);
  states_ = reinterpret_cast<std::uint32_t*>(base + places.states);
  leaves_ = reinterpret_cast<Leaf*>(base + places.leaves);
  if (facts_.overflow_pages != 0) cells_ = reinterpret_cast<std::uint64_t*>(base + places.cells);
  const std::string identity =
      fmt::format("{} {} {}", facts_.fingerprint, producer_->form(), directory_.size());
  const std::uint64_t stamp = XXH3_64bits(identity.data(), identity.size()) | 1;
  std::uint64_t found = 0;
  std::atomic_ref shared(header_->stamp);
  if (!shared.compare_exchange_strong(found, stamp) && found != stamp) {
    throw Error(ErrorKind::usage, "the memory holds an index of another data set or form",
                "give each index memory of its own", {.file = facts_.file});
  }
}

void LeafStore::mismatch(PageNumber page, const std::string& text) const {
  // Throws at once where the file has changed or cannot be read: that explains it better.
  const Error found = explainer_->explain(page, text);
  throw IndexMismatch(ErrorKind::corrupt, found.happened(), kRemedy, found.where());
}

std::size_t LeafStore::segment_of(std::uint64_t sample) const {
  const auto holds = [&](std::size_t i) {
    return i + 1 < directory_.size() && directory_[i].first_sample <= sample &&
           sample < directory_[i + 1].first_sample;
  };
  if (holds(last_segment_)) return last_segment_;
  const auto after = std::ranges::upper_bound(directory_, sample, {}, &Segment::first_sample);
  return static_cast<std::size_t>(after - directory_.begin()) - 1;
}

void LeafStore::ensure(std::size_t segment) {
  std::atomic_ref state(states_[segment]);
  while (state.load(std::memory_order_acquire) != kReady) {
    std::uint32_t expected = kEmpty;
    if (state.compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) {
      fill(segment);
    } else if (expected == kBusy) {
      wait_ready(segment);
    }
  }
}

void LeafStore::fill(std::size_t segment) {
  std::atomic_ref state(states_[segment]);
  try {
    write_segment(segment);
  } catch (...) {
    state.store(kEmpty, std::memory_order_release);  // whoever waits finds the same fault
    throw;
  }
  state.store(kReady, std::memory_order_release);
}

void LeafStore::write_segment(std::size_t segment) {
  Filler filler(*this, segment);
  try {
    producer_->expand(segment, [&](const LeafLayout& leaf) { filler.add(leaf); });
  } catch (const IndexMismatch&) {
    throw;
  } catch (const Error& error) {
    // It is the index that is damaged, not the data set.
    if (error.kind() != ErrorKind::corrupt) throw;
    throw IndexMismatch(error.kind(), "the index: " + error.happened(), kRemedy,
                        {.file = facts_.file});
  }
  filler.finish();
}

void LeafStore::wait_ready(std::size_t segment) const {
  WaitedTime waited;
  const std::atomic_ref state(states_[segment]);
  for (auto pause = 20us; state.load(std::memory_order_acquire) == kBusy;
       pause = std::min(2 * pause, std::chrono::microseconds(1ms))) {
    waited.step();
    if (waited.total() > memory_.patience) {
      throw Error(ErrorKind::communication,
                  fmt::format("another process of this node has been filling part {} of the index "
                              "for {} ms",
                              segment, memory_.patience.count()),
                  "look whether a rank has died", {.file = facts_.file});
    }
    std::this_thread::sleep_for(pause);
  }
}

LeafPosition LeafStore::find(std::uint64_t sample) {
  const std::size_t segment = segment_of(sample);
  ensure(segment);
  last_segment_ = segment;
  const Segment& from = directory_[segment];
  const std::span leaves(leaves_ + from.first_leaf, leaves_ + directory_[segment + 1].first_leaf);
  const auto after = std::ranges::upper_bound(leaves, sample - from.first_sample, {}, &Leaf::first);
  const auto leaf = static_cast<std::uint64_t>(after - leaves.begin()) - 1;
  return {.segment = segment,
          .leaf = from.first_leaf + leaf,
          .first = from.first_sample + leaves[leaf].first,
          .records = leaves[leaf].records(),
          .page = leaves[leaf].page()};
}

void LeafStore::advance(LeafPosition& position) {
  const std::uint64_t first = position.end();
  if (++position.leaf == directory_[position.segment + 1].first_leaf) {
    ensure(++position.segment);
    last_segment_ = position.segment;
  }
  const Leaf& leaf = leaves_[position.leaf];
  position.first = first;
  position.records = leaf.records();
  position.page = leaf.page();
}

bool LeafStore::touched(const LeafPosition& position) const {
  return std::atomic_ref(leaves_[position.leaf].mark).load(std::memory_order_relaxed) == kTouched;
}

void LeafStore::touch(const LeafPosition& position) {
  std::atomic_ref(leaves_[position.leaf].mark).store(kTouched, std::memory_order_relaxed);
}

bool LeafStore::give_up() {
  return std::atomic_ref(header_->give_ups).fetch_add(1, std::memory_order_relaxed) == 0;
}

std::uint64_t LeafStore::memory_bytes() const {
  return std::atomic_ref(header_->filled).load(std::memory_order_relaxed) +
         producer_->memory_bytes();
}

}  // namespace forebay::lmdb
