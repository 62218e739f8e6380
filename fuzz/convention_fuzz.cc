// Any bytes as a meta_info.txt, a counter, and keys: what is recognised keeps its promises, and all
// else is an Error of one line.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "format/convention/key_form.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/layout.hpp"

namespace forebay {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_list(std::string_view text) {
  try {
    std::set<std::string, std::less<>> stems;
    for (const convention::MetaLine& line : convention::parse_meta_info(text, "meta_info.txt")) {
      require(!line.stem().empty() && line.name.starts_with(line.stem()));
      require(line.shape.size() <= 4);
      require(stems.emplace(line.stem()).second);
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt);
    require(std::strchr(error.what(), '\n') == nullptr);
  }
}

void look_at_key(std::string_view key) {
  convention::is_counter_key(key);
  for (const convention::KeyForm& form : convention::KeyForm::all_of(key)) {
    require(form.has(key) && !form.text().empty());
    require(std::ranges::is_sorted(form.places()));
    require(form.is_plain_number() || !form.is_narrow() || form.has_sibling(key));
  }
  const convention::KeyPatterns patterns(key);
  for (std::size_t i = 0; i < patterns.all().size(); ++i) {
    require(patterns.matches(i, patterns.all()[i]) ||
            convention::KeyPatterns::is_pattern(patterns.all()[i]));
  }
  const auto numbered = convention::numbered_key(key);
  if (!numbered) return;
  require(std::string(numbered->prefix) + std::string(numbered->digits) == key);
  require(std::stoull(std::string(numbered->digits)) == numbered->number);
  for (const char c : convention::part_name(numbered->prefix)) require(c > ' ' && c < 0x7f);
}

void split(std::span<const std::byte> bytes) {
  for (const std::size_t count : {0, 1, 2, 5}) {
    try {
      const auto parts = split_parts(bytes, count);
      std::vector<std::byte> again(packed_parts_bytes(parts));
      require(again.size() == bytes.size());
      pack_parts(parts, again);
      require(split_parts(again, count).size() == count);
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::corrupt);
    }
  }
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text = chars_of(bytes);
  read_list(text);
  look_at_key(text);
  require(convention::possible_counts(bytes).size() <= 4);
  split(bytes);
  return 0;
}
