// What pipelines share whose order is new in every epoch: the order itself, where the run stands in
// it, and what it needs to go on later. How samples get to the consumer is told by DrawPipeline
// (each rank reads what it delivers) and SharedPipeline (ranks deliver what others have read).
#pragma once

#include "loader/pipeline.hpp"
#include "loader/run_epochs.hpp"

namespace forebay {

class EpochPipeline : public Pipeline {
 public:
  EpochPipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
      : Pipeline(path, options, trace) {}

  std::uint64_t epoch_iterations() const override { return epoch_iterations_; }
  std::uint64_t epochs_done() const override;
  RunState state() const override;

 protected:
  /// Knows the order. Collective; all ranks fail together.
  virtual void plan(const OrderOptions& order) = 0;

  bool more() override;
  BatchPass pass() const override;
  std::string order_text() const override;
  void complete(ReaderSite& /*site*/) const override {}

  RunLimits limits() const;
  /// A draw of this rank as the consumer sees it; without its place in the batch, key and value.
  Sample sample_of(const Draw& drawn) const;
  /// Moves samples that cannot wait where they are into `delivery` itself.
  static void copy_out(Delivery& delivery);

  std::optional<RunEpochs> epochs_;
  std::optional<RunEpoch> epoch_;  ///< the present one; stays when the run has ended
  std::uint64_t step_ = 0;         ///< the next iteration, counted in the epoch

 private:
  void make_order() override;
  void read_list();
  SharedNumbers bounds() const;
  OrderOptions order_options() const;
  void require_same_order() const;

  std::string identity_of_order_;
  std::uint64_t epoch_iterations_ = 0;
  int ranks_per_node_ = 0;
};

}  // namespace forebay
