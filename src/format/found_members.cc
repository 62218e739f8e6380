// What a walk through archives finds, and which parts of it a data set has.
#include "format/member_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::size_t kMostParts = 64;

// Of webdataset's own decoders: parts of these names are numbers as text.
constexpr std::array<std::string_view, 7> kNumbers = {"cls",   "cls2", "class", "count",
                                                      "index", "inx",  "id"};

// Those of torchvision.datasets.folder.IMG_EXTENSIONS, and GIF's, which decodes as well.
constexpr std::array<std::string_view, 10> kImages = {"jpg", "jpeg", "png",  "ppm",  "bmp",
                                                      "pgm", "tif",  "tiff", "webp", "gif"};

constexpr std::array<std::string_view, 6> kLeftBehind = {
    "__MACOSX", ".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", ".ipynb_checkpoints"};

/// By what the part is called: "seg.png" is an image. What is in memory are labels out of names.
std::string_view codec_of(const MemberIndex::Part& part) {
  if (part.in_memory > 0 || std::ranges::count(kNumbers, part.name) > 0) return "number";
  const std::string_view extension = std::string_view(part.name).substr(part.name.rfind('.') + 1);
  return part.images || std::ranges::count(kImages, extension) > 0 ? "image" : "auto";
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<MemberName> split_member_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == name.size()) return std::nullopt;
  MemberName split{.sample = name.substr(0, dot), .part = std::string(name.substr(dot + 1))};
  std::ranges::transform(split.part, split.part.begin(), small);
  return split;
}

bool is_image_name(std::string_view name) {
  const std::size_t base = name.rfind('/') + 1;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot <= base) return false;
  std::string extension(name.substr(dot + 1));
  std::ranges::transform(extension, extension.begin(), small);
  return std::ranges::find(kImages, extension) != kImages.end();
}

bool is_left_behind(std::string_view name) {
  return std::ranges::count(kLeftBehind, name) > 0 || name.starts_with("._");
}

bool is_no_data(std::string_view name) { return name.starts_with('.') || is_left_behind(name); }

bool is_hidden_member(std::string_view path) {
  if (path.empty()) return true;
  while (!path.empty()) {
    const std::string_view step = path.substr(0, path.find('/'));
    if (is_no_data(step) && step != "." && step != "..") return true;
    path.remove_prefix(std::min(path.size(), step.size() + 1));
  }
  return false;
}

bool LeftOutMembers::add(std::string_view name) {
  if (count_++ == 0) first_ = name;
  return true;
}

void LeftOutMembers::tell(const char* text, FoundMembers& found) const {
  if (count_ > 0) found.note(fmt::format(fmt::runtime(text), count_, shown_name(first_)));
}

void FoundMembers::begin_sample(std::string_view key) {
  found_.table.begin_sample(key);
  found_.key_bytes += key.size();
  key_ = key;
  has_.clear();
}

void FoundMembers::note(std::string text) {
  constexpr std::size_t kMostNotes = 8;
  if (found_.notes.size() < kMostNotes) found_.notes.push_back(std::move(text));
}

void FoundMembers::set_coding(const MemberCoding* coding) {
  found_.coding = coding;
  found_.table = MemberTable(coding != nullptr);
}

void FoundMembers::set_digest(std::span<const std::shared_ptr<const File>> files) {
  found_.digest = ends_digest(files, [&](const ByteSink& sink) {
    MemberRows rows(found_.table);
    for (std::uint64_t sample = 0; sample < samples(); ++sample) {
      sink(std::as_bytes(std::span(rows.at(sample).key)));
    }
  });
}

std::uint32_t FoundMembers::part_number(std::string_view name) {
  const auto number = static_cast<std::uint32_t>(found_.found.size());
  const auto [at, is_new] = numbers_.try_emplace(std::string(name), number);
  if (is_new) found_.found.push_back({.name = std::string(name)});
  return at->second;
}

void FoundMembers::add(std::string_view name, const Member& member, const CodedPart& coded) {
  const std::uint32_t number = part_number(name);
  if (std::ranges::find(has_, number) != has_.end()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("'{}' has '{}' twice", shown_name(key_), shown_name(name)),
                "give each member a name of its own");
  }
  has_.push_back(number);
  found_.table.add({.part = number, .member = member, .coded = coded});
  MemberIndex::Part& part = found_.found[number];
  const bool in_memory = member.file == Member::kInMemory;
  const bool is_coded = found_.coding != nullptr && !in_memory;
  ++part.samples;
  if (in_memory) ++part.in_memory;
  if (is_coded && !coded.in_place) ++part.coded;
  add_saturated(part.bytes, is_coded ? coded.bytes : member.bytes);
  if (in_memory || found_.whole_files) return;
  if (found_.ends.size() <= member.file) found_.ends.resize(member.file + std::size_t{1});
  std::uint64_t end = member.offset;
  add_saturated(end, member.bytes);
  found_.ends[member.file] = std::max(found_.ends[member.file], end);
}

void FoundMembers::add_in_memory(std::string_view part, std::string_view content) {
  const Member member{
      .offset = found_.memory.size(), .bytes = content.size(), .file = Member::kInMemory};
  found_.memory += content;
  add(part, member);
}

void FoundMembers::end_file() {
  found_.of_files.push_back(samples() - first_of_file_);
  first_of_file_ = samples();
}

void FoundMembers::append(const FoundMembers& others) {
  MemberRows rows(others.found_.table);
  std::uint64_t sample = 0;
  for (const std::uint64_t samples : others.found_.of_files) {
    for (const std::uint64_t end = sample + samples; sample < end; ++sample) {
      const MemberRow& row = rows.at(sample);
      begin_sample(row.key);
      for (const FoundPart& part : row.parts) {
        add(others.found_.found.at(part.part).name, part.member, part.coded);
      }
    }
    end_file();
  }
  for (const std::string& text : others.found_.notes) note(text);
}

void FoundMembers::write(ByteWriter& out) const {
  const auto text = [&](const std::string& one) { out.block(bytes_of(one)); };
  text(found_.digest);
  out.varint(found_.key_bytes);
  out.varint(found_.found.size());
  for (const MemberIndex::Part& part : found_.found) {
    text(part.name);
    out.varint(part.samples);
    out.varint(part.bytes);
  }
  for (const auto* numbers : {&found_.ends, &found_.of_files}) {
    out.varint(numbers->size());
    for (const std::uint64_t number : *numbers) out.varint(number);
  }
  out.varint(found_.notes.size());
  for (const std::string& note : found_.notes) text(note);
  found_.table.write(out);
}

FoundMembers FoundMembers::read(ByteReader& in, std::uint64_t files) {
  const auto text = [&] { return std::string(chars_of(in.block())); };
  FoundMembers all;
  MemberIndex& found = all.found_;
  found.digest = text();
  found.key_bytes = in.varint();
  for (std::uint64_t left = in.varint(in.rest().size()); left > 0; --left) {
    MemberIndex::Part& part = found.found.emplace_back();
    part.name = text();
    part.samples = in.varint();
    part.bytes = in.varint();
    all.numbers_.emplace(part.name, static_cast<std::uint32_t>(found.found.size() - 1));
  }
  for (auto* numbers : {&found.ends, &found.of_files}) {
    numbers->resize(in.varint(std::min<std::uint64_t>(files, in.rest().size())));
    for (std::uint64_t& number : *numbers) number = in.varint();
  }
  for (std::uint64_t left = in.varint(in.rest().size()); left > 0; --left) all.note(text());
  found.table = MemberTable::read(in);
  in.end();
  std::uint64_t rest = all.samples();
  for (const std::uint64_t samples : found.of_files) {
    if (samples > rest) throw Error(ErrorKind::corrupt, "its files have more samples than it has");
    rest -= samples;
  }
  return all;
}

std::vector<std::uint32_t> FoundMembers::common_parts(const std::string& text) {
  std::vector<std::uint32_t> common;
  std::vector<std::string> others;
  for (std::uint32_t p = 0; p < found_.found.size(); ++p) {
    const MemberIndex::Part& part = found_.found[p];
    if (part.samples == samples()) {
      common.push_back(p);
    } else {
      others.push_back(
          fmt::format("{} ({} of {})", shown_name(part.name), part.samples, samples()));
    }
  }
  if (common.empty()) {
    throw Error(
        ErrorKind::usage, fmt::format("no part is in every sample: {}", fmt::join(others, ", ")),
        "repack the samples, or name what is in all of them: FILES#NAME,NAME", {.file = text});
  }
  if (!others.empty()) {
    // Before all others, of which there may be more than are told.
    found_.notes.insert(
        found_.notes.begin(),
        fmt::format(
            "left out, since not every sample has them: {}; choose parts by FILES#NAME,NAME",
            fmt::join(others, ", ")));
  }
  return common;
}

std::uint32_t FoundMembers::chosen_part(const FieldChoice& choice, const std::string& text) const {
  const auto at = numbers_.find(choice.stored);
  if (at == numbers_.end()) {
    std::vector<std::string> names;
    for (const MemberIndex::Part& part : found_.found) names.push_back(part.name);
    throw Error(ErrorKind::not_found, fmt::format("there is no part '{}'", choice.stored),
                fmt::format("there are {}", fmt::join(names, ", ")), {.file = text});
  }
  const std::uint64_t have = found_.found[at->second].samples;
  if (have == samples()) return at->second;
  MemberRows rows(found_.table);
  std::uint64_t sample = 0;
  while (sample + 1 < samples() &&
         std::ranges::count(rows.at(sample).parts, at->second, &FoundPart::part) > 0) {
    ++sample;
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("{} of {} samples have no part '{}'; the first is '{}'", samples() - have,
                          samples(), choice.stored, shown_name(rows.at(sample).key)),
              "repack them, or name parts that all samples have", {.file = text, .sample = sample});
}

void FoundMembers::require_samples(const std::string& text) const {
  if (samples() > 0) return;
  const std::string others = fmt::format("{}", fmt::join(found_.notes, "; "));
  throw Error(ErrorKind::not_found,
              "the archive holds no sample" + (others.empty() ? others : ": " + others),
              "check the path, and how it was packed", {.file = text});
}

MemberIndex FoundMembers::choose(std::span<const FieldChoice> choices, const std::string& text) && {
  std::vector<std::uint32_t> chosen;
  for (const FieldChoice& choice : choices) chosen.push_back(chosen_part(choice, text));
  if (choices.empty() && samples() > 0) chosen = common_parts(text);
  if (chosen.size() > kMostParts) {
    throw Error(ErrorKind::usage, fmt::format("samples have {} parts", chosen.size()),
                fmt::format("name at most {}: FILES#NAME,NAME", kMostParts), {.file = text});
  }
  MemberIndex index = std::move(found_);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const MemberIndex::Part& part = index.found[chosen[c]];
    const bool renamed = c < choices.size() && !choices[c].name.empty();
    const std::string name = renamed ? choices[c].name : field_name(part.name);
    const bool again = std::ranges::count(index.chosen, chosen[c]) > 0;
    if (again || std::ranges::count(index.parts, name) > 0) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is named twice", name), "name it once",
                  {.file = text});
    }
    index.chosen.push_back(chosen[c]);
    index.parts.push_back(name);
    index.codecs.emplace_back(codec_of(part));
  }
  if (index.parts.empty()) {
    index.parts.emplace_back();
    index.codecs.emplace_back("auto");
  }
  return index;
}

}  // namespace forebay
