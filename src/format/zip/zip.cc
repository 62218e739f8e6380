#include "format/zip/zip.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/class_names.hpp"

namespace forebay::zip {
namespace {

constexpr std::size_t kNameAt = 30;  // in a local header

constexpr const char* kCopyAgain = "the archive is damaged: copy it again from its source";

[[noreturn]] void damaged(const char* what) { throw Error(ErrorKind::corrupt, what, kCopyAgain); }

class ZipCoding final : public MemberCoding {
 public:
  std::string how() const override { return "deflated"; }

  std::span<const std::byte> content(std::span<const std::byte> stored,
                                     const CodedPart& part) const override {
    const auto rest = stored.subspan(local_header(stored).bytes);
    if (!part.in_place) return rest;
    if (part.bytes > rest.size()) damaged("its header is longer than what follows");
    return rest.first(part.bytes);
  }

  void decode(std::span<const std::byte> stored, const FoundPart& found,
              std::span<std::byte> out) const override {
    auto part = content(stored, found.coded);
    if (!out.empty()) {
      inflate(part, out);
      part = out;
    }
    const std::string_view name = local_header(stored).name;
    const std::uint32_t of_name = libdeflate_crc32(0, name.data(), name.size());
    const std::uint32_t of_part = libdeflate_crc32(0, part.data(), part.size());
    if ((of_part ^ of_name) == found.member.checksum) return;
    damaged("its bytes or the name in front of them are not those of the central directory");
  }

 private:
  struct Free {
    void operator()(libdeflate_decompressor* one) const { libdeflate_free_decompressor(one); }
  };

  /// `content` goes on behind what is deflated.
  static void inflate(std::span<const std::byte> content, std::span<std::byte> out) {
    thread_local const std::unique_ptr<libdeflate_decompressor, Free> decompressor(
        libdeflate_alloc_decompressor());
    if (!decompressor) throw std::bad_alloc();
    std::size_t taken = 0;
    const auto result =
        libdeflate_deflate_decompress_ex(decompressor.get(), content.data(), content.size(),
                                         out.data(), out.size(), &taken, nullptr);
    if (result != LIBDEFLATE_SUCCESS) damaged("it does not inflate to the bytes that it claims");
  }
};

const ZipCoding kCoding;

/// What archives hold, but for what is hidden.
struct Members {
  std::vector<Entry> entries;
  std::vector<std::string> folders;
};

/// The folder that all images lie in, with its slash.
std::string folder_of_images(std::span<const Entry> entries) {
  std::optional<std::string_view> common;
  for (const Entry& entry : entries) {
    if (!is_image_name(entry.name)) continue;
    if (!common) common = entry.name;
    const auto differ = std::ranges::mismatch(*common, entry.name).in1;
    common = common->substr(0, static_cast<std::size_t>(differ - common->begin()));
  }
  return std::string(common ? common->substr(0, common->rfind('/') + 1) : "");
}

/// "cat" of "images/cat/more/1.jpg", where `root` is "images/"; empty where it lies in no folder.
std::string_view class_of(std::string_view name, std::string_view root) {
  if (!name.starts_with(root)) return {};
  name.remove_prefix(root.size());
  const std::size_t slash = name.find('/');
  return name.substr(0, slash == std::string_view::npos ? 0 : slash);
}

/// Whether all images lie in folders that tell what they show, and nothing else belongs to them.
bool are_classes(std::span<const Entry> entries, std::string_view root) {
  std::unordered_set<std::string_view> images;
  for (const Entry& entry : entries) {
    if (!is_image_name(entry.name)) continue;
    if (class_of(entry.name, root).empty()) return false;
    images.insert(std::string_view(entry.name).substr(0, entry.name.rfind('.')));
  }
  return !images.empty() && std::ranges::none_of(entries, [&](const Entry& entry) {
    const auto stem = std::string_view(entry.name).substr(0, entry.name.rfind('.'));
    return !is_image_name(entry.name) && images.contains(stem);
  });
}

/// All folders of classes, those without images too, in the order of their names.
std::vector<std::string> classes_in(const Members& members, std::string_view root) {
  std::set<std::string, std::less<>> classes;
  const auto take = [&](std::string_view name) {
    const std::string_view one = class_of(name, root);
    if (!one.empty() && !classes.contains(one)) classes.emplace(one);
  };
  for (const Entry& entry : members.entries) take(entry.name);
  for (const std::string& folder : members.folders) take(folder);
  return {classes.begin(), classes.end()};
}

/// `entries` are sorted by name.
void refuse_twice(std::span<const Entry> entries, const DataFiles& files) {
  const auto at = std::ranges::adjacent_find(entries, [](const Entry& one, const Entry& other) {
    return one.name == other.name && one.member.file == other.member.file;
  });
  if (at == entries.end()) return;
  throw Error(ErrorKind::corrupt, fmt::format("'{}' is there twice", shown_name(at->name)),
              "give each member a name of its own", {.file = files[at->member.file]->path()});
}

/// Programs may stand in front of an archive, which nobody misses; other archives are.
void tell_of_another_in_front(const File& file, const Directory& directory, FoundMembers& found) {
  std::array<std::byte, 4> start{};
  if (directory.before < start.size()) return;
  file.read(0, start);
  if (chars_of(start) != "PK\3\4") return;
  found.note(
      fmt::format("{} bytes in front of an archive are left out, which begin as another one "
                  "does: archives that were joined have to be taken apart",
                  directory.before));
}

/// In the order of folders of files: by class, folder, and name.
void take_classes(Members members, const std::string& root, const DataFiles& files,
                  FoundMembers& found) {
  std::vector<std::string> labels = classes_in(members, root);
  std::vector<Entry>& entries = members.entries;
  LeftOutMembers others;
  std::erase_if(entries, [&](const Entry& entry) {
    return !is_image_name(entry.name) && others.add(entry.name);
  });
  const auto place = [&](const Entry& entry) {
    const std::string_view name = entry.name;
    return std::tuple(class_of(name, root), name.substr(0, name.rfind('/')), name);
  };
  std::ranges::stable_sort(entries, std::ranges::less(), place);
  refuse_twice(entries, files);
  others.tell("{} files that are no images are left out, the first is '{}'", found);
  std::size_t label = 0;
  for (const Entry& entry : entries) {
    const std::string_view name = class_of(entry.name, root);
    const bool begins = found.samples() == 0 || labels[label] != name;
    if (begins && found.samples() > 0) ++label;
    for (; labels[label] != name; ++label) found.note(no_samples_note(labels[label]));
    found.begin_sample(std::string_view(entry.name).substr(root.size()));
    found.add("image", entry.member, entry.part);
    found.add_in_memory("label", std::to_string(label));
  }
  found.set_images("image");
  for (++label; label < labels.size(); ++label) found.note(no_samples_note(labels[label]));
  if (std::string doubt = doubtful_classes_note(labels); !doubt.empty()) found.note(doubt);
  found.set_labels(std::move(labels));
}

/// As in tar archives, but members of a sample may lie anywhere in theirs.
void take_parts(std::span<const Entry> entries, LeftOutMembers& unnamed, FoundMembers& found) {
  struct Named {
    std::size_t sample = 0;
    const Entry* entry = nullptr;
    MemberName name;
  };
  std::vector<Named> members;
  std::unordered_map<std::string_view, std::size_t> samples;
  for (const Entry& entry : entries) {
    auto name = split_member_name(entry.name);
    if (!name && unnamed.add(entry.name)) continue;
    const std::size_t sample = samples.try_emplace(name->sample, samples.size()).first->second;
    members.push_back({.sample = sample, .entry = &entry, .name = std::move(*name)});
  }
  std::ranges::stable_sort(members, {}, &Named::sample);
  const Named* before = nullptr;
  for (const Named& one : members) {
    if (before == nullptr || before->sample != one.sample) found.begin_sample(one.name.sample);
    found.add(one.name.part, one.entry->member, one.entry->part);
    before = &one;
  }
  found.end_file();
}

/// Such an archive has a sample for nobody: a pickle, and what belongs to it.
void refuse_torch(const FirstFile& first, std::span<const std::byte> start) {
  // PyTorch writes it first.
  const std::string_view name = chars_of(start).substr(std::min(kNameAt, start.size()));
  const std::size_t pickle = name.find("/data.pkl");
  if (pickle == std::string_view::npos || name.substr(0, pickle).find('/') < pickle) return;
  throw Error(ErrorKind::unsupported,
              "this is a file of PyTorch (torch.save), which Forebay does not read",
              "nothing is ever unpickled: save its tensors with numpy.save or numpy.savez, or name "
              "--format zip to have its members as samples",
              {.file = first.path});
}

bool is_zip(const FirstFile& first) {
  std::array<std::byte, 256> start{};
  if (!first.file || first.file->size() < 4) return false;
  const auto known = std::span(start).first(std::min<std::uint64_t>(256, first.file->size()));
  first.file->read(0, known);
  const std::string_view mark = chars_of(known).substr(0, 4);
  if (mark == "PK\3\4") refuse_torch(first, known);
  // What lies in front of an archive may be anything; then its name has to tell.
  return mark == "PK\3\4" || mark == "PK\5\6" || first.path.ends_with(".zip");
}

}  // namespace

std::uint64_t content_offset(const File& file, const Entry& entry) {
  constexpr std::uint64_t kMostHeader = 30 + 2 * 65535;
  std::vector<std::byte> stored(std::min(entry.member.bytes, kMostHeader));
  file.read(entry.member.offset, stored);
  const LocalHeader header = local_header(stored);
  if (header.name != entry.name) damaged("the name in front of its bytes is another one");
  if (entry.part.in_place && entry.part.bytes > entry.member.bytes - header.bytes) {
    damaged("its header is longer than what follows");
  }
  return entry.member.offset + header.bytes;
}

void check_stored(const File& file, const Entry& entry) {
  constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
  const std::uint64_t begin = content_offset(file, entry), end = begin + entry.part.bytes;
  std::vector<std::byte> piece(std::min(kPiece, entry.part.bytes));
  std::uint32_t of_part = 0;
  for (std::uint64_t at = begin; at < end; at += piece.size()) {
    piece.resize(std::min(kPiece, end - at));
    file.read(at, piece);
    of_part = libdeflate_crc32(of_part, piece.data(), piece.size());
  }
  if ((of_part ^ libdeflate_crc32(0, entry.name.data(), entry.name.size())) ==
      entry.member.checksum) {
    return;
  }
  throw Error(ErrorKind::corrupt, "its bytes are not those that its CRC-32 was made of", kCopyAgain,
              {.offset = begin});
}

std::vector<std::byte> read_member(const File& file, const Entry& entry) {
  std::vector<std::byte> stored(entry.member.bytes);
  file.read(entry.member.offset, stored);
  const FoundPart part{.part = 0, .member = entry.member, .coded = entry.part};
  std::vector<std::byte> content(entry.part.in_place ? 0 : entry.part.bytes);
  kCoding.decode(stored, part, content);
  if (!entry.part.in_place) return content;
  const auto lies = kCoding.content(stored, entry.part);
  return {lies.begin(), lies.end()};
}

FoundMembers find_members(const DataFiles& files) {
  FoundMembers found;
  found.set_coding(&kCoding);
  Members members;
  std::vector<Entry>& entries = members.entries;
  std::vector<std::size_t> ends{0};
  LeftOutMembers hidden, links;
  for (std::uint32_t f = 0; f < files.size(); ++f) {
    Directory directory = read_directory(*files[f], f);
    tell_of_another_in_front(*files[f], directory, found);
    std::ranges::move(directory.folders, std::back_inserter(members.folders));
    for (Entry& entry : directory.entries) {
      if (is_hidden_member(entry.name) && hidden.add(entry.name)) continue;
      if (entry.link && links.add(entry.name)) continue;
      entries.push_back(std::move(entry));
    }
    ends.push_back(entries.size());
  }
  std::erase_if(members.folders, [](const std::string& name) { return is_hidden_member(name); });
  hidden.tell("{} hidden members are left out, the first is '{}'", found);
  links.tell("{} links are left out, the first is '{}'; pack what they lead to (zip without -y)",
             found);
  if (const std::string root = folder_of_images(entries); are_classes(entries, root)) {
    take_classes(std::move(members), root, files, found);
    return found;
  }
  LeftOutMembers unnamed;
  for (std::size_t f = 0; f < files.size(); ++f) {
    try {
      take_parts(std::span(entries).subspan(ends[f], ends[f + 1] - ends[f]), unnamed, found);
    } catch (const Error& error) {
      throw error.within({.file = files[f]->path()});
    }
  }
  unnamed.tell("{} members without an extension are left out, the first is '{}'", found);
  return found;
}

Format zip_format() {
  return {.name = "zip",
          .description =
              "zip archives, stored or deflated: members of one name are a sample, "
              "their extensions its parts; or images in folders, which are labels",
          .recognise = is_zip,
          .open = [](const FormatRequest& request) -> std::unique_ptr<DataSet> {
            DataFiles files = request.open_files();
            FoundMembers found = find_members(files);
            found.require_samples(request.text);
            return std::make_unique<MemberSet>(
                request.text, "zip", std::move(files),
                std::move(found).choose(request.found.fields, request.text));
          }};
}

}  // namespace forebay::zip
