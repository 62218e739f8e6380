// The LMDB databases of a data set, open, and the convention by which their records are samples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/convention/convention.hpp"
#include "format/lmdb/database.hpp"

namespace forebay::convention {

struct OpenOptions {
  Engine engine = Engine::pread;
  bool hold = true;  ///< take places in the tables of readers where that is possible
  ConventionOptions convention;
};

/// One thread at a time, as its databases; const methods from any.
class DatabaseSet {
 public:
  /// `text` as database_list.hpp says. Throws as lmdb::Database::open, and Convention::arrange.
  DatabaseSet(std::string text, const OpenOptions& options);

  const std::string& path() const { return path_; }
  std::size_t size() const { return databases_.size(); }
  lmdb::Database& database(std::size_t number) const { return *databases_[number]; }
  const Convention& convention() const { return *convention_; }
  const std::shared_ptr<const Convention>& shared_convention() const { return convention_; }
  std::uint64_t samples() const { return convention_->samples(); }
  /// Every record of one database is a sample, in key order.
  bool plain() const;
  /// The only data file, or all of them joined into one.
  const std::shared_ptr<const File>& whole() const { return whole_; }
  /// Where the file of database `number` begins in it.
  std::uint64_t begin(std::size_t number) const;
  std::uint64_t stored_bytes() const;
  DatasetFingerprint fingerprint() const;
  /// Throws changed when a writer may have recycled pages of any snapshot, io when a mapping
  /// faulted.
  void check_unchanged() const;

 private:
  std::string path_;
  std::vector<std::unique_ptr<lmdb::Database>> databases_;
  std::shared_ptr<const Convention> convention_;
  std::shared_ptr<const File> whole_;
};

/// Whether `text` is one database of which every record is a sample, as far as a bounded look
/// tells: then it needs no map. Takes no lock and no reader's place. Local.
/// Throws as lmdb::Database::open.
bool needs_no_map(const std::string& text, const ConventionOptions& options);

}  // namespace forebay::convention
