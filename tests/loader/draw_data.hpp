// What a loader has to deliver in an order that is new in every epoch: told by EpochOrder, and by
// liblmdb's own cursor walk.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "forebay/loader.hpp"
#include "forebay/sample_seed.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"

namespace forebay::test {

class DrawData {
 public:
  DrawData(const std::string& directory, const LmdbBuilder& builder)
      : path_(builder.build(directory)), records_(read_with_liblmdb(directory)) {}
  /// What is at `path` holds `records`.
  DrawData(std::string path, std::vector<OracleRecord> records)
      : path_(std::move(path)), records_(std::move(records)) {}

  const std::string& path() const { return path_; }
  std::uint64_t entries() const { return records_.size(); }
  const OracleRecord& record(std::uint64_t sample) const { return records_[sample]; }

  OrderOptions order(const LoaderOptions& options, int ranks) const {
    OrderOptions order = options;
    order.entries = entries();
    order.ranks = ranks;
    return order;
  }

  /// Whether `batch` is what `rank` takes at iteration `step` of `order`.
  void expect_batch(const EpochOrder& order, int rank, std::uint64_t step,
                    const Batch& batch) const {
    const Share share = order.share(rank, step);
    ASSERT_EQ(batch.epoch(), order.epoch());
    ASSERT_EQ(batch.samples().size(), share.count);
    const bool reused = order.options().reuse > 1;
    const std::uint64_t pass = reused ? order.pass(step) : 0;
    ASSERT_EQ(batch.pass().number, pass % order.options().reuse);
    ASSERT_EQ(batch.pass().ends,
              reused && (step + 1 == order.steps() || order.pass(step + 1) != pass));
    for (std::uint64_t k = 0; k < share.count; ++k) {
      const Draw draw = order.draw(rank, share.first + k);
      const Sample& sample = batch.samples()[k];
      ASSERT_EQ(sample.id, draw.sample) << "iteration " << batch.iteration() << ", " << k;
      ASSERT_EQ(sample.global, order.epoch() * order.size() + draw.position);
      ASSERT_EQ(sample.epoch, order.epoch());
      ASSERT_EQ(sample.position, k);
      ASSERT_EQ(sample.repeat, draw.repeat);
      ASSERT_EQ(sample.seed(), sample_seed(order.options().seed, order.epoch(), draw.sample));
      ASSERT_EQ(text(sample.key), records_[draw.sample].key);
      ASSERT_EQ(text(sample.value), records_[draw.sample].value);
    }
  }

 private:
  std::string path_;
  std::vector<OracleRecord> records_;
};

/// How often each sample of each epoch was delivered, over all ranks and stretches of a run.
class Deliveries {
 public:
  void count(const Batch& batch) {
    const std::lock_guard lock(mutex_);
    for (const Sample& sample : batch.samples()) {
      if (!sample.repeat) ++times_[{sample.epoch, sample.id}];
    }
  }
  /// Whether each of `entries` samples came `times` times in each of `epochs` epochs.
  void expect_all(std::uint64_t entries, std::uint64_t epochs, std::uint64_t times = 1) const {
    EXPECT_EQ(times_.size(), entries * epochs);
    for (const auto& [what, count] : times_) {
      ASSERT_EQ(count, times) << "epoch " << what.first << ", sample " << what.second;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> times_;
};

}  // namespace forebay::test
