#include "format/lmdb/provenance/sidecar.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/provenance/recipe_leaves.hpp"
#include "format/user_cache.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kSidecarMagic = 0x5941'4245'524f'4689;  // 0x89 "FOREBAY"
constexpr std::uint32_t kSidecarVersion = 1;
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kChecksumAt = 16;

struct SidecarHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t form;
  std::uint64_t checksum;
};

std::uint64_t checksum(std::span<const std::byte> sidecar) {
  const std::uint64_t of_header = XXH3_64bits(sidecar.data(), kChecksumAt);
  const auto rest = sidecar.subspan(kHeaderBytes);
  return XXH3_64bits_withSeed(rest.data(), rest.size(), of_header);
}

SidecarHeader read_header(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  SidecarHeader header{};
  header.magic = in.number<std::uint64_t>();
  header.version = in.number<std::uint32_t>();
  header.form = in.number<std::uint32_t>();
  header.checksum = in.number<std::uint64_t>();
  return header;
}

/// Why the bytes as a whole are not to be used; empty when they may be.
std::string fault_of(std::span<const std::byte> bytes, const SidecarHeader& header) {
  if (header.magic != kSidecarMagic) return "it is no sidecar";
  if (header.version != kSidecarVersion) {
    return fmt::format("it is of version {}, this program reads version {}", header.version,
                       kSidecarVersion);
  }
  if (header.checksum != checksum(bytes)) return "it is cut short or was changed: wrong checksum";
  return {};
}

std::unique_ptr<LeafProducer> read_table(ByteReader& in, const TreeFacts& facts) {
  return std::make_unique<TableLeaves>(LeafTable::read(in, facts.entries, facts.leaf_pages));
}

std::unique_ptr<LeafProducer> read_recipe(ByteReader& in, const TreeFacts& facts) {
  auto leaves = RecipeLeaves::read(in);
  const Recipe& recipe = leaves->recipe();
  if (recipe.records != facts.entries || recipe.page_size != facts.page_size) {
    throw Error(ErrorKind::corrupt, "its recipe is for another tree");
  }
  return leaves;
}

/// Throws corrupt when the leaves as a whole cannot be those of the tree.
void check_leaves(const LeafProducer& leaves, const TreeFacts& facts) {
  const Segment end = leaves.directory().back();
  if (end.first_sample != facts.entries || end.first_leaf != facts.leaf_pages) {
    throw Error(ErrorKind::corrupt,
                fmt::format("it has {} records on {} leaves, the tree has {} on {}",
                            end.first_sample, end.first_leaf, facts.entries, facts.leaf_pages));
  }
  if (leaves.witness() == nullptr && facts.entries > 0) {
    throw Error(ErrorKind::corrupt, "it says nothing about the keys");
  }
}

SidecarResult read_sidecar(std::span<const std::byte> bytes, const TreeFacts& facts) {
  const SidecarHeader header = read_header(bytes);
  if (std::string fault = fault_of(bytes, header); !fault.empty()) return {.problem = fault};
  ByteReader in(bytes.subspan(kHeaderBytes));
  const std::string fingerprint(chars_of(in.block()));
  if (fingerprint != facts.fingerprint) {
    return {.problem = fmt::format("it was made for another state of the data set ({}, now {})",
                                   printable_key(fingerprint, 300), facts.fingerprint)};
  }
  SidecarResult result;
  switch (static_cast<SidecarForm>(header.form)) {
    case SidecarForm::table:
      result.leaves = read_table(in, facts);
      break;
    case SidecarForm::recipe:
      result.leaves = read_recipe(in, facts);
      break;
    default:
      return {.problem = fmt::format("its form {} is unknown", header.form)};
  }
  in.end();
  check_leaves(*result.leaves, facts);
  return result;
}

}  // namespace

std::string to_string(SidecarForm form) { return form == SidecarForm::table ? "table" : "recipe"; }

SidecarResult load_sidecar(std::span<const std::byte> bytes, const TreeFacts& facts) {
  try {
    return read_sidecar(bytes, facts);
  } catch (const Error& error) {
    return {.problem = error.happened()};
  }
}

std::vector<std::byte> table_sidecar(LeafTable table, const TreeFacts& facts) {
  if (table.samples() != facts.entries || table.leaves() != facts.leaf_pages ||
      (!table.has_keys() && facts.entries > 0)) {
    throw Error(ErrorKind::usage, "the table does not know all leaves with their keys",
                "make one with 'forebay provenance'", {.file = facts.file});
  }
  table.shorten();
  ByteWriter body;
  table.write(body);
  return seal_sidecar(SidecarForm::table, facts.fingerprint, body.bytes());
}

std::vector<std::byte> table_sidecar(const LeafProducer& leaves, const TreeFacts& facts) {
  const auto* table = dynamic_cast<const TableLeaves*>(&leaves);
  if (table != nullptr) return table_sidecar(table->table(), facts);
  throw Error(ErrorKind::usage, fmt::format("leaves of the form '{}' are no table", leaves.form()),
              "make one with 'forebay provenance'", {.file = facts.file});
}

std::vector<std::byte> seal_sidecar(SidecarForm form, const std::string& fingerprint,
                                    std::span<const std::byte> body) {
  ByteWriter out;
  out.number(kSidecarMagic);
  out.number(kSidecarVersion);
  out.number(static_cast<std::uint32_t>(form));
  out.number(std::uint64_t{0});
  out.block(std::as_bytes(std::span(fingerprint)));
  out.raw(body);
  std::vector<std::byte> bytes = out.take();
  seal_again(bytes);
  return bytes;
}

void seal_again(std::span<std::byte> sidecar) {
  if (sidecar.size() < kHeaderBytes) return;
  const std::uint64_t sum = checksum(sidecar);
  std::memcpy(sidecar.data() + kChecksumAt, &sum, sizeof sum);
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNameBytes = 100;

/// `name` as part of a file name that no other name shares.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text.size() <= kMostNameBytes ? text : hash_text(name);
}

std::optional<FoundSidecar> try_read(const std::string& path, std::uint64_t most_bytes) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    return FoundSidecar{.path = path, .bytes = read_small_file(path, most_bytes)};
  } catch (const Error& problem) {
    log_message(LogLevel::warning, fmt::format("{} is not used: {}", path, problem.what()));
    return {};
  }
}

}  // namespace

std::string sidecar_path(const DatasetPath& dataset) {
  if (dataset.foreign) return {};
  if (dataset.name.empty()) return dataset.data_file + ".forebay";
  return fmt::format("{}.{}.forebay", dataset.data_file, escaped(dataset.name));
}

std::optional<FoundSidecar> find_sidecar(const DatasetPath& dataset,
                                         const std::function<std::string()>& identity,
                                         std::uint64_t most_bytes,
                                         const std::function<bool(const FoundSidecar&)>& fits) {
  for (const bool cached : {false, true}) {
    const std::string path =
        cached ? user_cache_path(identity()).value_or(std::string()) : sidecar_path(dataset);
    if (path.empty()) continue;
    auto found = try_read(path, most_bytes);
    if (!found) continue;
    found->cached = cached;
    if (fits(*found)) return found;
  }
  return std::nullopt;
}

std::uint64_t most_sidecar_bytes(std::uint64_t entries, std::uint64_t leaf_pages) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // keeps the products small
  return (std::uint64_t{1} << 20) + 32 * std::min(entries, kMost) +
         64 * std::min(leaf_pages, kMost);
}

}  // namespace forebay::lmdb
