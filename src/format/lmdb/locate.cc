#include "format/lmdb/lmdb_set.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "core/log.hpp"
#include "format/byte_stream.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/scan.hpp"

namespace forebay::lmdb {
namespace {

/// Who locates, and what with.
struct Search {
  const std::shared_ptr<Database>& database;
  BulkReader& reader;
  const LocateOptions& options;
  Peers& peers;
  TreeFacts facts;
};

/// Looks for a sidecar that fits; its bytes and where they were found, or nothing.
std::optional<FoundSidecar> usable_sidecar(const Search& search) {
  const TreeFacts& facts = search.facts;
  const auto dataset = resolve_dataset_path(search.database->path());
  const std::uint64_t most = most_sidecar_bytes(facts.entries, facts.leaf_pages);
  for (auto& found : find_sidecars(dataset, facts.fingerprint, most)) {
    const auto result = load_sidecar(found.bytes, facts);
    if (result) return std::move(found);
    log(LogLevel::warning, "{} is not used: {}", found.path, result.problem);
  }
  return std::nullopt;
}

/// From a sidecar that the first peer has found.
std::optional<FoundLeaves> leaves_from_sidecar(const Search& search) {
  std::string bytes;
  std::string path;
  search.peers.together([&] {
    if (search.peers.rank() != 0) return;
    const auto found = usable_sidecar(search);
    if (!found) return;
    path = found->path;
    bytes = chars_of(found->bytes);
  });
  path = search.peers.told_by(0, path);
  if (path.empty()) return std::nullopt;
  bytes = search.peers.told_by(0, bytes);
  std::optional<FoundLeaves> leaves;
  search.peers.together([&] {
    auto result = load_sidecar(bytes_of(bytes), search.facts);
    if (!result) throw Error(ErrorKind::corrupt, result.problem, "", {.file = path});
    const std::string form = result.leaves->form();
    leaves = FoundLeaves{.producer = std::move(result.leaves),
                         .how = fmt::format("provenance ({}) from {}", form, path)};
  });
  return leaves;
}

/// Page numbers of all leaves, from the first peer's look at the branch pages.
std::vector<PageNumber> share_leaf_list(const Search& search) {
  std::string bytes;
  search.peers.together([&] {
    if (search.peers.rank() != 0) return;
    const auto found = std::make_shared<std::vector<PageNumber>>();
    const auto list = [found, database = search.database] { *found = list_leaves(*database); };
    if (search.options.ask) {
      search.options.ask(list);
    } else {
      list();
    }
    bytes = chars_of(std::as_bytes(std::span(*found)));
  });
  bytes = search.peers.told_by(0, bytes);
  std::vector<PageNumber> leaves(bytes.size() / sizeof(PageNumber));
  if (!leaves.empty()) std::memcpy(leaves.data(), bytes.data(), leaves.size() * sizeof(PageNumber));
  return leaves;
}

/// By counting the leaves together.
FoundLeaves leaves_from_scan(const Search& search) {
  const auto all = share_leaf_list(search);
  std::string mine;
  search.peers.together([&] {
    const Peers::Part part = search.peers.part_of(all.size());
    const auto leaves = std::span(all).subspan(part.begin, part.end - part.begin);
    const auto counted =
        count_leaves(search.facts, leaves, search.reader, search.database->pages());
    mine = chars_of(to_bytes(counted));
    search.database->check_unchanged();
  });
  std::vector<ScanPart> parts;
  for (int peer = 0; peer < search.peers.size(); ++peer) {
    parts.push_back(part_from_bytes(bytes_of(search.peers.told_by(peer, mine))));
  }
  FoundLeaves leaves;
  search.peers.together([&] {
    leaves.producer = join_parts(search.facts, parts);
    leaves.how = fmt::format("scan of {} leaves by {} roots",
                             counts_are_known(search.facts) ? 0 : all.size(), search.peers.size());
  });
  return leaves;
}

void keep_in_cache(LeafProducer& leaves, const TreeFacts& facts) {
  const auto path = user_cache_path(facts.fingerprint);
  if (!path) return;
  try {
    write_whole_file(*path, table_sidecar(leaves, facts));
    log(LogLevel::info, "what the scan has found is kept in {}", *path);
  } catch (const Error& error) {
    log(LogLevel::info, "what the scan has found is not kept: {}", error.what());
  }
}

/// Of another data set of the same shape, where the entry was wrong: it would mislead every run.
bool has_entry(const TreeFacts& facts) {
  const auto path = user_cache_path(facts.fingerprint);
  std::error_code ignored;
  return path && std::filesystem::exists(*path, ignored);
}

}  // namespace

FoundLeaves find_leaves(const std::shared_ptr<Database>& database, BulkReader& reader,
                        const LocateOptions& options, Peers& peers) {
  const Search search{.database = database,
                      .reader = reader,
                      .options = options,
                      .peers = peers,
                      .facts = facts_of(*database)};
  if (options.trust_sidecars) {
    if (auto leaves = leaves_from_sidecar(search)) return std::move(*leaves);
    if (peers.rank() == 0) {
      log(LogLevel::info,
          "{} has no provenance: its leaves are counted once ('forebay provenance' "
          "spares that)",
          database->path());
    }
  }
  FoundLeaves leaves = leaves_from_scan(search);
  const bool keeps = options.may_cache || (options.was_wrong && has_entry(search.facts));
  if (keeps && peers.rank() == 0) keep_in_cache(*leaves.producer, search.facts);
  return leaves;
}

}  // namespace forebay::lmdb
