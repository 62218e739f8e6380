// Numbers in bytes, for recipes and checkpoints: seven bits a byte, lowest first, the top bit says
// that more follow. Every number is read with the limit that it must keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forebay::lmdb {

class NumberWriter {
 public:
  void put(std::uint64_t number);
  void put(const std::string& text);  ///< its size, then its bytes
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// `bytes` and `what` (named in messages) outlive it. All methods throw corrupt.
class NumberReader {
 public:
  NumberReader(std::span<const std::byte> bytes, const char* what) : bytes_(bytes), what_(what) {}

  std::uint64_t get(std::uint64_t least, std::uint64_t most, const char* name);
  bool get_flag(const char* name) { return get(0, 1, name) != 0; }
  std::string get_text(std::size_t longest, const char* name);
  /// Throws unless all was read.
  void end() const;

 private:
  std::uint64_t raw();
  [[noreturn]] void refuse(const std::string& fault) const;

  std::span<const std::byte> bytes_;
  const char* what_;
};

}  // namespace forebay::lmdb
