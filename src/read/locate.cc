#include "read/locate.hpp"

#include <fmt/format.h>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/provenance/sidecar_file.hpp"
#include "format/lmdb/scan.hpp"

namespace forebay {
namespace {

using lmdb::LeafProducer;
using lmdb::ScanPart;
using lmdb::TreeFacts;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

struct Leaves {
  std::unique_ptr<LeafProducer> producer;
  std::string how;
};

/// Looks for a sidecar that fits; its bytes and where they were found, or nothing.
std::optional<lmdb::FoundSidecar> usable_sidecar(const lmdb::Database& database,
                                                 const TreeFacts& facts) {
  const auto dataset = lmdb::resolve_dataset_path(database.path());
  const std::uint64_t most = lmdb::most_sidecar_bytes(facts.entries, facts.leaf_pages);
  for (auto& found : lmdb::find_sidecars(dataset, facts.fingerprint, most)) {
    const auto result = lmdb::load_sidecar(found.bytes, facts);
    if (result) return std::move(found);
    log(LogLevel::warning, "{} is not used: {}", found.path, result.problem);
  }
  return std::nullopt;
}

/// From a sidecar that root 0 has found. Collective over the roots.
std::optional<Leaves> leaves_from_sidecar(const LocateContext& context, const TreeFacts& facts) {
  std::string bytes;
  std::string path;
  collectively(context.roots, [&] {
    if (context.roots.rank() != 0) return;
    const auto found = usable_sidecar(*context.database, facts);
    if (!found) return;
    path = found->path;
    bytes = text_of(found->bytes);
  });
  path = broadcast_text(context.roots, path, 0);
  if (path.empty()) return std::nullopt;
  bytes = broadcast_text(context.roots, bytes, 0);
  std::optional<Leaves> leaves;
  collectively(context.roots, [&] {
    auto result = lmdb::load_sidecar(bytes_of(bytes), facts);
    if (!result) throw Error(ErrorKind::corrupt, result.problem, "", {.file = path});
    const std::string form = result.leaves->form();
    leaves = Leaves{.producer = std::move(result.leaves),
                    .how = fmt::format("provenance ({}) from {}", form, path)};
  });
  return leaves;
}

/// The leaves that `root` of `roots` counts.
std::span<const lmdb::PageNumber> part_of(std::span<const lmdb::PageNumber> leaves, int root,
                                          int roots) {
  const auto begin =
      leaves.size() * static_cast<std::size_t>(root) / static_cast<std::size_t>(roots);
  const auto end =
      leaves.size() * (static_cast<std::size_t>(root) + 1) / static_cast<std::size_t>(roots);
  return leaves.subspan(begin, end - begin);
}

/// Page numbers of all leaves, from root 0's look at the branch pages. Collective over the roots.
std::vector<lmdb::PageNumber> share_leaf_list(const LocateContext& context) {
  std::vector<lmdb::PageNumber> leaves;
  collectively(context.roots, [&] {
    if (context.roots.rank() != 0) return;
    const auto found = std::make_shared<std::vector<lmdb::PageNumber>>();
    const auto list = [found, database = context.database] {
      *found = lmdb::list_leaves(*database);
    };
    if (context.ask) {
      context.ask(list);
    } else {
      list();
    }
    leaves = std::move(*found);
  });
  std::uint64_t count = leaves.size();
  context.roots.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
  leaves.resize(count);
  if (count > 0) context.roots.broadcast(std::as_writable_bytes(std::span(leaves)), 0);
  return leaves;
}

/// By counting the leaves together. Collective over the roots.
Leaves leaves_from_scan(const LocateContext& context, const TreeFacts& facts) {
  const auto all = share_leaf_list(context);
  std::string mine;
  collectively(context.roots, [&] {
    const auto part = part_of(all, context.roots.rank(), context.roots.size());
    mine = text_of(lmdb::to_bytes(
        lmdb::count_leaves(facts, part, *context.reader, context.database->pages())));
    context.database->check_unchanged();
  });
  std::vector<ScanPart> parts;
  for (int root = 0; root < context.roots.size(); ++root) {
    parts.push_back(lmdb::part_from_bytes(bytes_of(broadcast_text(context.roots, mine, root))));
  }
  Leaves leaves;
  collectively(context.roots, [&] {
    leaves.producer = lmdb::join_parts(facts, parts);
    leaves.how = fmt::format("scan of {} leaves by {} roots",
                             lmdb::counts_are_known(facts) ? 0 : all.size(), context.roots.size());
  });
  return leaves;
}

void keep_in_cache(LeafProducer& leaves, const TreeFacts& facts) {
  const auto path = lmdb::cached_sidecar_path(facts.fingerprint);
  if (!path) return;
  try {
    lmdb::write_sidecar(*path, lmdb::table_sidecar(leaves, facts));
    log(LogLevel::info, "what the scan has found is kept in {}", *path);
  } catch (const Error& error) {
    log(LogLevel::info, "what the scan has found is not kept: {}", error.what());
  }
}

Leaves find_leaves(const LocateContext& context, const TreeFacts& facts) {
  if (context.locate == Locate::provenance) {
    if (auto leaves = leaves_from_sidecar(context, facts)) return std::move(*leaves);
    if (context.roots.rank() == 0) {
      log(LogLevel::info,
          "{} has no provenance: its leaves are counted once ('forebay provenance' "
          "spares that)",
          context.database->path());
    }
  }
  Leaves leaves = leaves_from_scan(context, facts);
  if (context.may_cache && context.roots.rank() == 0) keep_in_cache(*leaves.producer, facts);
  return leaves;
}

lmdb::IndexMemory index_memory(SharedMemory& memory, std::chrono::milliseconds patience) {
  return {
      .bytes = memory.bytes(),
      .reserve = [&memory](std::size_t offset, std::size_t size) { memory.reserve(offset, size); },
      .patience = patience};
}

}  // namespace

Located locate_records(const LocateContext& context) {
  Located located;
  Leaves leaves;
  TreeFacts facts;
  std::uint64_t bytes = 0;
  collectively(context.world, [&] {
    if (context.database == nullptr) return;
    facts = lmdb::facts_of(*context.database);
    leaves = find_leaves(context, facts);
    bytes = lmdb::required_bytes(*leaves.producer, facts);
  });
  collectively(context.world, [&] {
    share_value(context.node, bytes);
    located.memory = context.node.share(bytes, SharedMemoryKind::posix);
  });
  collectively(context.world, [&] {
    if (context.database == nullptr) return;
    located.index = std::make_unique<lmdb::LeafIndex>(
        std::move(leaves.producer), facts, context.database->pages(),
        index_memory(*located.memory, context.timeout));
    located.how = leaves.how;
  });
  return located;
}

std::unique_ptr<LeafProducer> find_leaves_alone(lmdb::Database& database, bool trust,
                                                bool may_cache) {
  const TreeFacts facts = lmdb::facts_of(database);
  if (trust) {
    if (const auto found = usable_sidecar(database, facts)) {
      return lmdb::load_sidecar(found->bytes, facts).leaves;
    }
  }
  const auto reader = make_bulk_reader(database.snapshot().shared_file(), Engine::pread, {});
  const auto listed = lmdb::list_leaves(database);
  const ScanPart part = lmdb::count_leaves(facts, listed, *reader, database.pages());
  database.check_unchanged();
  auto leaves = lmdb::join_parts(facts, {&part, 1});
  if (may_cache) keep_in_cache(*leaves, facts);
  return leaves;
}

std::unique_ptr<RecordIndex> scan_alone(lmdb::Database& database, BulkReader& reader) {
  /// An index with memory of its own.
  class OwningIndex final : public RecordIndex {
   public:
    OwningIndex(std::unique_ptr<LeafProducer> leaves, const TreeFacts& facts,
                const lmdb::DamageExplainer& explainer)
        : memory_(self_communicator()->share(lmdb::required_bytes(*leaves, facts),
                                             SharedMemoryKind::posix)),
          index_(std::move(leaves), facts, explainer, index_memory(*memory_, {})) {}
    std::uint64_t entries() const override { return index_.entries(); }
    void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) override {
      index_.extents(first, count, out);
    }
    void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                const RecordSink& sink) override {
      index_.unpack(first, count, bytes, sink);
    }
    std::uint64_t memory_bytes() const override { return index_.memory_bytes(); }

   private:
    std::unique_ptr<SharedMemory> memory_;
    lmdb::LeafIndex index_;
  };
  const TreeFacts facts = lmdb::facts_of(database);
  const auto leaves = lmdb::list_leaves(database);
  const ScanPart part = lmdb::count_leaves(facts, leaves, reader, database.pages());
  return std::make_unique<OwningIndex>(lmdb::join_parts(facts, {&part, 1}), facts,
                                       database.pages());
}

}  // namespace forebay
