#include "read/open_access.hpp"

#include "read/lmdb_access.hpp"
#include "read/sample_set_access.hpp"

namespace forebay {

std::string recognize_format(const std::string& path, const LoaderOptions& options) {
  return options.format == "auto" ? recognize_samples(path) : options.format;
}

std::shared_ptr<DataAccess> make_access(const std::string& path, const LoaderOptions& options,
                                        const std::string& format) {
  if (format.empty()) return std::make_shared<LmdbAccess>(path, options);
  return std::make_shared<SampleSetAccess>(path, options, format);
}

}  // namespace forebay
