#include "format/convention/database_set.hpp"

#include "storage/joined_file.hpp"

namespace forebay::convention {

DatabaseSet::DatabaseSet(std::string text, const OpenOptions& options) : path_(std::move(text)) {
  const std::vector<PartDatabases> list = find_databases(path_);
  std::vector<lmdb::Database*> opened;
  std::vector<std::shared_ptr<const File>> files;
  for (const PartDatabases& part : list) {
    for (const std::string& path : part.paths) {
      databases_.push_back(std::make_unique<lmdb::Database>(
          options.hold ? lmdb::Database::open(path, options.engine)
                       : lmdb::Database::open_unheld(path, options.engine)));
      opened.push_back(databases_.back().get());
      files.push_back(opened.back()->snapshot().shared_file());
    }
  }
  convention_ =
      std::make_shared<const Convention>(Convention::arrange(list, opened, options.convention));
  whole_ = files.size() == 1 ? files[0] : std::make_shared<JoinedFile>(path_, std::move(files));
  check_unchanged();
}

bool DatabaseSet::plain() const {
  return size() == 1 && !convention_->has_parts() &&
         convention_->parts()[0].records.is_plain(databases_[0]->entries());
}

std::uint64_t DatabaseSet::begin(std::size_t number) const {
  return size() == 1 ? 0 : static_cast<const JoinedFile&>(*whole_).begin(number);
}

std::uint64_t DatabaseSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& database : databases_) bytes += database->stored_bytes();
  return bytes;
}

DatasetFingerprint DatabaseSet::fingerprint() const {
  std::string text;
  for (const auto& database : databases_) {
    text += (text.empty() ? "" : ";") + database->fingerprint().text;
  }
  if (!plain()) text += convention_->fingerprint();
  return {text};
}

void DatabaseSet::check_unchanged() const {
  for (const auto& database : databases_) database->check_unchanged();
}

bool needs_no_map(const std::string& text, const ConventionOptions& options) {
  const std::vector<PartDatabases> list = find_databases(text);
  if (list.size() > 1 || list[0].paths.size() > 1) return false;
  // A pattern may stand for a single database whose name only it tells.
  if (list[0].paths[0] != text) return false;
  // Asked for, it is so, and opening reads nothing for it.
  const bool asked = options.convention == ConventionName::plain;
  if (asked && options.order_by == KeyOrder::key) return true;
  lmdb::Database database = lmdb::Database::open_unheld(text, Engine::pread);
  return is_plain(database, options);
}

}  // namespace forebay::convention
