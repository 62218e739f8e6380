// Turns to read that always come at once, and are counted.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "read/stagger.hpp"

namespace forebay::test {

struct TurnCounts {
  std::atomic<int> taken = 0;
  std::atomic<int> given_back = 0;  ///< by release(), not by leave()
  std::atomic<bool> left = false;
  bool unlimited = true;  ///< what readers are told of them
};

class CountedTurns final : public Stagger {
 public:
  explicit CountedTurns(std::shared_ptr<TurnCounts> counts) : counts_(std::move(counts)) {}

  bool acquire(std::uint64_t, const GiveUp&) override {
    ++counts_->taken;
    return true;
  }
  void release(std::uint64_t) override { ++counts_->given_back; }
  void leave() override { counts_->left = true; }
  bool unlimited() const override { return counts_->unlimited; }
  std::string describe() const override { return "counted"; }

 private:
  std::shared_ptr<TurnCounts> counts_;
};

}  // namespace forebay::test
