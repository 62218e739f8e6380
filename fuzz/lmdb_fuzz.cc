// Any bytes as an LMDB file: opening, walking, seeking, inspecting and verifying end with a result
// or an Error, within bounded time and memory, and never touch a byte outside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "format/convention/layout.hpp"
#include "format/lmdb/inspect.hpp"
#include "format/lmdb/verify.hpp"
#include "tests/support/unmapped_file.hpp"

namespace {

using namespace forebay;

/// Reads each byte, so that the address sanitizer sees each access.
std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t total = 0;
  for (const std::byte byte : bytes) total += std::to_integer<std::uint64_t>(byte);
  return total;
}

template <typename Step>
void attempt(const Step& step) {
  try {
    step();
  } catch (const Error&) {
    // The expected answer to most inputs.
  }
}

std::uint64_t walk(lmdb::Tree& tree) {
  std::uint64_t records = 0;
  std::uint64_t total = 0;
  lmdb::Cursor cursor = tree.first();
  for (bool more = cursor.valid(); more; more = tree.next(cursor), ++records) {
    const lmdb::Entry entry = tree.entry(cursor);
    total += sum(entry.key) + sum(entry.value);
  }
  if (records != tree.entries()) std::abort();  // a walk that ends well has seen all
  volatile std::uint64_t used = total;          // or the reads could be optimized away
  (void)used;
  return records;
}

void walk_back(lmdb::Tree& tree) {
  lmdb::Cursor cursor = tree.last();
  for (bool more = cursor.valid(); more; more = tree.previous(cursor)) tree.node(cursor);
}

void seek(lmdb::Tree& tree, std::span<const std::byte> bytes) {
  lmdb::Cursor cursor = tree.seek(bytes.first(std::min<std::size_t>(bytes.size(), 8)));
  for (int i = 0; cursor.valid() && i < 100; ++i) tree.next(cursor);
  if (tree.entries() == 0) return;
  lmdb::Cursor numbered;
  for (const std::uint64_t part : {2, 3, 1, 4}) {
    tree.seek_record(numbered, (tree.entries() - 1) / part);
    tree.node(numbered);
  }
}

/// Leaves that are skipped are those between the two places.
void skip(lmdb::Tree& tree) {
  constexpr std::uint64_t kSteps[] = {1, 2, 5, 100};
  lmdb::Cursor cursor = tree.first();
  for (int i = 0; cursor.valid() && i < 100; ++i) {
    const lmdb::Cursor before = cursor;
    const std::uint64_t step = kSteps[i % 4];
    const std::uint64_t moved = tree.skip_leaves(cursor, step);
    if (moved > step) std::abort();
    if (cursor.valid() && tree.leaves_between(before, cursor) != moved) std::abort();
    if (moved < step) return;
    tree.node(cursor);
  }
}

/// Conventions give maps of as many samples a part, whose records exist.
void find_convention(lmdb::Database& database) {
  convention::KeyLook look = convention::look_at_keys(database);
  attempt([&] { convention::number_metadata(database, look.metadata); });
  attempt([&] {
    auto asked = convention::look_at_keys(database, {.leave_out = "*1,k", .keep = "n*"});
    convention::number_metadata(database, asked.metadata);
  });
  attempt([&] { convention::order_by_number(database, look.metadata); });
  if (!convention::looks_grouped(look, true)) return;
  const convention::Layout layout = convention::lay_out_groups(database, look);
  for (const convention::LayoutPart& part : layout.parts) {
    if (part.records.samples() != layout.samples()) std::abort();
    if (layout.samples() == 0) continue;
    if (part.records.record(layout.samples() - 1) >= database.entries()) std::abort();
  }
}

void use(const std::shared_ptr<const File>& file, std::span<const std::byte> bytes) {
  const auto snapshot = std::make_shared<const lmdb::Snapshot>(file);
  lmdb::Database database = lmdb::Database::open(snapshot, {}, true);
  attempt([&] { walk(database.tree()); });
  attempt([&] { walk_back(database.tree()); });
  attempt([&] { seek(database.tree(), bytes); });
  attempt([&] { skip(database.tree()); });
  attempt([&] { lmdb::inspect(database); });
  attempt([&] { find_convention(database); });
  attempt([&] {
    std::uint64_t total = 0;
    lmdb::verify(database, {}, [&](const Record& record) { total += sum(record.value); });
  });
  attempt([&] {
    for (const auto& name : database.named_databases()) {
      lmdb::Database named = lmdb::Database::open(snapshot, name, false);
      walk(named.tree());
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = memory_file("fuzz.mdb", bytes);
  attempt([&] { lmdb::Database::open(file); });
  attempt([&] { use(file, bytes); });
  attempt([&] { use(std::make_shared<const test::UnmappedFile>(file), bytes); });
  return 0;
}
