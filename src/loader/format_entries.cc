// The options that tell what the files of a data set are.
#include <array>

#include "core/number_text.hpp"
#include "loader/option_table.hpp"

namespace forebay {
namespace {

constexpr Name<std::string_view> kFormats[] = {
    {"auto", "auto"}, {"hdf5", "hdf5"}, {"npy", "npy"}, {"cifar10", "cifar10"}, {"raw", "raw"},
};
constexpr Name<bool> kSwitch[] = {{"off", false}, {"on", true}};

const std::array kEntries = {
    OptionEntry{
        {"format", "NAME",
         "what the files are: hdf5, npy, cifar10, raw, or auto (default), which looks at "
         "the first and takes the rest for LMDB"},
        [](LoaderOptions& o, std::string_view t) { o.format = parse_name("format", t, kFormats); },
        [](const LoaderOptions& o) { return o.format; }},
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
};

}  // namespace

std::span<const OptionEntry> format_entries() { return kEntries; }

std::span<const OptionInfo> format_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

}  // namespace forebay
