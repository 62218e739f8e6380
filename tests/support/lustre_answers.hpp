// What Lustre says of a file, made by hand after the published layout of its structures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forebay::test {

class LustreAnswer {
 public:
  template <typename T>
  LustreAnswer& number(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  LustreAnswer& zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  LustreAnswer& append(const LustreAnswer& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
};

/// lov_user_md of `servers` objects; of version 3 with the name of a pool.
inline LustreAnswer plain_layout(std::uint32_t stripe, std::uint16_t servers, bool pool = false) {
  LustreAnswer answer;
  answer.number<std::uint32_t>(pool ? 0x0BD30BD0 : 0x0BD10BD0).number<std::uint32_t>(1).zeros(16);
  answer.number(stripe).number(servers).number<std::uint16_t>(0).zeros(pool ? 16 : 0);
  return answer.zeros(std::size_t{24} * servers);
}

struct LustreComponent {
  std::uint64_t begin, end;
  LustreAnswer layout;
  std::uint32_t flags = 0x10;
};

inline LustreAnswer composite_layout(std::vector<LustreComponent> components) {
  LustreAnswer answer;
  answer.number<std::uint32_t>(0x0BD60BD0).zeros(10);
  answer.number(static_cast<std::uint16_t>(components.size())).zeros(16);
  auto offset = static_cast<std::uint32_t>(32 + 48 * components.size());
  std::uint32_t id = 1;
  for (LustreComponent& one : components) {
    answer.number(id++).number(one.flags).number(one.begin).number(one.end);
    answer.number(offset).number(one.layout.size()).zeros(16);
    offset += one.layout.size();
  }
  for (LustreComponent& one : components) answer.append(one.layout);
  return answer;
}

}  // namespace forebay::test
