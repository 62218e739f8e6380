#include "format/hdf5/open_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/byte_stream.hpp"
#include "format/hdf5/dataset.hpp"
#include "format/member_set.hpp"

namespace forebay::hdf5 {
namespace {

constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/// Of storage that needs none.
class NoBytes final : public FileBytes {
 public:
  std::span<const std::byte> at(std::uint32_t, std::uint64_t, std::uint64_t) const override {
    return {};
  }
};

/// What the datasets of one part, in all files, have in common.
struct PartOfSamples {
  Field first;
  std::string first_stored;
  bool alike = true;

  /// Arrays of any length decode to such, bytes as what they are.
  std::string codec() const {
    const bool nothing = std::ranges::count(first.shape, 0U) > 0;
    if (alike) return nothing ? "bytes" : to_string(Schema{{first}});
    return first.type == ElementType::u8 ? "auto" : std::string(to_string(first.type));
  }
  /// Throws unsupported where it is nothing like those before.
  void add(const Dataset& one) {
    if (one.field == first) return;
    alike = false;
    const bool lists =
        one.field.type == first.type && one.field.shape.size() == 1 && first.shape.size() == 1;
    if (lists) return;
    throw Error(ErrorKind::unsupported,
                fmt::format("samples are data sets of their own, of different shapes: '{}' is {} "
                            "but '{}' is {}",
                            shown_name(first_stored), to_string(Schema{{first}}),
                            shown_name(one.stored), to_string(Schema{{one.field}})),
                "bring them to one shape, or store lists of one type, as encoded images are");
  }
};

void add_part(const Dataset& one, std::uint32_t file, FoundMembers& found) {
  const StridedLayout* layout = one.storage->layout();
  if (one.field.bytes() == 0) {
    found.add(one.field.name, {.file = file});
  } else if (layout != nullptr && layout->swap <= 1) {
    found.add(one.field.name, {.offset = layout->first, .bytes = layout->row_bytes, .file = file});
  } else if (one.storage->in_place() && !one.storage->in_file()) {
    found.add_in_memory(one.field.name, chars_of(one.storage->value(0, file, NoBytes())));
  } else {
    throw Error(ErrorKind::unsupported,
                fmt::format("samples are data sets of their own, of different lengths, and '{}' "
                            "does not lie in place ({})",
                            shown_name(one.stored), one.storage->describe()),
                "store such data sets contiguous, in this machine's byte order");
  }
}

std::vector<PartOfSamples> parts_of(const FileContent& content) {
  std::vector<PartOfSamples> parts;
  for (const std::vector<Dataset>& all : content.parts) {
    parts.push_back({.first = all[0].field, .first_stored = all[0].stored});
  }
  return parts;
}

void add_samples(const FileContent& content, std::uint32_t file, std::vector<PartOfSamples>& parts,
                 FoundMembers& found) {
  if (content.parts.size() != parts.size()) {
    throw Error(ErrorKind::usage, "its samples have other parts than those of the first file",
                "leave it out, or name what all files have: FILES#*/NAME");
  }
  for (std::size_t s = 0; s < content.keys.size(); ++s) {
    found.begin_sample(content.keys[s]);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].add(content.parts[p][s]);
      add_part(content.parts[p][s], file, found);
    }
  }
  found.end_file();
}

/// Samples of different lengths, whose parts are data sets.
std::unique_ptr<DataSet> open_parts(const std::string& text, DataFiles files,
                                    std::span<const FileContent> contents,
                                    std::span<const std::string> notes) {
  FoundMembers found;
  std::vector<PartOfSamples> parts = parts_of(contents[0]);
  for (std::uint32_t f = 0; f < files.size(); ++f) {
    try {
      add_samples(contents[f], f, parts, found);
    } catch (const Error& error) {
      throw error.within({.file = files[f]->path()});
    }
  }
  for (const std::string& note : notes) found.note(note);
  MemberIndex index = std::move(found).choose({}, text);
  for (std::size_t p = 0; p < parts.size(); ++p) index.codecs[p] = parts[p].codec();
  return std::make_unique<MemberSet>(text, "hdf5", std::move(files), std::move(index));
}

/// What makes work far larger than the file: a training on zeros, a check of them for days, or
/// whole chunks that are decoded for single samples.
void tell_of_size(std::span<const FileContent> contents, std::vector<std::string>& notes) {
  constexpr double kMostlyWritten = 0.5;
  constexpr std::uint64_t kLargeChunk = std::uint64_t{256} << 20;
  for (const FileContent& content : contents) {
    for (const FileField& field : content.fields) {
      const std::string name = shown_name(field.field.name);
      const double written = field.storage->written();
      if (written < kMostlyWritten) {
        const std::string part =
            written > 0 ? fmt::format("only {:.2g} %", 100 * written) : std::string("none");
        return notes.push_back(fmt::format(
            "'{}': {} of the {} samples that its shape promises were ever written, the others are "
            "its fill value",
            name, part, field.rows));
      }
      const std::uint64_t together = field.storage->rows_together();
      if (together > 1 && field.field.bytes() > kLargeChunk / together) {
        return notes.push_back(fmt::format(
            "'{}': each chunk decodes to {} samples of {} bytes, for whichever of them is wanted; "
            "write it with smaller chunks",
            name, together, field.field.bytes()));
      }
    }
  }
}

}  // namespace

bool is_hdf5(const File& file) {
  const std::uint64_t size = file.size();
  std::array<std::byte, kSignature.size()> bytes;
  for (std::uint64_t at = 0; size >= bytes.size() && at <= size - bytes.size();
       at = at == 0 ? 512 : at * 2) {
    file.read(at, bytes);
    const auto same = [](std::byte a, unsigned char b) {
      return std::to_integer<unsigned>(a) == b;
    };
    if (std::ranges::equal(bytes, kSignature, same)) return true;
  }
  return false;
}

void require_readable(const FileContent& content) {
  if (content.fields.empty()) {
    FoundMembers found;
    std::vector<PartOfSamples> parts = parts_of(content);
    add_samples(content, 0, parts, found);
  }
  require_together(content.fields);
}

std::unique_ptr<DataSet> open_hdf5(const std::string& text, DataFiles files,
                                   std::span<const FieldChoice> choices) {
  std::vector<std::string> notes;
  std::vector<FileContent> contents;
  for (const auto& file : files) {
    try {
      contents.push_back(read_file(file, choices, notes));
    } catch (const Error& error) {
      throw error.within({.file = file->path()});
    }
  }
  tell_of_size(contents, notes);
  const bool fields =
      std::ranges::none_of(contents, [](const FileContent& one) { return one.fields.empty(); });
  if (!fields) return open_parts(text, std::move(files), contents, notes);
  // What was chosen is opened under the names that were chosen.
  auto next = contents.begin();
  return open_fields(
      text, "hdf5", std::move(files), {}, [&](const auto&) { return std::move((next++)->fields); },
      notes);
}

}  // namespace forebay::hdf5
