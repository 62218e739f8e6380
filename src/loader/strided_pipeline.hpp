// The strided order: windows of C iterations, read by the roots of a node for all of its ranks.
#pragma once

#include "loader/pipeline.hpp"

namespace forebay {

class StridedPipeline final : public Pipeline {
 public:
  StridedPipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
      : Pipeline(path, options, trace) {}

  const StridedOrder& order() const override { return map_->order(); }
  std::uint64_t epoch_iterations() const override;
  std::uint64_t epochs_done() const override;
  RunState state() const override;

 private:
  void make_order() override;
  StageShape stage_shape() const override;
  std::uint64_t first_published() const override { return options_.first_iteration; }
  std::shared_ptr<ReadingList> reading_list() override;
  void complete(ReaderSite& site) const override;
  std::string order_text() const override;

  bool more() override;
  void require_free_buffers() const override;
  Delivery take() override;
  std::uint64_t needed() const override { return iteration_; }
  std::optional<std::uint64_t> needed_end() const override { return iteration_ + 1; }

  /// With the options' coalescing; 1 where that is not known yet.
  StridedOrder order_from(StridedStart start) const;
  void choose_coalesce(const StridedOrder& plain, std::uint64_t stage_bytes);
  Sample sample_at(const Run& run, std::uint64_t position) const;

  std::shared_ptr<const RootMap> map_;
  const WindowPlan* plan_ = nullptr;  ///< of this rank's group, inside map_
  std::uint64_t end_ = 0;             ///< iterations in all
};

}  // namespace forebay
