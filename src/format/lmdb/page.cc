#include "format/lmdb/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace forebay::lmdb {

Page::Page(std::span<const std::byte> bytes, PageNumber number, const DamageExplainer& explainer)
    : bytes_(bytes), number_(number), explainer_(&explainer) {
  const PageHeader header = decode_page_header(bytes);
  if (header.number != number) {
    damaged(fmt::format("the page calls itself page {}", header.number));
  }
  const unsigned type = header.flags & kPageTypeMask;
  if (type != kPageBranch && type != kPageLeaf) {
    damaged(fmt::format("page flags 0x{:x} are neither a branch nor a leaf", header.flags));
  }
  if (header.lower <= kPageHeaderSize || header.lower % 2 != 0 || header.lower > header.upper ||
      header.upper > bytes.size()) {
    damaged(fmt::format("free space from byte {} to {} is impossible", header.lower, header.upper));
  }
  leaf_ = type == kPageLeaf;
  count_ = (header.lower - unsigned{kPageHeaderSize}) / 2;
  upper_ = header.upper;
}

std::size_t Page::node_offset(unsigned slot) const {
  if (slot >= count_) damaged(fmt::format("slot {} is not among its {} nodes", slot, count_));
  const std::size_t offset = load<std::uint16_t>(bytes_, kPageHeaderSize + std::size_t{2} * slot);
  if (offset < upper_ || offset % 2 != 0 || offset + kNodeHeaderSize > bytes_.size()) {
    damaged(fmt::format("node {} at byte {} lies outside the page's nodes", slot, offset));
  }
  return offset;
}

Node Page::node(unsigned slot) const {
  const auto bytes = bytes_.subspan(node_offset(slot));
  const std::uint64_t low = load<std::uint16_t>(bytes, 0);
  const std::uint64_t high = load<std::uint16_t>(bytes, 2);
  const std::uint16_t flags = load<std::uint16_t>(bytes, 4);
  const std::size_t key_size = load<std::uint16_t>(bytes, 6);
  const auto body = bytes.subspan(kNodeHeaderSize);
  if (key_size > body.size()) {
    damaged(fmt::format("key of node {} ({} bytes) leaves the page", slot, key_size));
  }
  Node node;
  node.key = body.first(key_size);
  if (!leaf_) {
    node.child = low | high << 16 | std::uint64_t{flags} << 32;
    return node;
  }
  node.flags = flags;
  node.value_size = low | high << 16;
  const std::uint64_t stored = node.is_overflow() ? sizeof(PageNumber) : node.value_size;
  const auto rest = body.subspan(key_size);
  if (stored > rest.size()) {
    damaged(fmt::format("value of node {} ({} bytes) leaves the page", slot, stored));
  }
  if (node.is_tree() && node.value_size != kTreeHeaderSize) {
    damaged(fmt::format("node {} is marked as a named database but has {} bytes", slot,
                        node.value_size));
  }
  node.data = rest.first(stored);
  return node;
}

std::size_t Page::stored_size(const Node& node) const {
  const std::size_t size = kNodeHeaderSize + node.key.size() + node.data.size();
  return size + size % 2;
}

void Page::check_nodes() const {
  std::array<std::uint32_t, max_nodes(kMaxPageSize) + 1> ranges;  // offset << 16 | size
  if (count_ > ranges.size()) damaged(fmt::format("{} nodes do not fit on a page", count_));
  for (unsigned slot = 0; slot < count_; ++slot) {
    const auto size = static_cast<std::uint32_t>(stored_size(node(slot)));
    ranges[slot] = static_cast<std::uint32_t>(node_offset(slot)) << 16 | size;
  }
  std::sort(ranges.begin(), ranges.begin() + count_);
  for (unsigned i = 1; i < count_; ++i) {
    const std::uint32_t end = (ranges[i - 1] >> 16) + (ranges[i - 1] & 0xffff);
    if (end > ranges[i] >> 16) {
      damaged(
          fmt::format("nodes at bytes {} and {} overlap", ranges[i - 1] >> 16, ranges[i] >> 16));
    }
  }
}

}  // namespace forebay::lmdb
