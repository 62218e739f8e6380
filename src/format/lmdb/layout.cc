#include "format/lmdb/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace forebay::lmdb {
namespace {

int sign(std::size_t a, std::size_t b) { return a < b ? -1 : (a > b ? 1 : 0); }

int compare_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::size_t common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  return order != 0 ? order : sign(a.size(), b.size());
}

/// Last byte first. Serves both reversed keys and, since files are little-endian, integers.
int compare_reversed(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 1; i <= common; ++i) {
    const auto x = std::to_integer<int>(a[a.size() - i]);
    const auto y = std::to_integer<int>(b[b.size() - i]);
    if (x != y) return x - y;
  }
  return sign(a.size(), b.size());
}

}  // namespace

PageHeader decode_page_header(std::span<const std::byte> page) {
  return {.number = load<std::uint64_t>(page, 0),
          .flags = load<std::uint16_t>(page, 10),
          .lower = load<std::uint16_t>(page, 12),
          .upper = load<std::uint16_t>(page, 14)};
}

TreeHeader decode_tree_header(std::span<const std::byte> bytes) {
  return {.pad = load<std::uint32_t>(bytes, 0),
          .flags = load<std::uint16_t>(bytes, 4),
          .depth = load<std::uint16_t>(bytes, 6),
          .branch_pages = load<std::uint64_t>(bytes, 8),
          .leaf_pages = load<std::uint64_t>(bytes, 16),
          .overflow_pages = load<std::uint64_t>(bytes, 24),
          .entries = load<std::uint64_t>(bytes, 32),
          .root = load<std::uint64_t>(bytes, 40)};
}

Meta decode_meta(std::span<const std::byte> page) {
  if (page.size() < kMetaEnd) throw Error(ErrorKind::corrupt, "a meta page is cut short");
  const auto body = page.subspan(kPageHeaderSize);
  return {.free_tree = decode_tree_header(body.subspan(24, kTreeHeaderSize)),
          .main_tree = decode_tree_header(body.subspan(72, kTreeHeaderSize)),
          .map_size = load<std::uint64_t>(body, 16),
          .last_page = load<std::uint64_t>(body, 120),
          .transaction = load<std::uint64_t>(body, 128)};
}

std::string impossible(const TreeHeader& header, PageNumber last_page, std::uint64_t file_pages,
                       std::uint32_t page_size) {
  if (header.empty()) {
    if (header.entries == 0) return {};
    return fmt::format("{} entries but no root page", header.entries);
  }
  if (header.root < kFirstTreePage || header.root > last_page) {
    return fmt::format("root page {} is not among the pages 2 to {}", header.root, last_page);
  }
  if (header.depth == 0 || header.depth > kMaxDepth) {
    return fmt::format("a tree depth of {} is not among 1 to {}", header.depth, kMaxDepth);
  }
  // Each count alone first, so that their sum cannot overflow.
  const std::uint64_t most = std::min(last_page + 1, file_pages);
  if (header.branch_pages > most || header.leaf_pages > most || header.overflow_pages > most ||
      header.pages() > most) {
    return fmt::format("{} branch, {} leaf and {} overflow pages do not fit into {} pages",
                       header.branch_pages, header.leaf_pages, header.overflow_pages, most);
  }
  // Duplicates are entries as well, and may lie in trees of their own.
  const bool duplicates = (header.flags & kTreeDuplicates) != 0;
  if (header.entries < header.leaf_pages || header.leaf_pages == 0 ||
      (!duplicates && header.entries > header.leaf_pages * max_nodes(page_size))) {
    return fmt::format("{} entries cannot lie on {} leaf pages", header.entries, header.leaf_pages);
  }
  return {};
}

int compare_keys(std::span<const std::byte> a, std::span<const std::byte> b,
                 std::uint16_t tree_flags) {
  const bool from_end = (tree_flags & (kTreeReverseKey | kTreeIntegerKey)) != 0;
  return from_end ? compare_reversed(a, b) : compare_bytes(a, b);
}

}  // namespace forebay::lmdb
