#include "sync/servers/clocked_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr const char* kSameVersion = "start all ranks with the same version of Forebay";

void add_to(std::span<float> sum, std::span<const float> more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

}  // namespace

std::size_t find_child(std::span<const Address> children, const Address& child) {
  const auto found = std::ranges::find(children, child);
  if (found != children.end()) return static_cast<std::size_t>(found - children.begin());
  throw Error(ErrorKind::communication,
              fmt::format("rank {} sent gradients to a rank that does not serve it", child.rank),
              kSameVersion);
}

void require_length(const ServerLetter& letter, std::size_t length) {
  if (letter.numbers().size() == length) return;
  throw Error(ErrorKind::communication,
              fmt::format("rank {} sent {} numbers where {} were expected", letter.from().rank,
                          letter.numbers().size(), length),
              kSameVersion);
}

ClockedSum::ClockedSum(std::vector<Address> children, std::size_t length) : length_(length) {
  for (const Address& child : children) children_.push_back({.address = child, .letters = {}});
}

ClockedSum::Child& ClockedSum::find(const Address& address) {
  const auto found = std::ranges::find(children_, address, &Child::address);
  if (found == children_.end()) find_child({}, address);
  return *found;
}

void ClockedSum::add(ServerLetter letter) {
  require_length(letter, length_);
  find(letter.from()).letters.push_back(std::move(letter));
}

void ClockedSum::leave(const Address& child) { find(child).left = true; }

std::optional<std::span<const float>> ClockedSum::next() {
  bool any = false;
  for (const Child& child : children_) {
    if (child.letters.empty() && !child.left) return std::nullopt;
    any = any || !child.letters.empty();
  }
  if (!any) return std::nullopt;
  sum_.reset();
  for (Child& child : children_) {
    if (child.letters.empty()) continue;
    if (!sum_) {
      sum_ = std::move(child.letters.front());
    } else {
      add_to(sum_->numbers(), std::as_const(child.letters.front()).numbers());
    }
    child.letters.pop_front();
  }
  return std::as_const(*sum_).numbers();
}

bool ClockedSum::all_left() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.left; });
}

void ClockedSum::begin_again() {
  for (Child& child : children_) child.left = false;
}

}  // namespace forebay
