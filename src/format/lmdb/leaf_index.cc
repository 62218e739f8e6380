#include "format/lmdb/leaf_index.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace forebay::lmdb {
namespace {

// Runs of records that were written together lie one behind the other, so while this one is checked
// the header of one soon to come is fetched: each would be a miss of the caches otherwise.
void fetch_a_later_header(std::span<const std::byte> run) {
  constexpr std::uintptr_t kAhead = 4;
  const auto here = reinterpret_cast<std::uintptr_t>(run.data());
  __builtin_prefetch(reinterpret_cast<const void*>(here + kAhead * run.size()));
}

std::string printed_key(const Node& node) { return printable_key(chars_of(node.key)); }

}  // namespace

void LeafIndex::check_range(std::uint64_t first, std::uint64_t count) const {
  if (first <= entries() && count <= entries() - first) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} samples from {} on leave the {} samples", count, first, entries()),
              {}, {.file = store_.facts().file});
}

void LeafIndex::extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) {
  check_range(first, count);
  if (count == 0) return;
  const std::uint64_t size = store_.facts().page_size;
  const std::uint64_t end = first + count;
  for (LeafPosition at = store_.find(first);; store_.advance(at)) {
    out.push_back({.offset = at.page * size, .length = size, .common = true});
    const std::uint64_t until = std::min(end, at.end());
    for (; store_.has_runs() && first < until; ++first) {
      const StoredRun run = store_.run(first);
      if (run.pages > 0) out.push_back({.offset = run.page * size, .length = run.pages * size});
    }
    first = until;
    if (first == end) return;
  }
}

void LeafIndex::check_header(const LeafPosition& at, std::span<const std::byte> page) const {
  const PageHeader header = decode_page_header(page);
  if (header.number != at.page) {
    store_.mismatch(at.page, fmt::format("the page calls itself page {}", header.number));
  }
  if ((header.flags & kPageTypeMask) != kPageLeaf) {
    store_.mismatch(at.page,
                    fmt::format("page flags 0x{:x} are not those of a leaf", header.flags));
  }
  if (header.lower != kPageHeaderSize + std::size_t{2} * at.records) {
    store_.mismatch(at.page, fmt::format("the index expects {} records, offsets end at byte {}",
                                         at.records, header.lower));
  }
}

void LeafIndex::check_first_touch(const LeafPosition& at, const Page& page) const {
  std::span<const std::byte> previous = page.node(0).key;
  if (const KeyWitness* witness = store_.producer().witness()) {
    const LeafKeys keys{.leaf = at.leaf,
                        .first_sample = at.first,
                        .page = at.page,
                        .first = previous,
                        .last = page.node(at.records - 1).key};
    const std::string text = witness->contradicts(keys, at.records);
    if (!text.empty()) store_.mismatch(at.page, text);
  }
  page.check_nodes();
  check_run(at, 0, page.node(0));
  for (unsigned slot = 1; slot < at.records; ++slot) {
    const Node node = page.node(slot);
    if (compare_keys(previous, node.key, store_.facts().tree_flags) >= 0) {
      page.damaged(fmt::format("key of record {} is not greater than the one before", slot));
    }
    previous = node.key;
    check_run(at, slot, node);
  }
}

void LeafIndex::check_run(const LeafPosition& at, unsigned slot, const Node& node) const {
  const StoredRun said = store_.run(at.first + slot);
  StoredRun found;
  if (node.is_overflow()) {
    found = {.page = node.overflow_page(),
             .pages = overflow_pages(node.value_size, store_.facts().page_size)};
  }
  if (said.page == found.page && said.pages == found.pages) return;
  store_.mismatch(at.page, fmt::format("record {}: the index expects {} overflow pages at page {}, "
                                       "the leaf has {} at page {}",
                                       slot, said.pages, said.page, found.pages, found.page));
}

/// Errors name the key.
std::span<const std::byte> LeafIndex::value_of(const Node& node, const FileBytes& bytes) const {
  if (!node.is_overflow()) return node.data;
  try {
    return run_value(node, bytes);
  } catch (const IndexMismatch&) {
    throw;
  } catch (const Error& error) {
    throw error.within({.key = printed_key(node)});
  }
}

std::span<const std::byte> LeafIndex::run_value(const Node& node, const FileBytes& bytes) const {
  const std::uint64_t size = store_.facts().page_size;
  const PageNumber first = node.overflow_page();
  const std::uint64_t pages = overflow_pages(node.value_size, store_.facts().page_size);
  const auto run = bytes.at(0, first * size, pages * size);
  fetch_a_later_header(run);
  const PageHeader header = decode_page_header(run);
  // The leaf and the index agree on the run, so it is the run that is damaged.
  if (header.number != first || (header.flags & kPageTypeMask) != kPageOverflow) {
    throw store_.explainer().explain(
        first,
        fmt::format("page {} with flags 0x{:x} is no overflow run", header.number, header.flags));
  }
  if (header.run_length() < pages) {
    throw store_.explainer().explain(
        first, fmt::format("an overflow run of {} pages cannot hold {} bytes", header.run_length(),
                           node.value_size));
  }
  return run.subspan(kPageHeaderSize, node.value_size);
}

void LeafIndex::refuse_nested(const LeafPosition& at, std::uint64_t sample,
                              const Node& node) const {
  throw Error(ErrorKind::unsupported,
              "the record is a named database (or a set of duplicates) among plain records",
              "open it as path#name, or name it in --leave-out",
              {.file = store_.facts().file,
               .offset = at.page * store_.facts().page_size,
               .sample = sample,
               .key = printed_key(node)});
}

void LeafIndex::unpack_leaf(const LeafPosition& at, const Page& page, std::uint64_t first,
                            std::uint64_t end, const FileBytes& bytes,
                            const RecordSink& sink) const {
  for (std::uint64_t sample = first; sample < end; ++sample) {
    const auto slot = static_cast<unsigned>(sample - at.first);
    const Node node = page.node(slot);
    if ((node.flags & (kNodeTree | kNodeDuplicates)) != 0) refuse_nested(at, sample, node);
    check_run(at, slot, node);
    sink({.sample = sample, .key = node.key, .value = value_of(node, bytes)});
  }
}

void LeafIndex::unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
                       const RecordSink& sink) {
  check_range(first, count);
  if (count == 0) return;
  const std::uint64_t end = first + count;
  std::span<const std::byte> last_key;
  bool has_last_key = false;
  for (LeafPosition at = store_.find(first);; store_.advance(at)) {
    const auto page_bytes =
        bytes.at(0, at.page * store_.facts().page_size, store_.facts().page_size);
    check_header(at, page_bytes);
    const Page page(page_bytes, at.page, store_.explainer());
    if (!store_.touched(at)) {
      check_first_touch(at, page);
      store_.touch(at);
    }
    if (has_last_key && compare_keys(last_key, page.node(0).key, store_.facts().tree_flags) >= 0) {
      store_.mismatch(at.page, "its first key is not greater than the last one of the leaf before");
    }
    const std::uint64_t until = std::min(end, at.end());
    unpack_leaf(at, page, first, until, bytes, sink);
    first = until;
    if (first == end) return;
    last_key = page.node(at.records - 1).key;
    has_last_key = true;
  }
}

}  // namespace forebay::lmdb
