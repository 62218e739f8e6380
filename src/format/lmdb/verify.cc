#include "format/lmdb/verify.hpp"

#include <fmt/format.h>

#include "format/lmdb/inspect.hpp"
#include "format/lmdb/tree_check.hpp"

namespace forebay::lmdb {
namespace {

/// One run over all trees of a file.
class Verifier {
 public:
  Verifier(Database& database, const VerifyOptions& options, const RecordSink& visitor)
      : database_(database),
        pages_(database.pages()),
        visitor_(visitor),
        owners_(database.snapshot()),
        log_(report_, options.max_faults, database.page_size()) {}

  PagesReport run() {
    const Snapshot& snapshot = database_.snapshot();
    if (!snapshot.damaged_meta().empty()) log_.add("meta", 0, snapshot.damaged_meta());
    check_tree("main", snapshot.meta().main_tree, database_.name().empty());
    check_named();
    check_free_list();
    // Duplicates have trees of their own, whose pages nobody has counted.
    if (report_.notes.empty()) report_.unreferenced_pages = owners_.without_owner();
    database_.check_unchanged();
    return std::move(report_);
  }

 private:
  void check_tree(const std::string& name, const TreeHeader& header, bool is_data_set) {
    TreeCheck check(pages_, owners_, log_, name, header, [&](const Entry& entry, PageNumber) {
      if (is_data_set) deliver(entry);
    });
    check.run();
    report_.pages += check.pages_seen();
  }

  void deliver(const Entry& entry) {
    const Record record{.sample = report_.records++, .key = entry.key, .value = entry.value};
    if (visitor_) visitor_(record);
    database_.snapshot().file().check();
  }

  void check_named() {
    std::vector<NamedDatabase> named;
    try {
      named = list_named(pages_);
    } catch (const Error& error) {
      // The walk over the main tree has reported it; of named ones only the open one is left.
      if (error.kind() != ErrorKind::corrupt) throw;
      if (!database_.name().empty()) named = {{database_.name(), database_.tree().header()}};
    }
    for (const NamedDatabase& one : named) {
      const std::string name = "#" + printable_key(one.name);
      const Snapshot& snapshot = database_.snapshot();
      const std::string fault = impossible(one.header, snapshot.meta().last_page,
                                           snapshot.file_pages(), snapshot.page_size());
      if (!fault.empty()) {
        log_.add(name, snapshot.meta().main_tree.root, fault);
      } else if ((one.header.flags & kTreeDuplicates) != 0) {
        report_.notes.push_back(
            fmt::format("{}: several values a key (MDB_DUPSORT): not looked into", name));
      } else {
        check_tree(name, one.header, one.name == database_.name());
      }
    }
  }

  void check_free_list() {
    const auto sink = [&](const Entry& entry, PageNumber leaf) {
      const FreePages free = decode_free_pages(entry, pages_, leaf);
      report_.free_pages += free.count();
      for (std::uint64_t i = 0; i < free.count(); ++i) {
        const std::string taken = owners_.take(free[i], 1);
        if (!taken.empty()) log_.add("free list", leaf, "a free page: " + taken);
      }
    };
    TreeCheck check(pages_, owners_, log_, "free list", database_.snapshot().meta().free_tree,
                    sink);
    check.run();
    report_.pages += check.pages_seen();
  }

  Database& database_;
  PageReader& pages_;
  const RecordSink& visitor_;
  PagesReport report_;
  PageOwners owners_;
  FaultLog log_;
};

}  // namespace

PagesReport verify(Database& database, const VerifyOptions& options, const RecordSink& visitor) {
  return Verifier(database, options, visitor).run();
}

}  // namespace forebay::lmdb
