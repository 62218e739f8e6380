// Sums over those below a station, clock by clock, in their order: the same numbers however they
// came.
//
//   child 0   | 3 | 4 |              -> next() gives 3, the sum of three letters, and then nothing:
//   child 1   | 3 |                     child 1 has not given 4 yet
//   child 2   | 3 | 4 | left |          (a child that has left is not waited for)
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sync/servers/server_mail.hpp"

namespace forebay {

/// Of one thread.
class ClockedSum {
 public:
  /// `length` numbers in each letter.
  ClockedSum(std::vector<Address> children, std::size_t length);

  /// Throws communication for a letter of another length, or of who is no child.
  void add(ServerLetter letter);
  void leave(const Address& child);
  /// The numbers of the next clock, once all have given theirs; valid until the next call.
  std::optional<std::span<const float>> next();
  bool all_left() const;
  /// Nobody has left.
  void begin_again();

 private:
  struct Child {
    Address address;
    std::deque<ServerLetter> letters;
    bool left = false;
  };

  Child& find(const Address& address);

  std::vector<Child> children_;
  std::size_t length_;
  std::optional<ServerLetter> sum_;
};

/// Where `child` stands among `children`. Throws communication for who is none of them.
std::size_t find_child(std::span<const Address> children, const Address& child);
/// Throws communication unless the letter has so many numbers.
void require_length(const ServerLetter& letter, std::size_t length);

}  // namespace forebay
