#include "format/member_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "forebay/error.hpp"

namespace forebay {

MemberSet::MemberSet(std::string path, std::string format, DataFiles files, MemberIndex index)
    : DataSet(std::move(path), std::move(format), std::move(files)), index_(std::move(index)) {
  facts_.entries = index_.entries();
  facts_.named = true;
  facts_.of_files = index_.of_files;
  facts_.notes = index_.notes;
  facts_.labels = index_.labels;
  if (index_.parts.size() > 1) facts_.parts = index_.parts;
  require_inside();
  tell_parts();
  if (index_.digest.empty()) {
    index_.digest = index_.whole_files
                        ? digest_of_sizes()
                        : forebay::ends_digest(this->files(), [&](const ByteSink& sink) {
                            keys([&](std::uint64_t, auto key) { sink(key); });
                          });
  }
  facts_.fingerprint = fmt::format("{}:samples={},files={},bytes={},parts={},ends={}",
                                   facts_.format, facts_.entries, this->files().size(),
                                   stored_bytes(), fmt::join(index_.parts, "+"), index_.digest);
}

std::string MemberSet::digest_of_sizes() const {
  std::string text;
  keys([&](std::uint64_t, std::span<const std::byte> key) {
    text.append(reinterpret_cast<const char*>(key.data()), key.size());
  });
  MemberRows rows(index_.table);
  std::vector<FoundPart> parts(index_.chosen.size());
  for (std::uint64_t sample = 0; sample < facts_.entries; ++sample) {
    take(rows.at(sample), sample, parts);
    for (const FoundPart& part : parts) text += fmt::format(",{}", part.member.bytes);
  }
  return digest_of(std::as_bytes(std::span(text)));
}

/// Which member it is that does not lie in its file is looked for only where there is one.
void MemberSet::require_inside() const {
  bool inside = index_.ends.size() <= files().size();
  for (std::uint32_t file = 0; inside && file < index_.ends.size(); ++file) {
    inside = index_.ends[file] <= bytes_at_open(file);
  }
  if (inside) return;
  MemberRows rows(index_.table);
  std::vector<FoundPart> parts(index_.chosen.size());
  for (std::uint64_t id = 0; id < facts_.entries; ++id) take(rows.at(id), id, parts);
}

void MemberSet::refuse(std::uint64_t sample, const std::string& key, const FoundPart& part) const {
  const Member& member = part.member;
  const bool in_file = member.file < files().size();
  throw Error(ErrorKind::corrupt,
              fmt::format("'{}' of '{}' ends behind the file", index_.found[part.part].name,
                          shown_name(key)),
              "the file was cut: copy it again from its source",
              {.file = in_file ? files()[member.file]->path() : facts_.path,
               .offset = member.offset,
               .sample = sample});
}

void MemberSet::take(const MemberRow& row, std::uint64_t sample, std::span<FoundPart> out) const {
  for (std::size_t p = 0; p < out.size(); ++p) {
    const auto found = std::ranges::find(row.parts, index_.chosen[p], &FoundPart::part);
    if (found == row.parts.end()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("'{}' has no part '{}'", shown_name(row.key), index_.parts[p]),
                  "the index in the user's cache is wrong: remove it",
                  {.file = facts_.path, .sample = sample});
    }
    out[p] = *found;
    Member& member = out[p].member;
    const bool in_memory = member.file == Member::kInMemory;
    if (!in_memory && member.file >= files().size()) refuse(sample, row.key, *found);
    const std::uint64_t size = in_memory ? index_.memory.size() : bytes_at_open(member.file);
    if (index_.whole_files && !in_memory) member.bytes = size;
    if (member.offset > size || member.bytes > size - member.offset) {
      refuse(sample, row.key, *found);
    }
  }
}

void MemberSet::tell_parts() {
  const std::size_t parts = index_.parts.size();
  facts_.stored.assign(parts, {.how = "in its file", .in_place = true});
  facts_.codecs = index_.codecs;
  facts_.decodes = index_.coding != nullptr;
  bool in_files = true;
  bool in_scratch = parts == 1;
  for (std::size_t p = 0; p < index_.chosen.size(); ++p) {
    const MemberIndex::Part& part = index_.found[index_.chosen[p]];
    if (part.in_memory > 0) {
      facts_.stored[p].how = "told by its name";
    } else if (part.coded > 0) {
      facts_.stored[p] = {.how = index_.coding->how(), .in_place = false};
    }
    in_files = in_files && part.in_memory == 0 && part.coded == 0;
    in_scratch = in_scratch && part.coded == part.samples;
    const bool whole = index_.whole_files && part.in_memory == 0;
    add_saturated(facts_.value_bytes, whole ? stored_bytes() : part.bytes);
    // As packed_parts.hpp lays them out.
    if (parts > 1) add_saturated(facts_.value_bytes, 16 * facts_.entries);
  }
  if (parts > 1 || !in_files) facts_.values = DataSetFacts::Values::in_parts;
  if (in_scratch && !in_files) facts_.values = DataSetFacts::Values::in_scratch;
  facts_.sample_bytes = facts_.entries > 0 ? facts_.value_bytes / facts_.entries : 0;
  facts_.key_bytes = index_.key_bytes;
}

void MemberSet::keys(const KeySink& sink) const {
  MemberRows rows(index_.table);
  for (std::uint64_t id = 0; id < index_.entries(); ++id) {
    sink(id, std::as_bytes(std::span(rows.at(id).key)));
  }
}

/// Members of the samples at each position; all parts of consecutive positions are decoded
/// together.
class MemberPlan final : public Plan {
 public:
  MemberPlan(const MemberSet& data, std::vector<std::uint64_t> ids)
      : Plan(ids.size()),
        data_(data),
        ids_(std::move(ids)),
        parts_(data_.index_.chosen.size()),
        found_(ids_.size() * parts_) {
    MemberRows rows(data_.index_.table);
    for (std::size_t at = 0; at < ids_.size(); ++at) {
      const MemberRow& row = rows.at(ids_[at]);
      keys_ += row.key;
      keys_end_.push_back(keys_.size());
      const auto parts = std::span(found_).subspan(at * parts_, parts_);
      data_.take(row, ids_[at], parts);
    }
    if (data_.index_.coding != nullptr) lay_out();
  }

  std::size_t units() const override { return unit_ends_.size(); }
  void decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte> scratch,
              DecodeSpace&) const override {
    for (std::size_t at = unit == 0 ? 0 : unit_ends_[unit - 1]; at < unit_ends_[unit]; ++at) {
      for (std::size_t p = 0; p < parts_; ++p) {
        if (found(at, p).member.file == Member::kInMemory) continue;
        with_place(at, p, [&] { decode_part(at, p, bytes, scratch); });
      }
    }
  }

  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte> scratch) const override {
    if (parts_ == 0) return {};
    const Member& one = found(position, part).member;
    if (one.bytes == 0) return {};
    if (one.file == Member::kInMemory) {
      return std::as_bytes(std::span(data_.index_.memory)).subspan(one.offset, one.bytes);
    }
    if (data_.index_.coding == nullptr) return stored(one, bytes);
    const CodedPart& coded = found(position, part).coded;
    if (!coded.in_place) return scratch.subspan(places_[position * parts_ + part], coded.bytes);
    return data_.index_.coding->content(stored(one, bytes), coded);
  }

  std::span<const std::byte> key(std::size_t position, const FileBytes&) const override {
    const std::string_view name = name_of(position);
    return std::as_bytes(std::span(name.data(), name.size()));
  }

 private:
  // Whoever uses the files where they are mapped does not need them.
  void find_extents() const override {
    std::call_once(extents_found_, [this] {
      for (const FoundPart& part : found_) {
        const Member& one = part.member;
        if (one.file == Member::kInMemory || one.bytes == 0) continue;
        extents_.push_back({.file = one.file, .offset = one.offset, .length = one.bytes});
      }
      join(extents_);
    });
  }

  // Enough for a thread to be worth waking.
  static constexpr std::uint64_t kUnitBytes = std::uint64_t{256} << 10;
  // Decoded parts start where vector instructions like it.
  static constexpr std::uint64_t kAlignment = 64;

  const FoundPart& found(std::size_t position, std::size_t part) const {
    return found_[position * parts_ + part];
  }

  static std::span<const std::byte> stored(const Member& one, const FileBytes& bytes) {
    return bytes.at(one.file, one.offset, one.bytes);
  }

  /// Where what is decoded goes, and what makes a unit.
  void lay_out() {
    places_.reserve(ids_.size() * parts_);
    std::uint64_t unit = 0;
    for (std::size_t at = 0; at < ids_.size(); ++at) {
      for (std::size_t p = 0; p < parts_; ++p) {
        const CodedPart& coded = found(at, p).coded;
        places_.push_back(scratch_bytes_);
        unit += coded.bytes;
        if (coded.in_place) continue;
        if (coded.bytes > UINT64_MAX / 4 - scratch_bytes_) {
          throw Error(ErrorKind::usage, "so many samples do not fit into memory",
                      "read fewer at a time", {.file = data_.facts().path});
        }
        scratch_bytes_ += (coded.bytes + kAlignment - 1) / kAlignment * kAlignment;
      }
      if (unit < kUnitBytes && at + 1 < ids_.size()) continue;
      unit_ends_.push_back(at + 1);
      unit = 0;
    }
  }

  void decode_part(std::size_t position, std::size_t part, const FileBytes& bytes,
                   std::span<std::byte> scratch) const {
    const FoundPart& one = found(position, part);
    const std::uint64_t size = one.coded.in_place ? 0 : one.coded.bytes;
    data_.index_.coding->decode(stored(one.member, bytes), one,
                                scratch.subspan(places_[position * parts_ + part], size));
    if (size == 0) return;
    data_.decoded_.fetch_add(1, std::memory_order_relaxed);
    data_.bytes_decoded_.fetch_add(size, std::memory_order_relaxed);
  }

  std::string_view name_of(std::size_t position) const {
    const std::size_t begin = position == 0 ? 0 : keys_end_[position - 1];
    return std::string_view(keys_).substr(begin, keys_end_[position] - begin);
  }

  template <typename Work>
  void with_place(std::size_t position, std::size_t part, Work&& work) const {
    try {
      work();
    } catch (const Error& error) {
      const Member& one = found(position, part).member;
      const std::string name = data_.index_.parts[part];
      throw Error(error.kind(),
                  fmt::format("{}of '{}': {}", name.empty() ? "" : fmt::format("'{}' ", name),
                              shown_name(name_of(position)), error.happened()),
                  error.remedy(),
                  {.file = data_.files()[one.file]->path(),
                   .offset = one.offset,
                   .sample = ids_[position]});
    }
  }

  const MemberSet& data_;
  mutable std::once_flag extents_found_;
  std::vector<std::uint64_t> ids_;
  std::size_t parts_;
  std::vector<FoundPart> found_;  // of each position
  std::string keys_;
  std::vector<std::size_t> keys_end_;
  std::vector<std::uint64_t> places_;   // in scratch, of each position's parts
  std::vector<std::size_t> unit_ends_;  // positions
};

std::unique_ptr<const Plan> MemberSet::plan_runs(std::span<const IdRun> runs) const {
  return std::make_unique<MemberPlan>(*this, ids_of(runs));
}

}  // namespace forebay
