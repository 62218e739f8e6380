#include "comm/net/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/messages.hpp"

namespace forebay::net {
namespace {

constexpr std::array<char, 8> kGreeting{'F', 'B', 'N', 'E', 'T', 'v', '1', '\0'};

struct ChallengeText {
  std::array<char, 8> greeting = kGreeting;
  Bytes16 nonce{};
};
struct AnswerText {
  std::uint32_t rank = 0;
  std::uint32_t called = 0;
  Bytes16 nonce{};
  Bytes16 mac{};
};
struct WelcomeText {
  std::uint64_t verdict = 0;
  Bytes16 mac{};
};
static_assert(sizeof(ChallengeText) == 24 && sizeof(AnswerText) == 40 && sizeof(WelcomeText) == 24);

/// All that a MAC vouches for.
struct SignedText {
  std::array<char, 8> greeting = kGreeting;
  std::uint32_t of_listener = 0;
  std::uint32_t verdict = 0;
  std::uint32_t listener = 0;
  std::uint32_t connector = 0;
  std::uint64_t ranks = 0;
  Bytes16 job{};
  Bytes16 listener_nonce{};
  Bytes16 connector_nonce{};
};
static_assert(sizeof(SignedText) == 80);

template <typename Text>
Text text_in(std::span<const std::byte> bytes) {
  Text text;
  std::memcpy(&text, bytes.data(), sizeof(text));
  return text;
}

}  // namespace

JobSecret JobSecret::make(const Bytes16& key, const std::string& job, int ranks) {
  return {.key = key, .job = siphash({}, std::as_bytes(std::span(job))), .ranks = ranks};
}

Handshake Handshake::listen(const JobSecret& secret, int rank, const Bytes16& nonce,
                            const std::vector<bool>& connected) {
  Handshake side(secret, rank, nonce);
  side.listens_ = true;
  side.connected_ = &connected;
  side.say(message_of(ChallengeText{.nonce = nonce}));
  side.await(sizeof(AnswerText));
  return side;
}

Handshake Handshake::connect(const JobSecret& secret, int rank, int to, const Bytes16& nonce) {
  Handshake side(secret, rank, nonce);
  side.other_ = to;
  side.await(sizeof(ChallengeText));
  return side;
}

void Handshake::say(std::span<const std::byte> text) {
  std::memcpy(out_.data(), text.data(), text.size());
  out_size_ = text.size();
  out_done_ = 0;
}

void Handshake::await(std::size_t bytes) {
  in_size_ = bytes;
  in_done_ = 0;
}

void Handshake::received(std::span<const std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), wants());
  std::memcpy(in_.data() + in_done_, bytes.data(), count);
  in_done_ += count;
  if (in_size_ == 0 || in_done_ < in_size_) return;
  const std::size_t awaited = in_size_;
  await(0);
  if (listens_) {
    take_answer();
  } else if (awaited == sizeof(ChallengeText) && out_size_ == 0) {
    take_challenge();
  } else {
    take_welcome();
  }
}

void Handshake::take_challenge() {
  const auto text = text_in<ChallengeText>(in_);
  if (text.greeting != kGreeting) {
    verdict_ = Verdict::stranger;
    return;
  }
  theirs_ = text.nonce;
  say(message_of(AnswerText{.rank = static_cast<std::uint32_t>(rank_),
                            .called = static_cast<std::uint32_t>(other_),
                            .nonce = mine_,
                            .mac = mac(false, Verdict::unknown)}));
  await(sizeof(WelcomeText));
}

void Handshake::take_answer() {
  const auto text = text_in<AnswerText>(in_);
  verdict_ = Verdict::stranger;
  const bool possible = text.rank < static_cast<std::uint32_t>(secret_->ranks) &&
                        text.called == static_cast<std::uint32_t>(rank_) &&
                        text.rank > static_cast<std::uint32_t>(rank_);
  out_done_ = out_size_;
  if (!possible) return;
  other_ = static_cast<int>(text.rank);
  theirs_ = text.nonce;
  if (!same_digest(text.mac, mac(false, Verdict::unknown))) return;
  verdict_ = (*connected_)[text.rank] ? Verdict::duplicate : Verdict::welcome;
  say(message_of(
      WelcomeText{.verdict = static_cast<std::uint64_t>(verdict_), .mac = mac(true, verdict_)}));
}

void Handshake::take_welcome() {
  const auto text = text_in<WelcomeText>(in_);
  verdict_ = Verdict::stranger;
  for (const Verdict verdict : {Verdict::welcome, Verdict::duplicate}) {
    if (text.verdict == static_cast<std::uint64_t>(verdict) &&
        same_digest(text.mac, mac(true, verdict))) {
      verdict_ = verdict;
    }
  }
}

Bytes16 Handshake::mac(bool of_listener, Verdict verdict) const {
  const int listener = listens_ ? rank_ : other_;
  const int connector = listens_ ? other_ : rank_;
  const SignedText text{.of_listener = of_listener ? 1U : 0U,
                        .verdict = static_cast<std::uint32_t>(verdict),
                        .listener = static_cast<std::uint32_t>(listener),
                        .connector = static_cast<std::uint32_t>(connector),
                        .ranks = static_cast<std::uint64_t>(secret_->ranks),
                        .job = secret_->job,
                        .listener_nonce = listens_ ? mine_ : theirs_,
                        .connector_nonce = listens_ ? theirs_ : mine_};
  return siphash(secret_->key, message_of(text));
}

}  // namespace forebay::net
