// Staggering by tokens that go round; see read/stagger.hpp for the rings.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "read/stagger.hpp"

namespace forebay {

/// Where a root stands in the ring of its label.
struct TokenRing {
  int before = 0;  ///< the root that passes the token to this one
  int after = 0;   ///< the root that gets it next
  bool first = true;
  bool last = true;

  /// Pure. 0 <= root < roots, group >= 1.
  static TokenRing of(int root, int roots, int group);
  bool alone() const { return first && last; }
};

class TokenStagger final : public Stagger {
 public:
  /// `comm` carries tokens alone. `options.group` >= 1.
  TokenStagger(std::shared_ptr<Communicator> comm, const StaggerOptions& options);
  ~TokenStagger() override;

  bool acquire(std::uint64_t turn, const GiveUp& give_up) override;
  void release(std::uint64_t bytes) override;
  void leave() override;
  int at_once() const override;
  std::string describe() const override;

  /// New rings from the next turn on, up to `end_turn`. Only when no root has a turn before that
  /// left to read, and by all roots.
  void restart(int group, std::uint64_t end_turn);
  /// leave() for a root that does not know which rings the others form next.
  void leave_all_rings();

 private:
  bool receive_token(std::uint64_t turn, const GiveUp& give_up);
  void send(int to, std::uint64_t kind, std::uint64_t turn);
  bool successor_gone();

  std::shared_ptr<Communicator> comm_;
  StaggerOptions options_;
  TokenRing ring_;
  std::optional<std::uint64_t> turn_;  ///< the last one acquired
  bool started_ = false;               ///< a turn of these rings was acquired
  bool holding_ = false;
  bool predecessor_left_ = false;
  bool successor_left_ = false;
  bool left_ = false;
};

}  // namespace forebay
