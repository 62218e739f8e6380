#include "read/read_outline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/number_text.hpp"
#include "format/sample_reader.hpp"

namespace forebay {
double ReadOutline::amplification() const {
  if (value_bytes == 0) return 0;
  return static_cast<double>(bytes) / static_cast<double>(value_bytes);
}

ReadOutline outline_of_runs(std::span<const SampleRun> runs, const DataSet& data,
                            std::uint64_t gap_limit) {
  ReadOutline outline;
  std::vector<IdRun> ids;
  for (const SampleRun& run : runs) {
    ids.push_back({run.sample, run.count});
    outline.window_samples += run.count;
  }
  const auto plan = data.plan_runs(ids);
  outline.extents = plan->named_extents();
  const auto reads = place_extents(plan->extents(), gap_limit);
  outline.reads = reads.size();
  outline.bytes = bytes_of(reads);
  outline.gap_bytes = outline.bytes;
  for (const PlacedExtent& needed : place_extents(plan->extents(), 0)) {
    outline.gap_bytes -= needed.extent.length;
  }
  for (const PlacedExtent& read : reads) {
    outline.largest_read = std::max(outline.largest_read, read.extent.length);
  }
  outline.index_bytes = data.used_index_bytes();
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
