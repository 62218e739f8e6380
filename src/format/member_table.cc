#include "format/member_table.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

// A part's code: 0 stands for the next sample, so it begins at 1.
constexpr std::uint64_t kNewSample = 0;
constexpr unsigned kKindBits = 2;
constexpr unsigned kInPlaceBit = 1U << kKindBits;
constexpr unsigned kPartShift = kKindBits + 1;

[[noreturn]] void refuse(const char* text) { throw Error(ErrorKind::corrupt, text); }

}  // namespace

void MemberTable::begin_sample(std::string_view key) {
  if (samples_++ % kBlock == 0) {
    begins_.push_back(blocks_.size());
    last_key_.clear();
    last_ = {};
  }
  const auto most = std::min(key.size(), last_key_.size());
  const auto [mine, other] = std::mismatch(key.begin(), key.begin() + most, last_key_.begin());
  const auto shared = static_cast<std::size_t>(mine - key.begin());
  blocks_.varint(kNewSample);
  blocks_.varint(shared);
  blocks_.block(bytes_of(key.substr(shared)));
  last_key_ = key;
}

void MemberTable::add(const FoundPart& part) {
  const Member& member = part.member;
  Kind kind = other_file;
  if (member.file == Member::kInMemory) {
    kind = in_memory;
  } else if (member.file == last_.file) {
    kind = same_file;
  } else if (member.file == last_.file + 1) {
    kind = next_file;
  }
  const std::uint64_t in_place = part.coded.in_place ? kInPlaceBit : 0;
  blocks_.varint(1 + (std::uint64_t{part.part} << kPartShift | in_place | kind));
  if (kind == other_file) blocks_.varint(member.file);
  if (kind == in_memory) {
    blocks_.varint(member.offset);
    blocks_.varint(member.bytes);
    return;
  }
  blocks_.difference(member.offset - (kind == same_file ? last_.end : 0));
  blocks_.varint(member.bytes);
  last_ = {.end = member.offset + member.bytes, .file = member.file};
  if (!coded_) return;
  blocks_.number(member.checksum);
  blocks_.difference(part.coded.bytes - member.bytes);
}

void MemberTable::write(ByteWriter& out) const {
  out.varint(samples_);
  out.raw(std::as_bytes(std::span(begins_)));
  out.block(blocks_.bytes());
}

MemberTable MemberTable::read(ByteReader& in) {
  MemberTable table;
  table.samples_ = in.varint();
  const std::uint64_t blocks = table.samples_ / kBlock + (table.samples_ % kBlock != 0 ? 1 : 0);
  if (blocks > in.rest().size() / sizeof(std::uint64_t))
    refuse("it has fewer samples than it says");
  table.begins_.resize(blocks);
  const auto begins = in.raw(blocks * sizeof(std::uint64_t));
  if (blocks > 0) std::memcpy(table.begins_.data(), begins.data(), begins.size());
  table.blocks_.raw(in.block());
  return table;
}

const MemberRow& MemberRows::at(std::uint64_t sample) {
  if (sample + 1 == next_) return row_;
  if (sample < next_ || sample >= end_) go_to(sample / MemberTable::kBlock);
  while (next_ <= sample) read_sample();
  return row_;
}

void MemberRows::go_to(std::uint64_t block) {
  const auto& begins = table_.begins_;
  const auto bytes = table_.blocks_.bytes();
  const std::uint64_t begin = begins[block];
  const std::uint64_t end = block + 1 < begins.size() ? begins[block + 1] : bytes.size();
  if (begin > end || end > bytes.size()) refuse("a block of samples lies outside of it");
  rest_ = ByteReader(bytes.subspan(begin, end - begin));
  next_ = block * MemberTable::kBlock;
  end_ = std::min(next_ + MemberTable::kBlock, table_.samples_);
  last_ = {};
  row_.key.clear();
}

void MemberRows::read_sample() {
  // So that what fails half-way is not taken for a sample.
  const std::uint64_t sample = std::exchange(next_, std::numeric_limits<std::uint64_t>::max());
  if (rest_.varint() != kNewSample) refuse("a sample begins nowhere");
  row_.key.resize(rest_.varint(row_.key.size()));
  row_.key += chars_of(rest_.block());
  row_.parts.clear();
  while (!rest_.rest().empty() && rest_.rest()[0] != std::byte{kNewSample}) {
    read_part(rest_.varint() - 1);
  }
  next_ = sample + 1;
}

void MemberRows::read_part(std::uint64_t code) {
  constexpr std::uint64_t kMostFile = std::numeric_limits<std::uint32_t>::max() - 1;
  const auto kind = static_cast<MemberTable::Kind>(code & ((1U << kKindBits) - 1));
  if (code >> kPartShift > kMostFile) refuse("a part has no name");
  FoundPart& part = row_.parts.emplace_back();
  part.part = static_cast<std::uint32_t>(code >> kPartShift);
  Member& member = part.member;
  if (kind == MemberTable::in_memory) {
    member.file = Member::kInMemory;
    member.offset = rest_.varint();
    member.bytes = rest_.varint();
    return;
  }
  member.file = last_.file;
  if (kind == MemberTable::next_file && last_.file < kMostFile) ++member.file;
  if (kind == MemberTable::other_file) {
    member.file = static_cast<std::uint32_t>(rest_.varint(kMostFile));
  }
  member.offset = (kind == MemberTable::same_file ? last_.end : 0) + rest_.difference();
  member.bytes = rest_.varint();
  last_ = {.end = member.offset + member.bytes, .file = member.file};
  if (!table_.coded_) return;
  part.coded.in_place = (code & kInPlaceBit) != 0;
  member.checksum = rest_.number<std::uint32_t>();
  part.coded.bytes = member.bytes + rest_.difference();
}

}  // namespace forebay
