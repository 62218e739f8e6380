#include "loader/list_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <utility>

#include "core/limits.hpp"
#include "forebay/error.hpp"
#include "order/order_limits.hpp"
#include "storage/answers.hpp"
#include "storage/pipe.hpp"

namespace forebay {
namespace {

constexpr std::size_t kLongest = 32;  // a word that is kept; an id has 20 digits at most

std::uint64_t parse_id(const std::string& word, std::uint64_t line, const std::string& path) {
  std::uint64_t id = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, id);
  if (error == std::errc() && stop == end && word.size() < kLongest) return id;
  throw Error(
      ErrorKind::usage,
      fmt::format("line {} of the list has '{}', which is no sample id", line, printable_key(word)),
      "write ids as decimal numbers, with white space between them", {.file = path});
}

/// Words between white space, of which no more is kept than an id can have: whatever the file is,
/// its first words tell, and nothing behind them is read.
class WordReader {
 public:
  explicit WordReader(std::istream& file) : file_(*file.rdbuf()) {}

  /// False at the end.
  bool next(std::string& word) {
    int c = file_.sbumpc();
    for (; c != kEnd && std::isspace(c) != 0; c = file_.sbumpc()) line_ += c == '\n' ? 1 : 0;
    word.clear();
    while (c != kEnd && std::isspace(c) == 0 && word.size() < kLongest) {
      word += static_cast<char>(c);
      c = file_.sbumpc();
    }
    if (c != kEnd) file_.sungetc();  // a line is counted when the next word begins behind it
    return !word.empty();
  }
  std::uint64_t line() const { return line_; }

 private:
  static constexpr int kEnd = std::char_traits<char>::eof();

  std::streambuf& file_;
  std::uint64_t line_ = 1;
};

/// By half: memory is asked for before it is taken.
void grow(std::vector<std::uint64_t>& ids, const std::string& path) {
  constexpr std::size_t kFirst = 1024, kLarge = std::size_t{1} << 20;
  const std::size_t wanted = std::max(kFirst, ids.size() + ids.size() / 2);
  if (ids.size() > kMostDeliveries) {
    throw Error(ErrorKind::usage, fmt::format("the list has more than {} samples", kMostDeliveries),
                "name a file with less", {.file = path});
  }
  try {
    if (wanted > kLarge) {
      require_memory(wanted * sizeof(std::uint64_t),
                     fmt::format("a list of over {} samples", ids.size()),
                     "the number of samples in it");
    }
  } catch (const Error& error) {
    throw error.within({.file = path});
  }
  ids.reserve(wanted);
}

}  // namespace

std::vector<std::uint64_t> read_list_file(const std::string& path,
                                          std::chrono::milliseconds timeout) {
  // Shared, since a file system that does not answer keeps its thread beyond this function.
  const auto ids = std::make_shared<std::vector<std::uint64_t>>();
  with_answers({.each_read = timeout, .path = path}, "fb-list", {}, [path, timeout, ids] {
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown)) {
      throw Error(ErrorKind::usage, "the list of samples is a folder",
                  "name a file with the numbers of samples", {.file = path});
    }
    InputBytes bytes(path, timeout);
    std::istream file(&bytes);
    *ids = read_list(file, path);
  });
  return std::move(*ids);
}

std::vector<std::uint64_t> read_list(std::istream& file, const std::string& path) {
  std::vector<std::uint64_t> ids;
  WordReader words(file);
  for (std::string word; words.next(word);) {
    if (ids.size() == ids.capacity()) grow(ids, path);
    ids.push_back(parse_id(word, words.line(), path));
  }
  return ids;
}

}  // namespace forebay
