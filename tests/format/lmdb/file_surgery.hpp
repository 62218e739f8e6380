// The bytes of a small database, to be damaged at places that a test can name.
//
// Finds its way through the file on its own, trusting it: the database is whole when it starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "forebay/storage.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::lmdb {

class FileSurgery {
 public:
  explicit FileSurgery(const test::LmdbBuilder& builder) {
    const test::TemporaryFolder directory;
    builder.build(directory.path());
    std::ifstream in(directory.file("data.mdb"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    bytes_.resize(text.size());
    std::memcpy(bytes_.data(), text.data(), text.size());
    page_size_ = get<std::uint32_t>(16 + 24);
  }

  std::vector<std::byte>& bytes() { return bytes_; }
  std::uint64_t page_size() const { return page_size_; }
  std::uint64_t pages() const { return bytes_.size() / page_size_; }
  std::shared_ptr<const File> open() const { return memory_file("damaged.mdb", bytes_); }
  void write_to(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes_.data()),
              static_cast<std::streamsize>(bytes_.size()));
  }

  template <typename T>
  T get(std::uint64_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  template <typename T>
  void set(std::uint64_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  // Meta pages.
  std::uint64_t newest_meta_page() const {
    return get<std::uint64_t>(16 + 128) > get<std::uint64_t>(page_size_ + 16 + 128) ? 0 : 1;
  }
  std::uint64_t older_meta_page() const { return 1 - newest_meta_page(); }
  std::uint64_t meta(std::uint64_t field) const {
    return newest_meta_page() * page_size_ + 16 + field;
  }
  std::uint64_t main_tree(std::uint64_t field) const { return meta(72 + field); }
  std::uint64_t root() const { return get<std::uint64_t>(main_tree(40)); }
  void set_main_entries(std::uint64_t entries) { set(main_tree(32), entries); }

  // Tree pages.
  std::uint64_t at(std::uint64_t page) const { return page * page_size_; }
  unsigned count(std::uint64_t page) const {
    return (get<std::uint16_t>(at(page) + 12) - 16U) / 2U;
  }
  std::uint64_t node(std::uint64_t page, unsigned slot) const {
    return at(page) + get<std::uint16_t>(at(page) + 16 + 2 * slot);
  }
  std::uint64_t child(std::uint64_t page, unsigned slot) const {
    return get<std::uint32_t>(node(page, slot)) |
           std::uint64_t{get<std::uint16_t>(node(page, slot) + 4)} << 32;
  }
  void set_child(std::uint64_t page, unsigned slot, std::uint64_t child) {
    set(node(page, slot), static_cast<std::uint32_t>(child));
    set(node(page, slot) + 4, static_cast<std::uint16_t>(child >> 32));
  }
  void swap_slots(std::uint64_t page, unsigned a, unsigned b) {
    const auto first = get<std::uint16_t>(at(page) + 16 + 2 * a);
    set(at(page) + 16 + 2 * a, get<std::uint16_t>(at(page) + 16 + 2 * b));
    set(at(page) + 16 + 2 * b, first);
  }
  void zero_page(std::uint64_t page) {
    std::memset(bytes_.data() + at(page), 0, static_cast<std::size_t>(page_size_));
  }
  std::uint64_t first_leaf() const {
    std::uint64_t page = root();
    while ((get<std::uint16_t>(at(page) + 10) & 1) != 0) page = child(page, 0);
    return page;
  }
  /// Where the data of a leaf node begin.
  std::uint64_t data(std::uint64_t page, unsigned slot) const {
    return node(page, slot) + 8 + get<std::uint16_t>(node(page, slot) + 6);
  }
  /// Replaces the first page number in the free list; its root has to be a leaf.
  void set_first_free_page(std::uint64_t page) {
    const auto free_root = get<std::uint64_t>(meta(24 + 40));
    set(data(free_root, 0) + 8, page);
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t page_size_ = 4096;
};

}  // namespace forebay::lmdb
