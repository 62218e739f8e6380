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

/// Calls what reads pages, in time.
void ask(const Search& search, const std::function<void()>& read) {
  if (search.options.ask) {
    search.options.ask(read);
  } else {
    read();
  }
}

std::string cache_identity(const Search& search) {
  const auto found = std::make_shared<std::string>();
  ask(search, [found, database = search.database] { *found = database->cache_identity(); });
  return *found;
}

/// Looks for a sidecar that fits; its bytes and where they were found, or nothing.
std::optional<FoundSidecar> usable_sidecar(const Search& search) {
  const TreeFacts& facts = search.facts;
  return find_sidecar(
      resolve_dataset_path(search.database->path()), [&] { return cache_identity(search); },
      most_sidecar_bytes(facts.entries, facts.leaf_pages),
      [&](const FoundSidecar& found) {
        const auto result = load_sidecar(found.bytes, facts);
        if (!result) log(LogLevel::warning, "{} is not used: {}", found.path, result.problem);
        return static_cast<bool>(result);
      });
}

/// From a sidecar that the first peer has found.
std::optional<FoundLeaves> leaves_from_sidecar(const Search& search) {
  std::string bytes;
  std::string path;
  std::string cached;
  search.peers.together([&] {
    if (search.peers.rank() != 0) return;
    const auto found = usable_sidecar(search);
    if (!found) return;
    path = found->path;
    bytes = chars_of(found->bytes);
    cached = found->cached ? "yes" : "";
  });
  path = search.peers.told_by(0, path);
  if (path.empty()) return std::nullopt;
  cached = search.peers.told_by(0, cached);
  bytes = search.peers.told_by(0, bytes);
  std::optional<FoundLeaves> leaves;
  search.peers.together([&] {
    auto result = load_sidecar(bytes_of(bytes), search.facts);
    if (!result) throw Error(ErrorKind::corrupt, result.problem, "", {.file = path});
    const std::string form = result.leaves->form();
    leaves = FoundLeaves{.producer = std::move(result.leaves),
                         .how = fmt::format("provenance ({}) from {}", form, path),
                         .cached = !cached.empty()};
  });
  return leaves;
}

/// Page numbers of all leaves, from the first peer's look at the branch pages.
std::vector<PageNumber> share_leaf_list(const Search& search) {
  std::string bytes;
  search.peers.together([&] {
    if (search.peers.rank() != 0) return;
    const auto found = std::make_shared<std::vector<PageNumber>>();
    ask(search, [found, database = search.database] { *found = list_leaves(*database); });
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

/// In place of an entry that was wrong, in any case: it would mislead every run.
void keep_in_cache(LeafProducer& leaves, const Search& search) {
  const auto path = user_cache_path(cache_identity(search));
  std::error_code ignored;
  const bool replaces = search.options.was_wrong && path && std::filesystem::exists(*path, ignored);
  if (!path || (!search.options.may_cache && !replaces)) return;
  try {
    write_whole_file(*path, table_sidecar(leaves, search.facts));
    log(LogLevel::info, "what the scan has found is kept in {}", *path);
  } catch (const Error& error) {
    log(LogLevel::info, "what the scan has found is not kept: {}", error.what());
  }
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
  const bool may_keep = options.may_cache || options.was_wrong;
  if (may_keep && peers.rank() == 0) keep_in_cache(*leaves.producer, search);
  return leaves;
}

}  // namespace forebay::lmdb
