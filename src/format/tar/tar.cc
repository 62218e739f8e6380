#include "format/tar/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "forebay/error.hpp"
#include "format/header_reader.hpp"
#include "format/kept_members.hpp"

namespace forebay::tar {
namespace {

// Names and attributes that are longer say nothing good of an archive.
constexpr std::uint64_t kLongestAttributes = std::uint64_t{1} << 20;
// As far as is looked for anything but the zeros that tar programs pad archives with.
constexpr std::uint64_t kLongestPadding = 64 << 10;

/// One archive, member by member.
class Walk {
 public:
  Walk(const File& file, std::uint32_t number, FoundMembers& found)
      : reader_(file), number_(number), found_(found) {}

  void run() {
    while (!at_end()) take_member();
    hidden_.tell("{} hidden members are left out, the first is '{}'", found_);
    links_.tell(
        "{} links are left out, the first is '{}'; pack what they lead to (tar -h "
        "--hard-dereference)",
        found_);
    unnamed_.tell("{} members without an extension are left out, the first is '{}'", found_);
    found_.end_file();
  }
  std::uint64_t offset() const { return at_; }

 private:
  bool at_end();
  bool only_padding_is_left();
  void take_member();
  void take_file(const Header& header);
  std::string content(const Header& header);

  HeaderReader reader_;
  std::uint32_t number_;
  FoundMembers& found_;
  std::uint64_t at_ = 0;
  Attributes next_;                    ///< of the next member
  std::optional<std::string> name_;    ///< of the next member, of GNU tar
  std::optional<std::string> sample_;  ///< that was begun last
  LeftOutMembers hidden_, links_, unnamed_;
};

bool Walk::at_end() {
  // Between two members, a cut would show nowhere else.
  if (reader_.size() - at_ < kBlock) {
    throw Error(ErrorKind::corrupt, "the archive has no mark at its end",
                "it was cut: copy it again from its source; where it is whole, append 1,024 zeros "
                "(head -c 1024 /dev/zero >> FILE)");
  }
  if (!is_end(reader_.at(at_, kBlock).first<kBlock>())) return false;
  if (!only_padding_is_left()) {
    found_.note(
        fmt::format("{} bytes behind the end of an archive are left out; joined archives "
                    "have to be taken apart (tar -A joins them well)",
                    reader_.size() - at_));
  }
  return true;
}

bool Walk::only_padding_is_left() {
  if (reader_.size() - at_ > kLongestPadding) return false;
  for (std::uint64_t at = at_; at < reader_.size(); at += kBlock) {
    const auto block = reader_.at(at, std::min<std::uint64_t>(kBlock, reader_.size() - at));
    if (!std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; })) {
      return false;
    }
  }
  return true;
}

/// What follows a header that speaks of the next one.
std::string Walk::content(const Header& header) {
  if (header.size > kLongestAttributes || header.size > reader_.size() - at_) {
    throw Error(ErrorKind::corrupt,
                fmt::format("a name or attributes of {} bytes do not fit the archive", header.size),
                "the archive is damaged: copy it again from its source");
  }
  return std::string(chars_of(reader_.at(at_, header.size)));
}

void Walk::take_member() {
  Header header = parse_header(reader_.at(at_, kBlock).first<kBlock>());
  at_ += kBlock;
  switch (header.kind) {
    case MemberKind::long_name:
      name_ = content(header);
      name_->resize(std::strlen(name_->c_str()));
      break;
    case MemberKind::attributes:
      next_ = parse_attributes(content(header));
      break;
    case MemberKind::global_attributes:
      if (const Attributes all = parse_attributes(content(header)); all.path || all.size) {
        throw Error(ErrorKind::unsupported, "a name or size is given for all members",
                    "pack the archive again");
      }
      break;
    case MemberKind::long_link:
      break;
    default:
      if (name_) header.name = *name_;
      if (next_.path) header.name = *next_.path;
      if (next_.size) header.size = *next_.size;
      take_file(header);
      name_.reset();
      next_ = {};
  }
  if (header.size > reader_.size() - at_) {
    throw Error(ErrorKind::corrupt,
                fmt::format("'{}' has {} bytes, of which {} are there", shown_name(header.name),
                            header.size, reader_.size() - at_),
                "the archive was cut: copy it again from its source");
  }
  const std::uint64_t padded = (header.size + kBlock - 1) / kBlock * kBlock;
  at_ += std::min(padded, reader_.size() - at_);
}

void Walk::take_file(const Header& header) {
  if (header.kind == MemberKind::sparse || next_.sparse) {
    throw Error(ErrorKind::unsupported,
                fmt::format("'{}' is stored without its holes", shown_name(header.name)),
                "pack the archive without --sparse");
  }
  const bool link = header.kind == MemberKind::link;
  if (!link && header.kind != MemberKind::file) return;
  if (is_hidden_member(header.name)) {
    hidden_.add(header.name);
    return;
  }
  if (link) {
    links_.add(header.name);
    return;
  }
  // WebDataset's own notes about an archive.
  const bool plain = header.name.find('/') == std::string::npos;
  if (plain && header.name.starts_with("__") && header.name.ends_with("__")) return;
  const auto name = split_member_name(header.name);
  if (!name) {
    unnamed_.add(header.name);
    return;
  }
  if (sample_ != name->sample) {
    sample_ = name->sample;
    found_.begin_sample(name->sample);
  }
  found_.add(name->part, {.offset = at_, .bytes = header.size, .file = number_});
}

/// Archives of other kinds, by their first bytes.
const char* compressed_by(std::span<const std::byte> start) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kMagics{
      {{"\x1f\x8b", "gzip"},
       {"BZh", "bzip2"},
       {"\xfd"
        "7zXZ",
        "xz"},
       {"\x28\xb5\x2f\xfd", "zstd"}}};
  for (const auto& [magic, name] : kMagics) {
    if (chars_of(start).starts_with(magic)) return name;
  }
  return nullptr;
}

bool is_tar(const FirstFile& first) {
  if (!first.file || first.file->size() < kBlock) return false;
  std::array<std::byte, kBlock> block;
  first.file->read(0, block);
  if (is_header(block)) return true;
  // So that what is wrong with it can be told.
  const bool named = first.path.ends_with(".tar") ||
                     first.path.find(".tar.") != std::string::npos || first.path.ends_with(".tgz");
  return named && (is_end(block) || compressed_by(block) != nullptr);
}

void require_uncompressed(const File& file) {
  std::array<std::byte, kBlock> block{};
  const auto known = std::span(block).first(std::min<std::uint64_t>(kBlock, file.size()));
  file.read(0, known);
  if (const char* by = compressed_by(known); by != nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the archive is compressed by {}: samples in it have no places", by),
                "uncompress it: images and the like hardly take more room so",
                {.file = file.path()});
  }
}

}  // namespace

void find_members(const File& file, std::uint32_t number, FoundMembers& found) {
  require_uncompressed(file);
  Walk walk(file, number, found);
  try {
    walk.run();
  } catch (const Error& error) {
    throw error.within({.file = file.path(), .offset = walk.offset()});
  }
}

Format tar_format() {
  return {.name = "tar",
          .description =
              "tar archives as WebDataset has them: members of one name are a sample, "
              "their extensions its parts",
          .recognise = is_tar,
          .open = [](const FormatRequest& request) -> std::unique_ptr<DataSet> {
            return open_walked(request, "tar", find_members);
          }};
}

}  // namespace forebay::tar
