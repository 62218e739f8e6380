// Any bytes as Megatron's index of a stream of tokens, or as an array of them: windows inside of
// the file, or an Error.
#include <cstring>

#include "forebay/error.hpp"
#include "format/registry.hpp"
#include "fuzz/read_all.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const auto bytes = std::as_bytes(std::span(data, size));
  const bool array = size > 0 && data[0] == 0x93;
  keep_in_memory("fuzz.idx", bytes);
  keep_in_memory("fuzz.bin", array ? bytes : bytes.subspan(size / 2));
  FormatOptions options{.format = "tokens"};
  options.window_length = 5;
  options.window_step = 3;
  try {
    const auto set = open_data_set("mem://fuzz.bin", options);
    require(read_all(*set) == set->facts().value_bytes);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
