// Any bytes as a sidecar of a sound database, its checksum valid and its fingerprint right: what is
// read with it is what liblmdb reads, or it is refused.
//
// Compressed segments are hard to change in an interesting way, so inputs may also list changes to
// the leaves of a sound table, which is then encoded again: swapped leaves, pages of older copies,
// counts, runs. The facts of the keys stay sound, as they do unless somebody forges a sidecar on
// purpose.
#include <cstdlib>
#include <memory>
#include <span>

#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/scan.hpp"
#include "fuzz/sidecar_databases.hpp"

namespace {

using namespace forebay;
using namespace forebay::lmdb;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The extents of a file that is in memory; bytes that were not asked for are an error of ours.
class MappedExtents final : public FileBytes {
 public:
  MappedExtents(const File& file, std::span<const FileExtent> extents)
      : file_(file), extents_(extents) {}
  std::span<const std::byte> at(std::uint32_t, std::uint64_t offset,
                                std::uint64_t length) const override {
    for (const FileExtent& extent : extents_) {
      if (offset >= extent.offset && offset - extent.offset <= extent.length &&
          length <= extent.length - (offset - extent.offset)) {
        return file_.map().subspan(offset, length);
      }
    }
    std::abort();
  }

 private:
  const File& file_;
  std::span<const FileExtent> extents_;
};

void read_range(LeafIndex& index, const FuzzedDatabase& fuzzed, std::uint64_t first,
                std::uint64_t count) {
  std::vector<FileExtent> extents;
  index.extents(first, count, extents);
  for (const FileExtent& extent : extents) {
    const std::uint64_t size = fuzzed.file->map().size();
    if (extent.offset >= size || extent.length > size - extent.offset) std::abort();
  }
  std::uint64_t sample = first;
  index.unpack(first, count, MappedExtents(*fuzzed.file, extents), [&](const Record& record) {
    const test::OracleRecord& expected = fuzzed.records.at(sample);
    if (record.sample != sample || text_of(record.key) != expected.key ||
        text_of(record.value) != expected.value) {
      std::abort();  // a wrong record
    }
    ++sample;
  });
  if (sample != first + count) std::abort();
}

template <typename Step>
void attempt(const Step& step) {
  try {
    step();
  } catch (const Error&) {
    // Refused: the expected answer to most inputs.
  }
}

/// Single samples first, so that no neighbour gives a lie away; then all of them.
void use(const FuzzedDatabase& fuzzed, std::unique_ptr<LeafProducer> leaves) {
  const TreeFacts facts = facts_of(*fuzzed.database);
  std::vector<std::uint64_t> memory(required_bytes(*leaves, facts) / 8);
  LeafIndex index(std::move(leaves), facts, fuzzed.database->pages(),
                  {.bytes = std::as_writable_bytes(std::span(memory))});
  const std::uint64_t entries = fuzzed.records.size();
  for (std::uint64_t sample = 0; sample < entries; sample += 1 + entries / 40) {
    attempt([&] { read_range(index, fuzzed, sample, 1); });
  }
  attempt([&] { read_range(index, fuzzed, 0, entries); });
}

struct Leaf {
  PageNumber page;
  std::uint32_t records;
  std::vector<LeafRun> runs;
};

void change(std::vector<Leaf>& leaves, std::span<const std::byte> lie) {
  Leaf& leaf = leaves[std::to_integer<std::size_t>(lie[0]) % leaves.size()];
  const auto value = load<std::uint16_t>(lie, 2);
  Leaf& other = leaves[value % leaves.size()];
  const bool has_run = !leaf.runs.empty();
  LeafRun nothing;
  LeafRun& run = has_run ? leaf.runs[(value >> 8) % leaf.runs.size()] : nothing;
  switch (std::to_integer<int>(lie[1]) % 8) {
    case 0:
      std::swap(leaf, other);
      break;
    case 1:
      leaf.page = value;
      break;
    case 2:
      leaf = other;
      break;
    case 3:
      leaf.records = value % 400;
      break;
    case 4:
      run.page = value;
      break;
    case 5:
      run.pages = value % 64;
      break;
    case 6:
      run.slot = static_cast<std::uint16_t>(value % 400);
      break;
    default:
      if (has_run) leaf.runs.pop_back();
  }
}

/// The sound table of `fuzzed` with changes, and the sound facts of the keys.
LeafTable lying_table(FuzzedDatabase& fuzzed, std::span<const std::byte> lies) {
  std::vector<Leaf> leaves;
  std::vector<LeafRun> runs;
  for (const PageNumber page : list_leaves(*fuzzed.database)) {
    const SeenLeaf seen =
        look_at_leaf(fuzzed.database->pages().tree_page(page), fuzzed.database->page_size(), runs);
    leaves.push_back({page, seen.layout.records, runs});
  }
  for (; lies.size() >= 4; lies = lies.subspan(4)) change(leaves, lies);
  LeafTableBuilder builder(fuzzed.database->tree().header().flags, 60, 5);
  for (const Leaf& leaf : leaves) {
    for (std::uint32_t i = 0, slot = 0; i < leaf.runs.size(); ++i, ++slot) {
      if (leaf.runs[i].slot < slot) return {};  // cannot be encoded
      slot = leaf.runs[i].slot;
    }
    if (leaf.records == 0) return {};
    builder.add(LeafLayout{.page = leaf.page, .records = leaf.records, .runs = leaf.runs});
  }
  LeafTable table = builder.finish();
  table.set_keys(survey_layout(*fuzzed.database).table.keys());
  return table;
}

void run(FuzzedDatabase& fuzzed, SidecarInput kind, std::span<const std::byte> bytes) {
  const TreeFacts facts = facts_of(*fuzzed.database);
  std::vector<std::byte> sidecar;
  switch (kind) {
    case SidecarInput::whole:
      sidecar.assign(bytes.begin(), bytes.end());
      seal_again(sidecar);
      break;
    case SidecarInput::table:
      sidecar = seal_sidecar(SidecarForm::table, facts.fingerprint, bytes);
      break;
    case SidecarInput::recipe:
      sidecar = seal_sidecar(SidecarForm::recipe, facts.fingerprint, bytes);
      break;
    case SidecarInput::lies:
      sidecar = table_sidecar(lying_table(fuzzed, bytes), facts);
      break;
  }
  auto loaded = load_sidecar(sidecar, facts);
  if (loaded) use(fuzzed, std::move(loaded.leaves));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::vector<FuzzedDatabase> databases = build_databases();
  if (size < 2) return 0;
  FuzzedDatabase& fuzzed = databases[data[0] % databases.size()];
  const auto kind = static_cast<SidecarInput>(data[1] % 4);
  attempt([&] { run(fuzzed, kind, std::as_bytes(std::span(data, size)).subspan(2)); });
  return 0;
}
