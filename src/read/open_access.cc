#include "read/open_access.hpp"

#include "read/data_set_access.hpp"
#include "read/lmdb_access.hpp"
#include "read/mapped_access.hpp"

namespace forebay {
namespace {

const std::string kMapped = "lmdb with a convention";

}  // namespace

std::string recognize_format(const std::string& path, const LoaderOptions& options) {
  const std::string format = options.format == "auto"
                                 ? recognise_files(path, format_options(options, options.engine))
                                 : options.format;
  if (!format.empty()) return format;
  return convention::needs_no_map(path, convention_options(options)) ? format : kMapped;
}

DataKind kind_of(const std::string& format) {
  if (format.empty()) return DataKind::records;
  return format == kMapped ? DataKind::mapped_records : DataKind::fields;
}

std::shared_ptr<DataAccess> make_access(const std::string& path, const LoaderOptions& options,
                                        const std::string& format) {
  switch (kind_of(format)) {
    case DataKind::records:
      return std::make_shared<LmdbAccess>(path, options);
    case DataKind::mapped_records:
      return std::make_shared<MappedAccess>(path, options);
    case DataKind::fields:
      break;
  }
  return std::make_shared<DataSetAccess>(path, options, format);
}

}  // namespace forebay
