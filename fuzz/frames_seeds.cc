// Seeds for frames_fuzz: the texts of a handshake, and streams of frames.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "comm/messages.hpp"
#include "comm/net/frame.hpp"
#include "comm/net/handshake.hpp"

namespace {

using namespace forebay;
using namespace forebay::net;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void write(const std::string& path, char how, const std::vector<std::byte>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.put(how);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> stream(std::initializer_list<std::size_t> lengths) {
  std::vector<std::byte> bytes;
  std::uint64_t tag = 0;
  for (const std::size_t length : lengths) {
    const Port port{
        .communicator = 1, .channel = static_cast<Channel>(tag % kChannels), .tag = tag};
    append(bytes, message_of(FrameHeader::make(3, port, length)));
    bytes.resize(bytes.size() + length, std::byte{42});
    ++tag;
  }
  return bytes;
}

}  // namespace

int main(int, char** words) {
  const std::filesystem::path folder = words[1];
  const auto secret = JobSecret::make({}, "fuzz", 8);
  const std::vector<bool> connected(8, false);
  auto listener = Handshake::listen(secret, 1, {}, connected);
  auto connector = Handshake::connect(secret, 4, 1, {});
  std::vector<std::byte> challenge, answer, welcome;
  append(challenge, listener.to_send());
  connector.received(challenge);
  append(answer, connector.to_send());
  listener.received(answer);
  append(welcome, listener.to_send());
  write(folder / "answer", 1, answer);
  append(challenge, welcome);
  write(folder / "challenge", 0, challenge);
  write(folder / "frames", 10, stream({0, 1, 100, 5000, 0, 40}));
  write(folder / "short", 3, stream({0, 0, 0, 7, 8, 9}));
  write(folder / "long", 100, stream({20'000, 4096, 4056}));
  return 0;
}
