#include "format/lmdb/provenance/recipe.hpp"

#include <fmt/format.h>

#include <bit>

#include "format/byte_stream.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kRecipeVersion = 1;
constexpr std::uint64_t kAppend = 1;
constexpr std::uint64_t kCreatedApart = 2;

constexpr std::uint32_t kSlotBytes = 2;       // in the page's table of offsets
constexpr std::uint32_t kReferenceBytes = 8;  // a page number instead of the value

constexpr std::uint32_t even(std::uint32_t bytes) { return (bytes + 1) & ~std::uint32_t{1}; }

/// The largest node: at least two must fit on a page, slots included.
constexpr std::uint32_t max_node(std::uint32_t page_size) {
  return (page_room(page_size) / 2 & ~std::uint32_t{1}) - kSlotBytes;
}

std::string outside(std::uint64_t value, std::uint64_t least, std::uint64_t most,
                    const char* name) {
  if (value >= least && value <= most) return {};
  return fmt::format("{} is {}, not between {} and {}", name, value, least, most);
}

}  // namespace

Footprint footprint(std::uint32_t key_size, std::uint32_t value_size, std::uint32_t page_size) {
  constexpr auto kHeader = static_cast<std::uint32_t>(kNodeHeaderSize);
  const std::uint32_t start = kHeader + key_size;
  Footprint result;
  result.branch_bytes = even(start) + kSlotBytes;
  const bool in_leaf = start <= max_node(page_size) && value_size <= max_node(page_size) - start;
  result.leaf_bytes = even(start + (in_leaf ? value_size : kReferenceBytes)) + kSlotBytes;
  if (!in_leaf)
    result.run_pages = static_cast<std::uint32_t>(overflow_pages(value_size, page_size));
  return result;
}

Footprint footprint(const Recipe& recipe) {
  return footprint(recipe.key_size, recipe.value_size, recipe.page_size);
}

std::uint32_t max_records_per_leaf(const Recipe& recipe) {
  return page_room(recipe.page_size) / footprint(recipe).leaf_bytes;
}

std::uint32_t max_children_per_branch(const Recipe& recipe) {
  return 1 + (page_room(recipe.page_size) - kFirstChildBytes) / footprint(recipe).branch_bytes;
}

std::string impossible(const Recipe& recipe) {
  if (!std::has_single_bit(recipe.page_size) || recipe.page_size < kMinPageSize ||
      recipe.page_size > kMaxPageSize) {
    return fmt::format("no database has pages of {} bytes", recipe.page_size);
  }
  std::string fault = outside(recipe.key_size, 1, kMaxKeySize, "the key size");
  if (fault.empty()) fault = outside(recipe.name.size(), 0, kMaxKeySize, "the length of the name");
  if (fault.empty()) {
    fault = outside(recipe.commit_every, 0, kMaxRecipeRecords, "the commit interval");
  }
  if (fault.empty()) {
    fault = outside(recipe.first_commit, 0, kMaxRecipeRecords, "the first commit");
  }
  if (!fault.empty()) return fault;
  // So that all pages have numbers of 48 bits, as branches store them.
  const std::uint64_t pages = 1 + std::uint64_t{footprint(recipe).run_pages};
  return outside(recipe.records, 1, kMaxRecipeRecords / pages, "the number of records");
}

void validate(const Recipe& recipe) {
  const std::string fault = impossible(recipe);
  if (fault.empty()) return;
  throw Error(ErrorKind::corrupt, "recipe: " + fault, "make the provenance of the data set anew");
}

std::vector<std::byte> to_bytes(const Recipe& recipe) {
  ByteWriter out;
  out.varint(kRecipeVersion);
  out.varint((recipe.append ? kAppend : 0) | (recipe.created_apart ? kCreatedApart : 0));
  out.varint(recipe.page_size);
  out.varint(recipe.key_size);
  out.varint(recipe.value_size);
  out.varint(recipe.records);
  out.varint(recipe.commit_every);
  out.varint(recipe.first_commit);
  out.block(bytes_of(recipe.name));
  return out.take();
}

Recipe recipe_from_bytes(std::span<const std::byte> bytes) {
  NumberReader in(bytes, "recipe");
  Recipe recipe;
  in.get(kRecipeVersion, kRecipeVersion, "the version");
  const std::uint64_t options = in.get(0, kAppend | kCreatedApart, "the set of options");
  recipe.append = (options & kAppend) != 0;
  recipe.created_apart = (options & kCreatedApart) != 0;
  recipe.page_size = static_cast<std::uint32_t>(in.get(0, kMaxPageSize, "the page size"));
  recipe.key_size = static_cast<std::uint32_t>(in.get(0, kMaxKeySize, "the key size"));
  recipe.value_size = static_cast<std::uint32_t>(in.get(0, 0xFFFFFFFF, "the value size"));
  recipe.records = in.get(0, kMaxRecipeRecords, "the number of records");
  recipe.commit_every = in.get(0, kMaxRecipeRecords, "the commit interval");
  recipe.first_commit = in.get(0, kMaxRecipeRecords, "the first commit");
  recipe.name = in.get_text(kMaxKeySize, "the length of the name");
  in.end();
  validate(recipe);
  return recipe;
}

}  // namespace forebay::lmdb
