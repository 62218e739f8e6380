#include "read/read_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forebay/error.hpp"

namespace forebay {

ReadPlan plan_reads(std::vector<Extent>& extents, std::uint64_t gap_bytes) {
  std::ranges::sort(extents, {}, &Extent::offset);
  ReadPlan plan;
  for (const Extent& extent : extents) {
    if (extent.length == 0) continue;
    const std::uint64_t end = extent.offset + extent.length;
    if (!plan.reads.empty()) {
      PlannedRead& last = plan.reads.back();
      const std::uint64_t last_end = last.offset + last.length;
      if (extent.offset <= last_end || extent.offset - last_end <= gap_bytes) {
        last.length = std::max(last_end, end) - last.offset;
        continue;
      }
    }
    plan.reads.push_back({.offset = extent.offset, .length = extent.length});
  }
  for (PlannedRead& read : plan.reads) {
    read.place = plan.bytes;
    plan.bytes += read.length;
  }
  return plan;
}

bool PlannedBytes::holds(std::size_t read, std::uint64_t offset) const {
  if (read >= plan_.reads.size()) return false;
  const PlannedRead& planned = plan_.reads[read];
  return offset >= planned.offset && offset - planned.offset < planned.length;
}

bool PlannedBytes::find_nearby(std::uint64_t offset) const {
  if (holds(last_, offset)) return true;
  if (!holds(last_ + 1, offset)) return false;
  ++last_;
  return true;
}

bool PlannedBytes::find(std::uint64_t offset) const {
  const auto after = std::ranges::upper_bound(plan_.reads, offset, {}, &PlannedRead::offset);
  if (after == plan_.reads.begin()) return false;
  const auto read = static_cast<std::size_t>(after - plan_.reads.begin()) - 1;
  if (!holds(read, offset)) return false;
  last_ = read;
  return true;
}

std::span<const std::byte> PlannedBytes::at(std::uint64_t offset, std::uint64_t length) const {
  bool found = find_nearby(offset);
  if (!found && kept_ != nullptr) {
    if (const auto kept = kept_->at(offset, length); !kept.empty()) return kept;
  }
  found = found || find(offset);
  const std::uint64_t inside = found ? offset - plan_.reads[last_].offset : 0;
  if (!found || length > plan_.reads[last_].length - inside) {
    throw IndexMismatch(ErrorKind::corrupt,
                        fmt::format("{} bytes are needed that the index did not name", length), "",
                        {.offset = offset});
  }
  return memory_.subspan(plan_.reads[last_].place + inside, length);
}

}  // namespace forebay
