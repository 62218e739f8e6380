#include "format/member_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"

namespace forebay {
namespace {

constexpr std::size_t kMostParts = 64;

// Of webdataset's own decoders: parts of these names are numbers as text.
constexpr std::array<std::string_view, 7> kNumbers = {"cls",   "cls2", "class", "count",
                                                      "index", "inx",  "id"};

std::string shown_key(const MemberIndex& index, std::uint64_t sample) {
  return shown_name(index.key(sample));
}

}  // namespace

std::optional<MemberName> split_member_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == name.size()) return std::nullopt;
  MemberName split{.sample = name.substr(0, dot), .part = std::string(name.substr(dot + 1))};
  for (char& c : split.part) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return split;
}

void FoundMembers::begin_sample(std::string_view key) {
  found_.keys += key;
  found_.keys_end.push_back(found_.keys.size());
}

void FoundMembers::note(std::string text) {
  constexpr std::size_t kMostNotes = 8;
  if (found_.notes.size() < kMostNotes) found_.notes.push_back(std::move(text));
}

std::size_t FoundMembers::part_number(std::string_view name) {
  const auto [at, is_new] = numbers_.try_emplace(std::string(name), names_.size());
  if (is_new) {
    names_.emplace_back(name);
    counts_.push_back(0);
  }
  return at->second;
}

void FoundMembers::add(std::string_view part, const Member& member) {
  const std::size_t number = part_number(part);
  const std::uint64_t sample = samples() - 1;
  for (auto at = members_.rbegin(); at != members_.rend() && at->sample == sample; ++at) {
    if (at->part != number) continue;
    throw Error(ErrorKind::corrupt,
                fmt::format("'{}' has '{}' twice", shown_key(found_, sample), shown_name(part)),
                "give each member a name of its own");
  }
  ++counts_[number];
  members_.push_back({.sample = sample, .part = number, .member = member});
}

void FoundMembers::add_in_memory(std::string_view part, std::string_view content) {
  const Member member{
      .offset = found_.memory.size(), .bytes = content.size(), .file = Member::kInMemory};
  found_.memory += content;
  add(part, member);
  in_memory_.insert(members_.back().part);
}

void FoundMembers::end_file() {
  found_.of_files.push_back(samples() - first_of_file_);
  first_of_file_ = samples();
}

std::vector<std::size_t> FoundMembers::common_parts(const std::string& text) {
  std::vector<std::size_t> common;
  std::vector<std::string> others;
  for (std::size_t p = 0; p < names_.size(); ++p) {
    if (counts_[p] == samples()) {
      common.push_back(p);
    } else {
      others.push_back(fmt::format("{} ({} of {})", shown_name(names_[p]), counts_[p], samples()));
    }
  }
  if (common.empty()) {
    throw Error(
        ErrorKind::usage, fmt::format("no part is in every sample: {}", fmt::join(others, ", ")),
        "repack the samples, or name what is in all of them: FILES#NAME,NAME", {.file = text});
  }
  if (!others.empty()) {
    note(fmt::format(
        "left out, since not every sample has them: {}; choose parts by FILES#NAME,NAME",
        fmt::join(others, ", ")));
  }
  return common;
}

std::size_t FoundMembers::chosen_part(const FieldChoice& choice, const std::string& text) const {
  const auto at = numbers_.find(choice.stored);
  if (at == numbers_.end()) {
    throw Error(ErrorKind::not_found, fmt::format("there is no part '{}'", choice.stored),
                fmt::format("there are {}", fmt::join(names_, ", ")), {.file = text});
  }
  if (counts_[at->second] == samples()) return at->second;
  std::uint64_t sample = 0;
  for (const Found& found : members_) {
    if (found.part == at->second && found.sample == sample) ++sample;
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("{} of {} samples have no part '{}'; the first is '{}'",
                          samples() - counts_[at->second], samples(), choice.stored,
                          shown_key(found_, sample)),
              "repack them, or name parts that all samples have", {.file = text, .sample = sample});
}

MemberIndex FoundMembers::choose(std::span<const FieldChoice> choices, const std::string& text) && {
  std::vector<std::size_t> chosen;
  for (const FieldChoice& choice : choices) chosen.push_back(chosen_part(choice, text));
  if (choices.empty() && samples() > 0) chosen = common_parts(text);
  if (chosen.size() > kMostParts) {
    throw Error(ErrorKind::usage, fmt::format("samples have {} parts", chosen.size()),
                fmt::format("name at most {}: FILES#NAME,NAME", kMostParts), {.file = text});
  }
  std::vector<std::size_t> place(names_.size(), kMostParts);
  MemberIndex index = std::move(found_);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const bool renamed = c < choices.size() && !choices[c].name.empty();
    const std::string name = renamed ? choices[c].name : field_name(names_[chosen[c]]);
    if (place[chosen[c]] != kMostParts || std::ranges::count(index.parts, name) > 0) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is named twice", name), "name it once",
                  {.file = text});
    }
    place[chosen[c]] = c;
    index.parts.push_back(name);
    const bool number = std::ranges::count(kNumbers, names_[chosen[c]]) > 0;
    index.codecs.emplace_back(number || in_memory_.contains(chosen[c]) ? "number" : "auto");
  }
  index.members.resize(index.entries() * index.parts.size());
  for (const Found& found : members_) {
    if (place[found.part] == kMostParts) continue;
    index.members[found.sample * index.parts.size() + place[found.part]] = found.member;
  }
  if (index.parts.empty()) {
    index.parts.emplace_back();
    index.codecs.emplace_back("auto");
  }
  return index;
}

MemberSet::MemberSet(std::string path, std::string format, DataFiles files, MemberIndex index)
    : DataSet(std::move(path), std::move(format), std::move(files)), index_(std::move(index)) {
  facts_.entries = index_.entries();
  facts_.named = true;
  facts_.of_files = index_.of_files;
  facts_.notes = index_.notes;
  facts_.labels = index_.labels;
  if (index_.parts.size() > 1) facts_.parts = index_.parts;
  for (Member& member : index_.members) {
    if (index_.whole_files && member.file != Member::kInMemory) {
      member.bytes = bytes_at_open(member.file);
    }
  }
  require_inside();
  tell_parts();
  facts_.fingerprint = fmt::format(
      "{}:samples={},files={},bytes={},parts={},ends={}", facts_.format, facts_.entries,
      this->files().size(), stored_bytes(), fmt::join(index_.parts, "+"), digest_of_content());
}

std::string MemberSet::digest_of_content() const {
  const auto keys = std::as_bytes(std::span(index_.keys));
  if (!index_.whole_files) return ends_digest(keys);
  std::string text = index_.keys;
  for (const Member& member : index_.members) text += fmt::format(",{}", member.bytes);
  return digest_of(std::as_bytes(std::span(text)));
}

void MemberSet::require_inside() const {
  for (std::uint64_t m = 0; m < index_.members.size(); ++m) {
    const Member& member = index_.members[m];
    const bool in_memory = member.file == Member::kInMemory;
    const std::uint64_t size = in_memory ? index_.memory.size() : bytes_at_open(member.file);
    if (member.offset <= size && member.bytes <= size - member.offset) continue;
    const std::uint64_t sample = m / index_.parts.size();
    throw Error(ErrorKind::corrupt,
                fmt::format("'{}' of '{}' ends behind the file",
                            index_.parts[m % index_.parts.size()], shown_key(index_, sample)),
                "the file was cut: copy it again from its source",
                {.file = in_memory ? facts_.path : files()[member.file]->path(),
                 .offset = member.offset,
                 .sample = sample});
  }
}

void MemberSet::tell_parts() {
  const std::size_t parts = index_.parts.size();
  facts_.stored.assign(parts, {.how = "in its file", .in_place = true});
  facts_.codecs = index_.codecs;
  bool in_files = true;
  for (std::uint64_t m = 0; m < index_.members.size(); ++m) {
    if (index_.members[m].file != Member::kInMemory) continue;
    facts_.stored[m % parts].how = "told by its name";
    in_files = false;
  }
  if (parts > 1 || !in_files) facts_.values = DataSetFacts::Values::in_parts;
  for (const Member& member : index_.members) {
    // As packed_parts.hpp lays them out.
    const std::uint64_t bytes = member.bytes + (parts > 1 ? 16 : 0);
    facts_.value_bytes += std::min(bytes, UINT64_MAX - facts_.value_bytes);
  }
  facts_.sample_bytes = facts_.entries > 0 ? facts_.value_bytes / facts_.entries : 0;
  facts_.key_bytes = index_.keys.size();
}

/// Members of the samples at each position.
class MemberPlan final : public Plan {
 public:
  MemberPlan(const MemberSet& data, std::span<const std::uint64_t> ids)
      : Plan(ids.size()), data_(data), ids_(ids.begin(), ids.end()) {
    for (const std::uint64_t id : ids_) {
      for (std::size_t p = 0; p < data_.index_.parts.size(); ++p) {
        const Member& one = member(id, p);
        if (one.file == Member::kInMemory || one.bytes == 0) continue;
        extents_.push_back({.file = one.file, .offset = one.offset, .length = one.bytes});
      }
    }
    join(extents_);
  }

  std::size_t units() const override { return 0; }
  void decode(std::size_t, const FileBytes&, std::span<std::byte>, DecodeSpace&) const override {}

  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte>) const override {
    const Member& one = member(ids_[position], part);
    if (one.bytes == 0) return {};
    if (one.file != Member::kInMemory) return bytes.at(one.file, one.offset, one.bytes);
    return std::as_bytes(std::span(data_.index_.memory)).subspan(one.offset, one.bytes);
  }

 private:
  const Member& member(std::uint64_t id, std::size_t part) const {
    return data_.index_.members[id * data_.index_.parts.size() + part];
  }

  const MemberSet& data_;
  std::vector<std::uint64_t> ids_;
};

std::unique_ptr<const Plan> MemberSet::plan(std::span<const std::uint64_t> ids) const {
  require_ids(ids);
  return std::make_unique<MemberPlan>(*this, ids);
}

}  // namespace forebay
