#include "comm/net/meeting.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/messages.hpp"
#include "comm/net/node_identity.hpp"
#include "comm/waiting.hpp"

namespace forebay::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSlice{200};
constexpr std::size_t kBlock = 512;  // addresses in one value
constexpr std::uint64_t kStartMagic = 0x3154524154534246;

struct Start {
  std::uint64_t magic = kStartMagic;
  std::uint64_t ranks = 0;
  Bytes16 nonce{};
  Bytes16 key{};
};

struct NodeEntry {
  Bytes16 node{};
  Bytes16 process{};  ///< tells two processes of one rank apart
  std::array<char, 96> host{};
};

struct Layout {
  std::uint64_t nodes = 1;  ///< 2: or more
  std::array<NodeEntry, 2> examples{};
};

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte one : bytes) text += fmt::format("{:02x}", std::to_integer<int>(one));
  return text;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string host_of(const NodeEntry& entry) {
  return {entry.host.data(), strnlen(entry.host.data(), entry.host.size())};
}

template <typename T>
T checked_value(std::span<const std::byte> bytes) {
  T value;
  if (bytes.size() != sizeof(value)) {
    throw Error(ErrorKind::communication,
                "what is at the rendezvous is not from a rank of this job",
                "start all ranks with the same version of Forebay, and give each job a name");
  }
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// The address that this host's name stands for, or over which it reaches the world, or the only
/// one.
std::optional<Address> address_by_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  try {
    const Address address = Address::of(host.data(), 0);
    if (!address.is_loopback()) return address;
  } catch (const Error&) {
    // A host without an entry for itself.
  }
  const auto outward = address_towards(Address::of("192.0.2.1", 9));  // of no host; nothing is sent
  return outward ? outward : only_address();
}

/// Nothing where there is no way, or only one inside of this host.
std::optional<Address> address_reaching(const std::string& host) {
  if (host.empty()) return std::nullopt;
  try {
    auto address = address_towards(Address::of(host, 0));
    if (address && !address->is_loopback()) return address;
  } catch (const Error&) {
    // Not known here: others may know it.
  }
  return std::nullopt;
}

}  // namespace

Meeting::Meeting(Rendezvous& rendezvous, const ConnectOptions& options)
    : rendezvous_(rendezvous),
      options_(options),
      deadline_(steady_clock::now() + options.timeout),
      job_(hex(siphash({}, std::as_bytes(std::span(options.job))))) {}

milliseconds Meeting::left() const {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now());
  return std::max(left, milliseconds(0));
}

std::string Meeting::key(const std::string& what) const {
  return fmt::format("{}.{}{}{}", job_, nonce_, nonce_.empty() ? "" : ".", what);
}

std::string Meeting::key(const char* what, int number) const {
  return key(fmt::format("{}.{}", what, number));
}

void Meeting::leave(const std::string& key, std::span<const std::byte> value) {
  left_.push_back(key);
  rendezvous_.set(key, value);
}

/// `from` completes "... has not come".
Meeting::Value Meeting::await(const std::string& key, const std::string& from) {
  for (;;) {
    auto value = rendezvous_.get(key, std::min(kSlice, left()));
    if (value) return *value;
    look();
    if (left() > milliseconds(0)) continue;
    throw Error(ErrorKind::communication,
                fmt::format("{} not come to the rendezvous within {}", from, options_.timeout),
                "look whether all ranks run, and use the same rendezvous and name of the job");
  }
}

/// By rank 0. Who is missing is named at the end.
std::vector<Meeting::Value> Meeting::await_all(const char* what) {
  std::vector<Value> all;
  for (int rank = 0; rank < options_.size; ++rank) {
    try {
      all.push_back(await(key(what, rank), ""));
    } catch (const Error& error) {
      if (left() > milliseconds(0)) throw;
      std::string missing = std::to_string(rank);
      for (int other = rank + 1; other < options_.size; ++other) {
        if (!rendezvous_.get(key(what, other), milliseconds(0))) {
          missing += fmt::format(", {}", other);
        }
      }
      throw Error(ErrorKind::communication,
                  fmt::format("ranks that have not come to the rendezvous within {}: {}",
                              options_.timeout, missing),
                  "look whether they run, and use the same rendezvous and name of the job",
                  {.rank = rank});
    }
  }
  return all;
}

JobSecret Meeting::begin() {
  clean_up();
  nonce_.clear();
  node_.clear();
  const std::string key = this->key("start");
  if (options_.rank == 0) {
    const Start start{.ranks = static_cast<std::uint64_t>(options_.size),
                      .nonce = random_bytes(),
                      .key = random_bytes()};
    const auto bytes = message_of(start);
    start_.assign(bytes.begin(), bytes.end());
    leave(key, start_);
  } else {
    start_.clear();
    start_ = await(key, "rank 0 has");
  }
  const auto start = checked_value<Start>(start_);
  if (start.magic != kStartMagic) checked_value<Start>({});
  nonce_ = hex(start.nonce);
  if (start.ranks != static_cast<std::uint64_t>(options_.size)) {
    throw Error(ErrorKind::usage,
                fmt::format("rank {} counts {} ranks, and rank 0 {}", options_.rank, options_.size,
                            start.ranks),
                "start all ranks with the same number of ranks", {.rank = options_.rank});
  }
  return JobSecret::make(start.key, options_.job, options_.size);
}

std::string Meeting::candidate() const {
  if (!options_.listen_on.empty()) return options_.listen_on;
  if (const auto address = address_reaching(rendezvous_.host())) return address->host();
  // The rendezvous is on this host, or none: then the way to others is not known from it.
  if (!rendezvous_.host().empty()) return {};
  const auto address = address_by_name();
  return address && !address->is_loopback() ? address->host() : std::string();
}

Address Meeting::find_address() {
  NodeEntry mine{.node = node_identity(), .process = random_bytes()};
  const std::string host = candidate();
  host.copy(mine.host.data(), mine.host.size() - 1);
  const auto bytes = message_of(mine);
  node_.assign(bytes.begin(), bytes.end());
  leave(key("node", options_.rank), node_);
  if (options_.rank == 0) {
    Layout layout{.examples = {mine, mine}};
    for (const Value& value : await_all("node")) {
      const auto entry = checked_value<NodeEntry>(value);
      if (entry.node == mine.node) continue;
      layout.nodes = 2;
      if (host_of(layout.examples[1]).empty() || layout.examples[1].node == mine.node) {
        layout.examples[1] = entry;
      }
    }
    leave(key("layout"), message_of(layout));
  }
  const auto layout = checked_value<Layout>(await(key("layout"), "rank 0 has"));
  if (!options_.listen_on.empty()) return Address::of(options_.listen_on, 0);
  if (layout.nodes == 1) return Address::of("127.0.0.1", 0);
  if (!host.empty()) return Address::of(host, 0);
  for (const NodeEntry& example : layout.examples) {
    if (example.node == mine.node) continue;
    if (const auto address = address_reaching(host_of(example))) return *address;
  }
  // Where nobody knows another way than loopback, that is what leads to the rendezvous.
  const bool unknown = std::ranges::all_of(
      layout.examples, [](const NodeEntry& example) { return host_of(example).empty(); });
  if (unknown && !rendezvous_.host().empty()) return Address::of("127.0.0.1", 0);
  throw Error(ErrorKind::communication,
              "no address of this host was found under which the other nodes reach it",
              "say which address to listen on", {.rank = options_.rank});
}

std::vector<Address> Meeting::share_address(const Address& mine) {
  const std::string text = mine.to_text();
  leave(key("address", options_.rank), std::as_bytes(std::span(text)));
  const auto ranks = static_cast<std::size_t>(options_.size);
  if (options_.rank == 0) {
    const auto all = await_all("address");
    for (std::size_t first = 0; first < ranks; first += kBlock) {
      std::string block;
      for (std::size_t rank = first; rank < std::min(first + kBlock, ranks); ++rank) {
        block += text_of(all[rank]) + '\n';
      }
      leave(key("addresses", static_cast<int>(first / kBlock)), std::as_bytes(std::span(block)));
    }
  }
  std::vector<Address> addresses;
  const auto below = static_cast<std::size_t>(options_.rank);
  for (std::size_t first = 0; first < below; first += kBlock) {
    const auto block =
        text_of(await(key("addresses", static_cast<int>(first / kBlock)), "rank 0 has"));
    for (std::size_t begin = 0; begin < block.size() && addresses.size() < below;) {
      const std::size_t end = std::min(block.find('\n', begin), block.size());
      const auto address = Address::parse(block.substr(begin, end - begin));
      if (!address) checked_value<Start>({});
      addresses.push_back(*address);
      begin = end + 1;
    }
  }
  if (addresses.size() != below) checked_value<Start>({});
  return addresses;
}

void Meeting::look() {
  if (nonce_.empty()) return;
  if (const auto failure = rendezvous_.get(key("failed"), milliseconds(0))) {
    throw parse_error(text_of(*failure));
  }
  const std::string nonce = std::exchange(nonce_, {});
  const auto start = rendezvous_.get(key("start"), milliseconds(0));
  nonce_ = nonce;
  if (start && *start != start_) {
    if (options_.rank != 0) throw StartedAnew();
    throw Error(ErrorKind::usage, "two processes say that they are rank 0",
                "give each process a rank of its own, and each job a name of its own", {.rank = 0});
  }
  if (node_.empty()) return;
  const auto node = rendezvous_.get(key("node", options_.rank), milliseconds(0));
  if (node && *node != node_) {
    throw Error(ErrorKind::usage,
                fmt::format("two processes say that they are rank {}", options_.rank),
                "give each process of the job a rank of its own", {.rank = options_.rank});
  }
}

void Meeting::fail(const Error& error) noexcept {
  if (nonce_.empty()) return;
  try {
    const std::string text = serialize(error.at_rank(options_.rank));
    const auto bytes = std::as_bytes(std::span(text));
    if (bytes.size() <= Rendezvous::kLongestValue) rendezvous_.set(key("failed"), bytes);
    // Whoever comes now belongs to another start.
    if (options_.rank == 0) rendezvous_.erase(left_.front());
  } catch (const std::exception&) {
    return;  // they find out by waiting
  }
}

void Meeting::clean_up() noexcept {
  for (const std::string& key : left_) rendezvous_.erase(key);
  left_.clear();
}

}  // namespace forebay::net
