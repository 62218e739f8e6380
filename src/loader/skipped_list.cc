#include "loader/skipped_list.hpp"

#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {

void SkippedList::add(const std::string& file, std::span<const SkippedSample> skipped) {
  for (const SkippedSample& sample : skipped) {
    if (listed_.size() >= kMostListed || !ids_.insert(sample.id).second) continue;
    listed_.push_back(sample);
    if (listed_.size() > kMostLogged) continue;
    const Error error(ErrorKind::corrupt, "is skipped: " + sample.message, {},
                      {.file = file, .sample = sample.id, .key = sample.key});
    log(LogLevel::warning, "{}{}", error.what(),
        listed_.size() == kMostLogged ? "; further ones are not told" : "");
  }
}

}  // namespace forebay
