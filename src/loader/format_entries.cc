// The options that tell what the files of a data set are.
#include <fmt/format.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/registry.hpp"
#include "loader/option_table.hpp"

namespace forebay {
namespace {

constexpr Name<ConventionName> kConventions[] = {
    {"auto", ConventionName::automatic},      {"plain", ConventionName::plain},
    {"grouped", ConventionName::grouped},     {"meta-info", ConventionName::meta_info},
    {"meta_info", ConventionName::meta_info},
};
constexpr Name<KeyOrder> kKeyOrders[] = {{"key", KeyOrder::key}, {"number", KeyOrder::number}};

std::string parse_format(std::string_view text) {
  const std::vector<Format> all = formats();
  if (text == "auto" || std::ranges::find(all, text, &Format::name) != all.end()) {
    return std::string(text);
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option format", text),
              "choose one of: auto, " + format_names());
}

std::string_view format_help() {
  static const std::string help = fmt::format(
      "what the files are: {}, or auto (default), which looks at the first and takes the rest for "
      "LMDB",
      format_names());
  return help;
}

using O = LoaderOptions;

const std::vector<OptionEntry> kEntries = {
    entry({"format", "NAME", format_help()}, &O::format, parse_format),
    entry({"convention", "NAME",
           "of LMDB, which records are samples: plain, grouped (image-1 with label-1), "
           "meta-info, or auto (default), which looks at the keys"},
          &O::convention, kConventions),
    entry({"order-by", "NAME",
           "of LMDB, the order of samples: key (default, by bytes), or number (of "
           "unpadded keys)"},
          &O::order_by, kKeyOrders),
    entry(
        {"leave-out", "KEYS",
         "of LMDB: records that are no samples, by key or pattern ('meta*'), separated by commas; "
         "beside those that are recognised"},
        &O::leave_out),
    entry({"keep-records", "KEYS",
           "of LMDB: records that are samples, whatever their keys look like, written alike"},
          &O::keep_records),
    entry({"header-bytes", "N", "of format raw: bytes to skip at the start of every file"},
          &O::header_bytes),
    entry({"record-bytes", "N",
           "of format raw: bytes from record to record (default 0: those of the schema)"},
          &O::record_bytes),
    entry({"big-endian", "", "of format raw: numbers have their high byte first"}, &O::big_endian,
          kSwitch),
    entry({"length", "L", "of streams of tokens: tokens of a sample"}, &O::length),
    entry({"step", "S",
           "of streams of tokens: from the first of a sample to that of the next (default "
           "0: as many as --length)"},
          &O::step),
};

}  // namespace

std::span<const OptionEntry> format_entries() { return kEntries; }

std::span<const OptionInfo> format_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

}  // namespace forebay
