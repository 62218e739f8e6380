// Any bytes as a zip archive: samples whose parts lie inside the file, or an Error.
#include <cstring>

#include "forebay/error.hpp"
#include "format/zip/zip.hpp"
#include "fuzz/read_all.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  try {
    DataFiles files{memory_file("fuzz.zip", std::as_bytes(std::span(data, size)))};
    FoundMembers found = zip::find_members(files);
    const MemberSet set("fuzz.zip", "zip", std::move(files),
                        std::move(found).choose({}, "fuzz.zip"));
    require(read_all(set) <= set.facts().value_bytes);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
