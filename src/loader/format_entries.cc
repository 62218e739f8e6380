// The options that tell what the files of a data set are.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/number_text.hpp"
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
constexpr Name<bool> kSwitch[] = {{"off", false}, {"on", true}};

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

const std::array kEntries = {
    OptionEntry{{"format", "NAME", format_help()},
                [](LoaderOptions& o, std::string_view t) { o.format = parse_format(t); },
                [](const LoaderOptions& o) { return o.format; }},
    OptionEntry{{"convention", "NAME",
                 "of LMDB, which records are samples: plain, grouped (image-1 with label-1), "
                 "meta-info, or auto (default), which looks at the keys"},
                [](LoaderOptions& o, std::string_view t) {
                  o.convention = parse_name("convention", t, kConventions);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.convention)); }},
    OptionEntry{{"order-by", "NAME",
                 "of LMDB, the order of samples: key (default, by bytes), or number (of unpadded "
                 "keys)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.order_by = parse_name("order-by", t, kKeyOrders);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.order_by)); }},
    OptionEntry{{"header-bytes", "N", "of format raw: bytes to skip at the start of every file"},
                [](LoaderOptions& o, std::string_view t) {
                  o.header_bytes = parse_count(t, "header-bytes");
                },
                [](const LoaderOptions& o) { return std::to_string(o.header_bytes); }},
    OptionEntry{{"record-bytes", "N",
                 "of format raw: bytes from record to record (default 0: those of the schema)"},
                [](LoaderOptions& o, std::string_view t) {
                  o.record_bytes = parse_count(t, "record-bytes");
                },
                [](const LoaderOptions& o) { return std::to_string(o.record_bytes); }},
    OptionEntry{{"big-endian", "", "of format raw: numbers have their high byte first"},
                [](LoaderOptions& o, std::string_view t) {
                  o.big_endian = parse_name("big-endian", t, kSwitch);
                },
                [](const LoaderOptions& o) { return std::string(name_of(o.big_endian, kSwitch)); }},
    OptionEntry{{"length", "L", "of streams of tokens: tokens of a sample"},
                [](LoaderOptions& o, std::string_view t) { o.length = parse_count(t, "length"); },
                [](const LoaderOptions& o) { return std::to_string(o.length); }},
    OptionEntry{{"step", "S",
                 "of streams of tokens: from the first of a sample to that of the next (default 0: "
                 "as many as --length)"},
                [](LoaderOptions& o, std::string_view t) { o.step = parse_count(t, "step"); },
                [](const LoaderOptions& o) { return std::to_string(o.step); }},
};

}  // namespace

std::span<const OptionEntry> format_entries() { return kEntries; }

std::span<const OptionInfo> format_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

}  // namespace forebay
