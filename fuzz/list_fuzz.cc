// Any bytes as a list of samples: the ids that the standard library finds between white space, or
// an Error that names a line of the text.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "forebay/error.hpp"
#include "loader/list_file.hpp"

namespace {

using Ids = std::vector<std::uint64_t>;

constexpr std::size_t kTooLong = 32;

/// Nothing where a word is no id.
std::optional<Ids> expected(const std::string& text) {
  std::istringstream words(text);
  Ids ids;
  for (std::string word; words >> word;) {
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, ids.emplace_back());
    if (error != std::errc() || stop != end || word.size() >= kTooLong) return std::nullopt;
  }
  return ids;
}

std::optional<Ids> found(const std::string& text) {
  using namespace forebay;
  std::istringstream file(text);
  try {
    return read_list(file, "list");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) std::abort();
    if (std::strchr(error.what(), '\n') != nullptr) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (found(text) != expected(text)) std::abort();
  return 0;
}
