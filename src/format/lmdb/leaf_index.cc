#include "format/lmdb/leaf_index.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace forebay::lmdb {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kEmpty = 0, kBusy = 1, kReady = 2;  // states of a segment
constexpr std::uint32_t kTouched = 1;                       // mark of a leaf

constexpr const char* kRemedy =
    "locate the records in another way, or make the sidecar anew with 'forebay provenance'";

// A cell: first page and length of an overflow run. Values have less than 4 GiB, hence runs less
// than 2^21 pages; files of 2^43 pages and more are refused.
constexpr unsigned kRunBits = 21;
constexpr PageNumber kMaxPage = PageNumber{1} << (64 - kRunBits);

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
struct LeafIndex::Header {
  std::uint64_t stamp;
  std::uint64_t filled;    ///< bytes
  std::uint32_t give_ups;  ///< of the indexes that use this memory
};

struct LeafIndex::Leaf {
  std::uint64_t page_records;
  std::uint32_t first;  ///< sample, counted from the start of the segment
  std::uint32_t mark;

  PageNumber page() const { return page_records >> kRecordBits; }
  std::uint32_t records() const { return page_records & ((1U << kRecordBits) - 1); }
};

/// A leaf and the samples on it.
struct LeafIndex::Position {
  std::size_t segment = 0;
  std::uint64_t leaf = 0;
  std::uint64_t first = 0;  ///< its first sample
  std::uint32_t records = 0;
  PageNumber page = 0;

  std::uint64_t end() const { return first + records; }
};

/// Writes one segment, checking each number before it is kept.
class LeafIndex::Filler {
 public:
  Filler(LeafIndex& index, std::size_t segment)
      : index_(index), from_(index.directory_[segment]), to_(index.directory_[segment + 1]) {
    const auto places = Places(index.directory_.size() - 1, index.facts_);
    reserve(places.leaves + from_.first_leaf * 16, (to_.first_leaf - from_.first_leaf) * 16);
    leaf_ = from_.first_leaf;
    sample_ = from_.first_sample;
  }

  void add(const LeafLayout& leaf) {
    if (leaf_ == to_.first_leaf) refuse(leaf, "more leaves than its directory says");
    if (leaf.records == 0 || leaf.records > max_nodes(index_.facts_.page_size) ||
        leaf.records > to_.first_sample - sample_) {
      refuse(leaf, fmt::format("{} records on a leaf", leaf.records));
    }
    if (leaf.page < kFirstTreePage || leaf.page >= index_.facts_.end_page) {
      refuse(leaf, "a leaf outside the file");
    }
    index_.leaves_[leaf_].page_records = leaf.page << kRecordBits | leaf.records;
    index_.leaves_[leaf_].first = static_cast<std::uint32_t>(sample_ - from_.first_sample);
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
    std::atomic_ref(index_.header_->filled).fetch_add(filled_, std::memory_order_relaxed);
  }

 private:
  void add_runs(const LeafLayout& leaf) {
    if (leaf.runs.empty()) return;
    if (index_.cells_ == nullptr) refuse(leaf, "overflow runs in a tree without such pages");
    if (!has_cells_) reserve_cells();
    const PageNumber end = index_.facts_.end_page;
    std::uint32_t next_slot = 0;
    for (const LeafRun& run : leaf.runs) {
      if (run.slot < next_slot || run.slot >= leaf.records) {
        refuse(leaf, fmt::format("an overflow run of record {} of {}", run.slot, leaf.records));
      }
      if (run.pages == 0 || run.pages >> kRunBits != 0 || run.page < kFirstTreePage ||
          run.page >= end || run.pages > end - run.page) {
        refuse(leaf, fmt::format("an overflow run of {} pages at page {}", run.pages, run.page));
      }
      index_.cells_[sample_ + run.slot] = run.page << kRunBits | run.pages;
      next_slot = run.slot + 1U;
    }
  }

  void reserve_cells() {
    has_cells_ = true;
    const auto places = Places(index_.directory_.size() - 1, index_.facts_);
    reserve(places.cells + from_.first_sample * 8, (to_.first_sample - from_.first_sample) * 8);
  }

  void reserve(std::uint64_t offset, std::uint64_t size) {
    if (index_.memory_.reserve) index_.memory_.reserve(offset, size);
    filled_ += size;
  }

  [[noreturn]] void refuse(const LeafLayout& leaf, const std::string& what) const {
    index_.mismatch(leaf.page,
                    fmt::format("the index names {} (leaf {}, sample {})", what, leaf_, sample_));
  }

  LeafIndex& index_;
  Segment from_, to_;
  std::uint64_t leaf_, sample_;
  std::uint64_t filled_ = 0;
  bool has_cells_ = false;
};

std::uint64_t required_bytes(const LeafProducer& producer, const TreeFacts& facts) {
  return Places(producer.directory().size() - 1, facts).end;
}

LeafIndex::LeafIndex(std::unique_ptr<LeafProducer> producer, TreeFacts facts,
                     const DamageExplainer& explainer, IndexMemory memory)
    : producer_(std::move(producer)),
      directory_(producer_->directory()),
      facts_(std::move(facts)),
      explainer_(&explainer),
      memory_(std::move(memory)) {
  if (facts_.end_page >= kMaxPage) {
    throw Error(ErrorKind::unsupported,
                fmt::format("files of {} and more pages cannot be indexed", kMaxPage),
                "split the data set", {.file = facts_.file});
  }
  check_directory();
  attach();
}

LeafIndex::~LeafIndex() = default;

void LeafIndex::check_directory() const {
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

void LeafIndex::attach() {
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

void LeafIndex::mismatch(PageNumber page, const std::string& text) const {
  // Throws at once where the file has changed or cannot be read: that explains it better.
  const Error found = explainer_->explain(page, text);
  throw IndexMismatch(ErrorKind::corrupt, found.happened(), kRemedy, found.where());
}

void LeafIndex::check_range(std::uint64_t first, std::uint64_t count) const {
  if (first <= entries() && count <= entries() - first) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} samples from {} on leave the {} samples", count, first, entries()),
              {}, {.file = facts_.file});
}

std::size_t LeafIndex::segment_of(std::uint64_t sample) const {
  const auto holds = [&](std::size_t i) {
    return i + 1 < directory_.size() && directory_[i].first_sample <= sample &&
           sample < directory_[i + 1].first_sample;
  };
  if (holds(last_segment_)) return last_segment_;
  const auto after = std::ranges::upper_bound(directory_, sample, {}, &Segment::first_sample);
  return static_cast<std::size_t>(after - directory_.begin()) - 1;
}

void LeafIndex::ensure(std::size_t segment) {
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

void LeafIndex::fill(std::size_t segment) {
  std::atomic_ref state(states_[segment]);
  try {
    write_segment(segment);
  } catch (...) {
    state.store(kEmpty, std::memory_order_release);  // whoever waits finds the same fault
    throw;
  }
  state.store(kReady, std::memory_order_release);
}

void LeafIndex::write_segment(std::size_t segment) {
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

void LeafIndex::wait_ready(std::size_t segment) const {
  const auto deadline = std::chrono::steady_clock::now() + memory_.patience;
  const std::atomic_ref state(states_[segment]);
  for (auto pause = 20us; state.load(std::memory_order_acquire) == kBusy;
       pause = std::min(2 * pause, std::chrono::microseconds(1ms))) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(ErrorKind::communication,
                  fmt::format("another process of this node has been filling part {} of the index "
                              "for {} ms",
                              segment, memory_.patience.count()),
                  "look whether a rank has died", {.file = facts_.file});
    }
    std::this_thread::sleep_for(pause);
  }
}

LeafIndex::Position LeafIndex::position_of(std::uint64_t sample) {
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

void LeafIndex::advance(Position& position) {
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

void LeafIndex::extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) {
  check_range(first, count);
  if (count == 0) return;
  const std::uint64_t size = facts_.page_size;
  const std::uint64_t end = first + count;
  for (Position at = position_of(first);; advance(at)) {
    out.push_back({at.page * size, size});
    const std::uint64_t until = std::min(end, at.end());
    for (; cells_ != nullptr && first < until; ++first) {
      const std::uint64_t cell = cells_[first];
      if (cell == 0) continue;
      out.push_back({(cell >> kRunBits) * size, (cell & ((1U << kRunBits) - 1)) * size});
    }
    first = until;
    if (first == end) return;
  }
}

void LeafIndex::check_header(const Position& at, std::span<const std::byte> page) const {
  const PageHeader header = decode_page_header(page);
  if (header.number != at.page) {
    mismatch(at.page, fmt::format("the page calls itself page {}", header.number));
  }
  if ((header.flags & kPageTypeMask) != kPageLeaf) {
    mismatch(at.page, fmt::format("page flags 0x{:x} are not those of a leaf", header.flags));
  }
  if (header.lower != kPageHeaderSize + std::size_t{2} * at.records) {
    mismatch(at.page, fmt::format("the index expects {} records, offsets end at byte {}",
                                  at.records, header.lower));
  }
}

void LeafIndex::check_first_touch(const Position& at, const Page& page) const {
  std::span<const std::byte> previous = page.node(0).key;
  if (const KeyWitness* witness = producer_->witness()) {
    const LeafKeys keys{.leaf = at.leaf,
                        .first_sample = at.first,
                        .page = at.page,
                        .first = previous,
                        .last = page.node(at.records - 1).key};
    const std::string text = witness->contradicts(keys, at.records);
    if (!text.empty()) mismatch(at.page, text);
  }
  page.check_nodes();
  check_run(at, 0, page.node(0));
  for (unsigned slot = 1; slot < at.records; ++slot) {
    const Node node = page.node(slot);
    if (compare_keys(previous, node.key, facts_.tree_flags) >= 0) {
      page.damaged(fmt::format("key of record {} is not greater than the one before", slot));
    }
    previous = node.key;
    check_run(at, slot, node);
  }
}

void LeafIndex::check_run(const Position& at, unsigned slot, const Node& node) const {
  const std::uint64_t cell = cells_ == nullptr ? 0 : cells_[at.first + slot];
  const PageNumber page = node.is_overflow() ? node.overflow_page() : 0;
  const std::uint64_t pages =
      node.is_overflow() ? overflow_pages(node.value_size, facts_.page_size) : 0;
  if (cell >> kRunBits == page && (cell & ((1U << kRunBits) - 1)) == pages) return;
  mismatch(at.page,
           fmt::format("record {}: the index expects {} overflow pages at page {}, the "
                       "leaf has {} at page {}",
                       slot, cell & ((1U << kRunBits) - 1), cell >> kRunBits, pages, page));
}

std::span<const std::byte> LeafIndex::run_value(const Node& node, const ExtentBytes& bytes) const {
  const std::uint64_t size = facts_.page_size;
  const PageNumber first = node.overflow_page();
  const std::uint64_t pages = overflow_pages(node.value_size, facts_.page_size);
  const auto run = bytes.at(first * size, pages * size);
  const PageHeader header = decode_page_header(run);
  // The leaf and the index agree on the run, so it is the run that is damaged.
  if (header.number != first || (header.flags & kPageTypeMask) != kPageOverflow) {
    throw explainer_->explain(first, fmt::format("page {} with flags 0x{:x} is no overflow run",
                                                 header.number, header.flags));
  }
  if (header.run_length() < pages) {
    throw explainer_->explain(first, fmt::format("an overflow run of {} pages cannot hold {} bytes",
                                                 header.run_length(), node.value_size));
  }
  return run.subspan(kPageHeaderSize, node.value_size);
}

void LeafIndex::refuse_nested(const Position& at, std::uint64_t sample, const Node& node) const {
  throw Error(
      ErrorKind::unsupported,
      "the record is a named database (or a set of duplicates) among plain records",
      "open it as path#name",
      {.file = facts_.file,
       .offset = at.page * facts_.page_size,
       .sample = sample,
       .key = printable_key({reinterpret_cast<const char*>(node.key.data()), node.key.size()})});
}

void LeafIndex::unpack_leaf(const Position& at, const Page& page, std::uint64_t first,
                            std::uint64_t end, const ExtentBytes& bytes,
                            const RecordSink& sink) const {
  for (std::uint64_t sample = first; sample < end; ++sample) {
    const auto slot = static_cast<unsigned>(sample - at.first);
    const Node node = page.node(slot);
    if ((node.flags & (kNodeTree | kNodeDuplicates)) != 0) refuse_nested(at, sample, node);
    check_run(at, slot, node);
    sink({.sample = sample,
          .key = node.key,
          .value = node.is_overflow() ? run_value(node, bytes) : node.data});
  }
}

void LeafIndex::unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                       const RecordSink& sink) {
  check_range(first, count);
  if (count == 0) return;
  const std::uint64_t end = first + count;
  std::span<const std::byte> last_key;
  bool has_last_key = false;
  for (Position at = position_of(first);; advance(at)) {
    const auto page_bytes = bytes.at(at.page * facts_.page_size, facts_.page_size);
    check_header(at, page_bytes);
    const Page page(page_bytes, at.page, *explainer_);
    std::atomic_ref mark(leaves_[at.leaf].mark);
    if (mark.load(std::memory_order_relaxed) != kTouched) {
      check_first_touch(at, page);
      mark.store(kTouched, std::memory_order_relaxed);
    }
    if (has_last_key && compare_keys(last_key, page.node(0).key, facts_.tree_flags) >= 0) {
      mismatch(at.page, "its first key is not greater than the last one of the leaf before");
    }
    const std::uint64_t until = std::min(end, at.end());
    unpack_leaf(at, page, first, until, bytes, sink);
    first = until;
    if (first == end) return;
    last_key = page.node(at.records - 1).key;
    has_last_key = true;
  }
}

bool LeafIndex::give_up() {
  return std::atomic_ref(header_->give_ups).fetch_add(1, std::memory_order_relaxed) == 0;
}

std::uint64_t LeafIndex::memory_bytes() const {
  return std::atomic_ref(header_->filled).load(std::memory_order_relaxed) +
         producer_->memory_bytes();
}

}  // namespace forebay::lmdb
