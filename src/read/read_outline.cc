#include "read/read_outline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/number_text.hpp"
#include "read/read_plan.hpp"

namespace forebay {
namespace {

std::uint64_t length_of(const std::vector<Extent>& extents) {
  std::uint64_t length = 0;
  std::uint64_t end = 0;
  for (const Extent& extent : extents) {  // sorted; neighbours may share pages
    const std::uint64_t extent_end = extent.offset + extent.length;
    if (extent_end > end) length += extent_end - std::max(end, extent.offset);
    end = std::max(end, extent_end);
  }
  return length;
}

}  // namespace

double ReadOutline::amplification() const {
  if (value_bytes == 0) return 0;
  return static_cast<double>(bytes) / static_cast<double>(value_bytes);
}

ReadOutline outline_of_runs(std::span<const SampleRun> runs, RecordIndex& index,
                            std::uint64_t gap_limit) {
  ReadOutline outline;
  std::vector<Extent> extents;
  for (const SampleRun& run : runs) {
    index.extents(run.sample, run.count, extents);
    outline.window_samples += run.count;
  }
  outline.extents = extents.size();
  const ReadPlan plan = plan_reads(extents, gap_limit);
  outline.reads = plan.reads.size();
  outline.bytes = plan.bytes;
  outline.gap_bytes = plan.bytes - length_of(extents);
  for (const PlannedRead& read : plan.reads) {
    outline.largest_read = std::max(outline.largest_read, read.length);
  }
  outline.index_bytes = index.memory_bytes();
  return outline;
}

std::string to_text(const ReadOutline& outline) {
  const std::uint64_t mean = outline.reads == 0 ? 0 : outline.bytes / outline.reads;
  const std::string window =
      outline.window_iterations == 0
          ? fmt::format("buffer         {} samples of this rank", outline.window_samples)
          : fmt::format("window         {} iterations, {} samples of this root",
                        outline.window_iterations, outline.window_samples);
  return fmt::format(
      "{}\n"
      "reads          {} (from {} extents), mean {}, largest {}\n"
      "bytes          {}, of which {} in gaps\n"
      "memory         {} a window of {}, index {}\n"
      "amplification  {:.2f} expected, judged by the first value\n",
      window, outline.reads, outline.extents, format_bytes(mean),
      format_bytes(outline.largest_read), format_bytes(outline.bytes),
      format_bytes(outline.gap_bytes), format_bytes(outline.bytes),
      format_bytes(outline.buffer_bytes), format_bytes(outline.index_bytes),
      outline.amplification());
}

std::string to_json(const ReadOutline& outline) {
  return nlohmann::ordered_json{{"window_iterations", outline.window_iterations},
                                {"window_samples", outline.window_samples},
                                {"extents", outline.extents},
                                {"reads", outline.reads},
                                {"bytes", outline.bytes},
                                {"largest_read", outline.largest_read},
                                {"gap_bytes", outline.gap_bytes},
                                {"value_bytes", outline.value_bytes},
                                {"buffer_bytes", outline.buffer_bytes},
                                {"index_bytes", outline.index_bytes},
                                {"expected_amplification", outline.amplification()}}
      .dump();
}

}  // namespace forebay
