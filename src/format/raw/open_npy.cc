#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "core/memory_limit.hpp"
#include "forebay/error.hpp"
#include "format/field_files.hpp"
#include "format/raw/npy_header.hpp"
#include "format/raw/open_raw.hpp"
#include "format/repeated_names.hpp"
#include "format/strided_field.hpp"
#include "format/zip/zip.hpp"

namespace forebay::raw {
namespace {

constexpr std::string_view kArrayEnd = ".npy";  // of the names of members that are arrays

FileField array_in_place(const NpyHeader& header, const std::string& name,
                         StridedField::Check check = {}) {
  Field field = header.row(name);
  const std::uint64_t bytes = field.bytes();
  const StridedLayout layout{
      .first = header.data_offset, .stride = bytes, .row_bytes = bytes, .swap = header.swap};
  return {.field = std::move(field),
          .storage = std::make_shared<StridedField>(layout, "contiguous", std::move(check)),
          .rows = header.rows()};
}

std::vector<FileField> read_array(const File& file) {
  const NpyHeader header = read_npy_header(file);
  require_only_array(header, file);
  return {array_in_place(header, "data")};
}

/// The arrays of a .npz file: members of a zip archive, which are .npy files.
class Arrays {
 public:
  /// `notes` get what was left out, and what takes memory.
  Arrays(const File& file, std::span<const FieldChoice> choices, std::vector<std::string>& notes)
      : file_(file), choices_(choices), notes_(notes) {}

  std::vector<FileField> read() const;

 private:
  using Entries = std::vector<zip::Entry>;

  static std::string name_of(const zip::Entry& entry) {
    return entry.name.substr(0, entry.name.size() - kArrayEnd.size());
  }
  static Error of_array(const std::string& name, const Error& error, const char* more = "") {
    return Error(error.kind(), fmt::format("array '{}': {}", shown_name(name), error.happened()),
                 error.remedy() + more, error.where());
  }
  std::vector<const zip::Entry*> chosen(const Entries& entries) const;
  void refuse_splits(std::span<const FileField> fields, std::span<const std::string> names) const;
  void require_memory(std::span<const zip::Entry* const> entries) const;
  std::optional<FileField> read(const zip::Entry& entry, const std::string& name) const;
  NpyHeader header_of(const zip::Entry& entry) const;
  bool is_left_out(const NpyHeader& header) const {
    return header.shape.empty() && choices_.empty();
  }
  void check(const NpyHeader& header, std::uint64_t bytes) const;
  void note(const std::string& text) const {
    if (std::ranges::count(notes_, text) == 0) notes_.push_back(text);
  }

  const File& file_;
  std::span<const FieldChoice> choices_;
  std::vector<std::string>& notes_;
};

/// Of a member that is stored. The data's offset is that in the file.
NpyHeader Arrays::header_of(const zip::Entry& entry) const {
  const std::uint64_t begin = zip::content_offset(file_, entry);
  std::vector<std::byte> bytes(std::min<std::uint64_t>(entry.part.bytes, kNpyPreambleBytes));
  file_.read(begin, bytes);
  bytes.resize(std::min(entry.part.bytes, npy_header_bytes(bytes)));
  file_.read(begin, bytes);
  NpyHeader header = parse_npy_header(bytes);
  if (!is_left_out(header)) check(header, entry.part.bytes);
  header.data_offset += begin;
  return header;
}

/// `bytes` are those of the member.
void Arrays::check(const NpyHeader& header, std::uint64_t bytes) const {
  require_rows(header);
  if (header.fortran) {
    throw Error(
        ErrorKind::unsupported, "it is stored in Fortran order, where a sample is spread over all",
        fmt::format("write the file anew: {}",
                    python_line("import sys, numpy as n; a = n.load(sys.argv[1]); "
                                "n.savez(sys.argv[2], **{k: n.asarray(a[k], order=\"C\") for k in "
                                "a.files})",
                                {file_.path(), beside(file_.path(), "-c.npz")})));
  }
  const std::uint64_t row = header.row("data").bytes();
  const StridedLayout layout{.first = header.data_offset, .stride = row, .row_bytes = row};
  if (fits(layout, header.rows(), bytes) && header.data_offset + header.rows() * row == bytes) {
    return;
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("its member has {} bytes, which are not {} samples of {} bytes behind a "
                          "header of {}",
                          bytes, header.rows(), row, header.data_offset),
              "save the arrays again with numpy.savez");
}

/// Nothing for a single value that nobody asked for.
std::optional<FileField> Arrays::read(const zip::Entry& entry, const std::string& name) const {
  if (entry.part.in_place) {
    const NpyHeader header = header_of(entry);
    if (is_left_out(header)) return {};
    return array_in_place(header, name, [entry](const File& file) {
      try {
        zip::check_stored(file, entry);
      } catch (const Error& error) {
        throw of_array(name_of(entry), error);
      }
    });
  }
  std::vector<std::byte> content = zip::read_member(file_, entry);
  const NpyHeader header = parse_npy_header(content);
  if (is_left_out(header)) return {};
  check(header, content.size());
  content.erase(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(header.data_offset));
  swap_bytes(content, header.swap);
  Field field = header.row(name);
  const std::uint64_t bytes = field.bytes();
  return FileField{.field = std::move(field),
                   .storage = std::make_shared<CompactField>(
                       std::move(content), bytes, "deflated; in memory since it was opened"),
                   .rows = header.rows()};
}

/// A name cannot tell two apart.
void require_names_of_their_own(std::span<const zip::Entry* const> arrays) {
  std::set<std::string_view> names;
  for (const zip::Entry* one : arrays) {
    if (names.insert(one->name).second) continue;
    throw Error(ErrorKind::corrupt, fmt::format("'{}' is there twice", shown_name(one->name)),
                "save the arrays again, each under a name of its own");
  }
}

/// Members that are arrays, or those that were asked for; what else there is is noted.
std::vector<const zip::Entry*> Arrays::chosen(const Entries& entries) const {
  std::vector<const zip::Entry*> arrays;
  std::vector<std::string> others;
  for (const zip::Entry& entry : entries) {
    if (entry.name.ends_with(kArrayEnd) && !entry.link) {
      arrays.push_back(&entry);
    } else {
      others.push_back(shown_name(entry.name));
    }
  }
  require_names_of_their_own(arrays);
  if (choices_.empty()) {
    if (!others.empty()) {
      note(fmt::format("left out, as no arrays: {}", fmt::join(others, ", ")));
    }
    return arrays;
  }
  std::vector<const zip::Entry*> found;
  for (const FieldChoice& choice : choices_) {
    const auto at = std::ranges::find(arrays, choice.stored,
                                      [](const zip::Entry* one) { return name_of(*one); });
    if (at == arrays.end()) {
      std::vector<std::string> names;
      for (const zip::Entry* one : arrays) names.push_back(shown_name(name_of(*one)));
      throw Error(ErrorKind::not_found,
                  fmt::format("there is no array '{}'; there are {}", choice.stored,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))),
                  "correct the name after the '#'");
    }
    found.push_back(*at);
  }
  return found;
}

/// Arrays of several splits are no fields of one sample; those of different lengths are refused as
/// such.
void Arrays::refuse_splits(std::span<const FileField> fields,
                           std::span<const std::string> names) const {
  for (const FileField& one : fields) {
    if (one.rows != fields[0].rows) return;
  }
  for (const Alike& alike : find_alike(names, {})) {
    if (!alike.splits) continue;
    throw Error(
        ErrorKind::usage,
        fmt::format("its arrays {} have the same names in {}: these may be splits",
                    fmt::join(alike.stored(), ", "), fmt::join(alike.names(), ", ")),
        fmt::format("say which: '{0}#{1}' for {2} alone, '{0}#{3}' for fields of one sample",
                    file_.path(), list_of_members(alike.twins[0], {}), alike.twins[0].name,
                    list_of(names)));
  }
}

void Arrays::require_memory(std::span<const zip::Entry* const> entries) const {
  std::uint64_t bytes = 0;
  for (const zip::Entry* entry : entries) {
    if (!entry->part.in_place) add_saturated(bytes, entry->part.bytes);
  }
  if (bytes == 0) return;
  const MemoryLimit limit = memory_limit();
  const std::string line =
      python_line("import sys, numpy as n; n.savez(sys.argv[2], **n.load(sys.argv[1]))",
                  {file_.path(), beside(file_.path(), "-stored.npz")});
  if (bytes > limit.available_bytes) {
    throw Error(ErrorKind::unsupported,
                fmt::format("its compressed arrays need {} bytes of memory, {} are available ({})",
                            bytes, limit.available_bytes, limit.source),
                "store them, to be read where they lie: " + line);
  }
  constexpr std::uint64_t kWorthANote = std::uint64_t{64} << 20;
  if (bytes < kWorthANote) return;
  note(
      fmt::format("compressed arrays take {} bytes of memory in each process; stored ones are "
                  "read where they lie: {}",
                  bytes, line));
}

std::vector<FileField> Arrays::read() const {
  const Entries entries = zip::read_directory(file_, 0).entries;
  const auto arrays = chosen(entries);
  require_memory(arrays);
  std::vector<FileField> fields;
  std::vector<std::string> names;
  std::vector<std::string> single;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string stored = name_of(*arrays[i]);
    const bool renamed = !choices_.empty() && !choices_[i].name.empty();
    try {
      auto field = read(*arrays[i], renamed ? choices_[i].name : field_name(stored));
      if (field) {
        fields.push_back(std::move(*field));
        names.push_back(stored);
      }
      if (!field) single.push_back(shown_name(stored));
    } catch (const Error& error) {
      throw of_array(stored, error, choices_.empty() ? "; or name others: FILE#NAME,NAME" : "");
    }
  }
  if (!single.empty()) {
    note(fmt::format("left out, as single values: {}", fmt::join(single, ", ")));
  }
  if (choices_.empty()) refuse_splits(fields, names);
  if (!fields.empty()) return fields;
  throw Error(ErrorKind::not_found, "the file holds no arrays of samples",
              "save some with numpy.savez");
}

/// As numpy.savez writes its first member, whatever the file is called: an array by its name,
/// without a time, and with sizes of 64 bits beside those of 32 (which versions of Python fill
/// differently).
bool begins_as_savez(std::string_view start) {
  constexpr std::string_view kMember("PK\3\4"), kNoTime("\0\0\x21\0", 4), kSizes("\1\0\x10\0", 4);
  constexpr std::size_t kTimeAt = 10, kNameBytesAt = 26, kNameAt = 30;
  if (start.size() <= kNameAt || !start.starts_with(kMember)) return false;
  const std::size_t name_bytes = static_cast<unsigned char>(start[kNameBytesAt]) |
                                 static_cast<unsigned char>(start[kNameBytesAt + 1]) << 8U;
  const std::string_view behind = start.substr(kNameAt);
  return start.substr(kTimeAt, kNoTime.size()) == kNoTime && name_bytes < behind.size() &&
         behind.substr(0, name_bytes).ends_with(kArrayEnd) &&
         behind.substr(name_bytes).starts_with(kSizes);
}

bool is_npz(const File& file) {
  std::array<char, 512> start{};
  const auto known = std::span(start).first(std::min<std::uint64_t>(start.size(), file.size()));
  file.read(0, std::as_writable_bytes(known));
  const std::string_view text(known.data(), known.size());
  const bool named = file.path().ends_with(".npz");
  return named ? text.starts_with("PK\3\4") || text.starts_with("PK\5\6") : begins_as_savez(text);
}

bool is_array_file(const FirstFile& first) {
  if (!first.file) return false;
  std::array<std::byte, kNpyPreambleBytes> start{};
  const auto known =
      std::span(start).first(std::min<std::uint64_t>(start.size(), first.file->size()));
  first.file->read(0, known);
  return is_npy(known) || is_npz(*first.file);
}

}  // namespace

std::unique_ptr<DataSet> open_npy(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices) {
  std::vector<std::string> notes;
  // Of arrays with names, those that were chosen are opened under the names that were chosen.
  const bool named = is_npz(*files.front());
  return open_fields(
      text, "npy", std::move(files), named ? std::span<const FieldChoice>() : choices,
      [&](const auto& file) {
        return named ? Arrays(*file, choices, notes).read() : read_array(*file);
      },
      notes);
}

Format npy_format() {
  return {.name = "npy",
          .description =
              "NumPy arrays (.npy, .npz): a sample is what lies under one index of the first "
              "dimension",
          .recognise = is_array_file,
          .open = [](const FormatRequest& request) {
            return open_npy(request.text, request.open_files(), request.found.fields);
          }};
}

}  // namespace forebay::raw
