#include "format/lmdb/scan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/lmdb/provenance/leaf_table.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;  ///< of leaves looked at in one go
constexpr std::uint64_t kGapPages = 4;  ///< read along rather than asked for apart
constexpr std::uint64_t kRequestBytes = std::uint64_t{1} << 20;

/// The pages below `parents`, which are branches.
std::vector<PageNumber> children(Database& database, std::span<const PageNumber> parents,
                                 std::uint64_t most, std::uint32_t* max_children) {
  std::vector<PageNumber> pages;
  for (const PageNumber parent : parents) {
    const Page page = database.pages().tree_page(parent);
    if (page.is_leaf()) page.damaged("a leaf where a branch page belongs");
    if (page.count() > most - pages.size()) {
      page.damaged(fmt::format("the tree has more than the {} pages of its header", most));
    }
    for (unsigned slot = 0; slot < page.count(); ++slot) pages.push_back(page.child(slot));
    if (max_children != nullptr) *max_children = std::max(*max_children, page.count());
  }
  return pages;
}

/// Leaves of one batch, brought into memory by few requests.
class LeafBatch {
 public:
  LeafBatch(const TreeFacts& facts, BulkReader& reader, const DamageExplainer& explainer)
      : facts_(facts), reader_(reader), explainer_(explainer) {}

  void load(std::span<const PageNumber> leaves) {
    sorted_.assign(leaves.begin(), leaves.end());
    std::ranges::sort(sorted_);
    if (sorted_.front() < kFirstTreePage || sorted_.back() >= facts_.end_page) {
      throw explainer_.explain(
          sorted_.back(), fmt::format("a leaf outside the pages 2 to {}", facts_.end_page - 1));
    }
    plan();
    read();
  }

  std::span<const std::byte> page(PageNumber number) const {
    const auto after = std::ranges::upper_bound(stretches_, number, {}, &Stretch::first);
    const Stretch& stretch = *(after - 1);
    const std::uint64_t offset = (stretch.place + number - stretch.first) * facts_.page_size;
    return bytes_.subspan(offset, facts_.page_size);
  }

 private:
  struct Stretch {
    PageNumber first;
    std::uint64_t pages;
    std::uint64_t place;  ///< in the buffer, in pages
  };

  void plan() {
    const std::uint64_t most = kRequestBytes / facts_.page_size;
    stretches_.clear();
    std::uint64_t place = 0;
    for (const PageNumber page : sorted_) {
      if (!stretches_.empty()) {
        Stretch& last = stretches_.back();
        const std::uint64_t pages = page - last.first + 1;
        if (page <= last.first + last.pages + kGapPages && pages <= most) {
          place += pages > last.pages ? pages - last.pages : 0;
          last.pages = std::max(last.pages, pages);
          continue;
        }
      }
      stretches_.push_back({page, 1, place++});
    }
    bytes_ = memory_.get(place * facts_.page_size);
  }

  void read() {
    std::vector<ReadRequest> requests;
    requests.reserve(stretches_.size());
    const std::uint64_t size = facts_.page_size;
    for (const Stretch& stretch : stretches_) {
      requests.push_back({.offset = stretch.first * size,
                          .into = bytes_.subspan(stretch.place * size, stretch.pages * size)});
    }
    read_into(memory_, [&] { reader_.read(requests, [](std::size_t) {}); });
  }

  const TreeFacts& facts_;
  BulkReader& reader_;
  const DamageExplainer& explainer_;
  std::vector<PageNumber> sorted_;
  std::vector<Stretch> stretches_;
  PrivateMemory memory_;
  std::span<std::byte> bytes_;  ///< of memory_, those of this batch
};

[[noreturn]] void refuse_sum(const TreeFacts& facts, std::uint64_t samples, std::uint64_t leaves) {
  throw Error(ErrorKind::corrupt,
              fmt::format("the leaves hold {} records on {} pages, the tree's header counts {} on "
                          "{}",
                          samples, leaves, facts.entries, facts.leaf_pages),
              "the file is damaged: restore it from a copy, or see 'forebay verify'",
              {.file = facts.file});
}

}  // namespace

std::vector<PageNumber> list_leaves(Database& database, std::uint32_t* max_children) {
  const TreeHeader& tree = database.tree().header();
  if (tree.empty()) return {};
  std::vector<PageNumber> pages{tree.root};
  std::uint64_t branches = 0;
  for (unsigned level = 1; level < tree.depth; ++level) {
    branches += pages.size();
    const bool last = level + 1U == tree.depth;
    pages = children(database, pages, last ? tree.leaf_pages : tree.branch_pages - branches,
                     max_children);
  }
  if (pages.size() != tree.leaf_pages || branches != tree.branch_pages) {
    throw database.pages().explain(
        tree.root, fmt::format("the tree has {} branch and {} leaf pages, its header counts {} and "
                               "{}",
                               branches, pages.size(), tree.branch_pages, tree.leaf_pages));
  }
  return pages;
}

bool counts_are_known(const TreeFacts& facts) {
  return facts.entries == facts.leaf_pages && facts.overflow_pages == 0;
}

ScanPart count_leaves(const TreeFacts& facts, std::span<const PageNumber> leaves,
                      BulkReader& reader, const DamageExplainer& explainer) {
  LeafTableBuilder builder(facts.tree_flags);
  if (counts_are_known(facts)) {
    for (const PageNumber leaf : leaves) builder.add({.page = leaf, .records = 1, .runs = {}});
    return builder.finish();
  }
  LeafBatch batch(facts, reader, explainer);
  std::vector<LeafRun> runs;
  const std::size_t at_once = kBatchBytes / facts.page_size;
  for (; !leaves.empty(); leaves = leaves.subspan(std::min(at_once, leaves.size()))) {
    const auto now = leaves.first(std::min(at_once, leaves.size()));
    batch.load(now);
    for (const PageNumber leaf : now) {
      builder.add(look_at_leaf({batch.page(leaf), leaf, explainer}, facts.page_size, runs));
    }
  }
  return builder.finish();
}

std::vector<std::byte> to_bytes(const ScanPart& part) {
  ByteWriter out;
  part.write(out);
  return out.take();
}

ScanPart part_from_bytes(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  ByteReader in(bytes);
  ScanPart part = LeafTable::read(in, kMost, kMost);
  in.end();
  return part;
}

std::unique_ptr<TableLeaves> join_parts(const TreeFacts& facts, std::span<const ScanPart> parts) {
  LeafTable whole;
  for (const ScanPart& part : parts) whole.append(part);
  if (whole.samples() != facts.entries || whole.leaves() != facts.leaf_pages) {
    refuse_sum(facts, whole.samples(), whole.leaves());
  }
  return std::make_unique<TableLeaves>(std::move(whole));
}

}  // namespace forebay::lmdb
