// Any bytes as a list of class names, which stay the same when they are written and read again, or
// an Error; and as a list of files, whose pieces are all of it.
#include <cstdlib>

#include "forebay/error.hpp"
#include "format/class_names.hpp"
#include "format/dataset_files.hpp"

namespace {

void try_classes(std::string_view text) {
  using namespace forebay;
  try {
    const ClassNames names = parse_class_names(text, "names");
    if (parse_class_names(class_names_text(names), "again") != names) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) std::abort();
  }
}

void try_files(const std::string& text) {
  using namespace forebay;
  std::string joined;
  for (const std::string& piece : split_names(text, ',')) {
    joined += (joined.empty() ? "" : ",") + piece;
    static_cast<void>(without_escapes(piece));
  }
  // Empty pieces in front are lost by joining so.
  if (!text.ends_with(joined)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_classes(text);
  try_files(text);
  return 0;
}
