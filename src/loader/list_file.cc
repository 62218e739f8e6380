#include "loader/list_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

std::uint64_t parse_id(const std::string& word, std::uint64_t line, const std::string& path) {
  std::uint64_t id = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, id);
  if (error == std::errc() && stop == end) return id;
  throw Error(
      ErrorKind::usage,
      fmt::format("line {} of the list has '{}', which is no sample id", line, printable_key(word)),
      "write ids as decimal numbers, with white space between them", {.file = path});
}

}  // namespace

std::vector<std::uint64_t> read_list_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    const int error = errno;
    throw Error(error == ENOENT ? ErrorKind::not_found : ErrorKind::io,
                fmt::format("cannot open the list of samples: {}", std::strerror(error)),
                remedy_for(error, "check the path"), {.file = path});
  }
  std::vector<std::uint64_t> ids;
  std::string text;
  for (std::uint64_t line = 1; std::getline(file, text); ++line) {
    std::istringstream words(text);
    for (std::string word; words >> word;) ids.push_back(parse_id(word, line, path));
  }
  if (file.bad()) {
    throw Error(ErrorKind::io, "cannot read the list of samples", "check the file system",
                {.file = path});
  }
  return ids;
}

}  // namespace forebay
