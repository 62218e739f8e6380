#include "comm/net/node_identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <string>

namespace forebay::net {

Bytes16 node_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  struct stat status {};
  const bool known = stat("/dev/shm", &status) == 0;
  const std::string text = fmt::format("{} {} {} {}", boot, host.data(), known ? status.st_dev : 0,
                                       known ? status.st_ino : 0);
  return siphash({}, std::as_bytes(std::span(text)));
}

}  // namespace forebay::net
