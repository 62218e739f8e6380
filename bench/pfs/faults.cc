#include "pfs/faults.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "core/number_text.hpp"
#include "forebay/error.hpp"

namespace forebay::pfs {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

void Faults::command(std::string_view line) {
  const auto words = words_of(line);
  const std::string_view verb = words.empty() ? "" : std::string_view(words[0]);
  if ((verb == "fail" && words.size() == 3) || (verb == "stall" && words.size() == 4)) {
    const Fault fault = parse(words);
    const std::lock_guard lock(mutex_);
    faults_.push_back(fault);
    return;
  }
  const bool is_short = verb == "short" && words.size() == 2;
  const std::lock_guard lock(mutex_);
  if (is_short && words[1] == "on") {
    short_reads_ = true;
  } else if (is_short && words[1] == "off") {
    short_reads_ = false;
  } else if (verb == "clear" && words.size() == 1) {
    faults_.clear();
    short_reads_ = false;
  } else {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no fault", line),
                "say 'fail FILE OFFSET', 'stall FILE OFFSET DURATION', 'short on|off' or 'clear'");
  }
}

Faults::Fault Faults::parse(const std::vector<std::string>& words) const {
  const std::string path = backing_ + "/" + words[1];
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(ErrorKind::not_found, "a fault needs an existing file",
                "name it relative to the backing directory", {.file = path});
  }
  Fault fault{status.st_ino, parse_bytes(words[2], "fault offset"), {}};
  if (words.size() == 4) fault.stall = parse_duration(words[3], "stall");
  return fault;
}

const Faults::Fault* Faults::find(std::uint64_t file, std::uint64_t offset, std::uint64_t length,
                                  bool stalls) const {
  const auto found = std::ranges::find_if(faults_, [&](const Fault& fault) {
    return fault.stall.has_value() == stalls && fault.file == file && fault.offset >= offset &&
           fault.offset - offset < length;
  });
  return found == faults_.end() ? nullptr : &*found;
}

bool Faults::fails(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const {
  const std::lock_guard lock(mutex_);
  return find(file, offset, length, false) != nullptr;
}

std::optional<Stall> Faults::stall(std::uint64_t file, std::uint64_t offset,
                                   std::uint64_t length) const {
  const std::lock_guard lock(mutex_);
  const Fault* fault = find(file, offset, length, true);
  if (fault == nullptr) return std::nullopt;
  return Stall{fault->offset, *fault->stall};
}

std::uint64_t Faults::allowed(std::uint64_t length, bool cached) const {
  const std::lock_guard lock(mutex_);
  return short_reads_ && !cached && length > 1 ? length / 2 : length;
}

}  // namespace forebay::pfs
