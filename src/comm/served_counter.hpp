// A SharedCounter that works wherever messages do: rank 0 answers.
//
//   rank r:  notice {kind, r, k, n} --> rank 0: serve() adds --> message {k, before} --> rank r
//
// k numbers the requests of a rank, so that the answer to one that was given up is told from the
// next. Requests are notices because rank 0 takes these from anybody at once.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

class ServedCounter final : public SharedCounter {
 public:
  /// `comm` belongs to this counter alone. `why` completes "answered by rank 0: ".
  ServedCounter(std::shared_ptr<Communicator> comm, std::chrono::milliseconds limit,
                std::string why);
  ServedCounter(const ServedCounter&) = delete;
  ServedCounter& operator=(const ServedCounter&) = delete;
  ~ServedCounter() override;

  std::optional<std::uint64_t> fetch_add(std::uint64_t n, const GiveUp& give_up) override;
  void add(std::uint64_t n) override;
  bool serve() override;
  bool needs_serving() const override { return comm_->size() > 1; }
  std::string describe() const override;

 private:
  bool owns() const { return comm_->rank() == 0; }
  void ask(std::uint64_t kind, std::uint64_t n);
  std::optional<std::uint64_t> receive_answer();
  bool is_gone();
  void answer(std::span<const std::byte> request);
  void wait_until_all_leave();

  std::shared_ptr<Communicator> comm_;
  std::chrono::milliseconds limit_;
  std::string why_;
  std::atomic<std::uint64_t> number_ = 0;  ///< at rank 0
  std::vector<bool> left_;                 ///< at rank 0: who asks no more
  std::mutex mutex_;                       ///< one request, or one round of answers, at a time
  std::uint64_t asked_ = 0;
  bool gone_ = false;
};

}  // namespace forebay
