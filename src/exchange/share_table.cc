#include "exchange/share_table.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "comm/messages.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kBlock = 64;
constexpr std::uint64_t kNarrow = 0;
constexpr std::uint64_t kWide = 1;

std::uint64_t blocks_of(std::uint64_t bounds) { return (bounds + kBlock - 1) / kBlock; }

std::uint64_t narrow_bytes(std::uint64_t bounds) {
  const std::uint64_t small = bounds * sizeof(std::uint32_t);
  return sizeof(kNarrow) + blocks_of(bounds) * sizeof(std::uint64_t) + (small + 7) / 8 * 8;
}

std::uint64_t wide_bytes(std::uint64_t bounds) { return sizeof(kWide) + bounds * 8; }

std::uint64_t bound_of(std::span<const std::uint64_t> ends, std::uint64_t number) {
  return number == 0 ? 0 : ends[number - 1];
}

bool fits_narrow(std::span<const std::uint64_t> ends) {
  for (std::uint64_t first = 0; first <= ends.size(); first += kBlock) {
    const std::uint64_t last = std::min<std::uint64_t>(first + kBlock - 1, ends.size());
    const std::uint64_t span = bound_of(ends, last) - bound_of(ends, first);
    if (span > std::numeric_limits<std::uint32_t>::max()) return false;
  }
  return true;
}

}  // namespace

std::uint64_t encoded_table_bytes(std::span<const std::uint64_t> ends) {
  const std::uint64_t bounds = ends.size() + 1;
  return fits_narrow(ends) ? narrow_bytes(bounds) : wide_bytes(bounds);
}

void encode_table(std::span<const std::uint64_t> ends, std::span<std::byte> to) {
  if (!fits_narrow(ends)) {
    put_value(to, kWide);
    for (std::uint64_t i = 0; i <= ends.size(); ++i) put_value(to, bound_of(ends, i));
    return;
  }
  put_value(to, kNarrow);
  for (std::uint64_t i = 0; i <= ends.size(); i += kBlock) put_value(to, bound_of(ends, i));
  for (std::uint64_t i = 0; i <= ends.size(); ++i) {
    const std::uint64_t above = bound_of(ends, i / kBlock * kBlock);
    put_value(to, static_cast<std::uint32_t>(bound_of(ends, i) - above));
  }
}

ShareTable ShareTable::fixed(std::uint64_t samples, std::uint64_t sample_bytes) {
  ShareTable table;
  table.samples_ = samples;
  table.sample_bytes_ = sample_bytes;
  return table;
}

ShareTable ShareTable::over(std::span<const std::byte> encoded, std::uint64_t samples) {
  const std::uint64_t bounds = samples + 1;
  std::uint64_t form = kNarrow;
  if (encoded.size() >= sizeof(form)) std::memcpy(&form, encoded.data(), sizeof(form));
  const std::uint64_t needed = form == kWide ? wide_bytes(bounds) : narrow_bytes(bounds);
  if (form > kWide || encoded.size() != needed) {
    throw Error(ErrorKind::communication, "a table of samples from another rank is damaged",
                "this is a fault of Forebay: please report it");
  }
  ShareTable table;
  table.samples_ = samples;
  table.form_ = form == kWide ? Form::wide : Form::narrow;
  const std::uint64_t large = form == kWide ? bounds : blocks_of(bounds);
  const std::byte* const begin = encoded.data() + sizeof(form);
  table.bounds_ = {reinterpret_cast<const std::uint64_t*>(begin), large};
  if (form == kNarrow) {
    table.from_above_ = {
        reinterpret_cast<const std::uint32_t*>(begin + large * sizeof(std::uint64_t)), bounds};
  }
  return table;
}

std::uint64_t ShareTable::bound(std::uint64_t number) const {
  if (form_ == Form::wide) return bounds_[number];
  return bounds_[number / kBlock] + from_above_[number];
}

ShareTable::Place ShareTable::at(std::uint64_t index) const {
  if (form_ == Form::fixed) return {index * sample_bytes_, sample_bytes_};
  const std::uint64_t begin = bound(index);
  return {begin, bound(index + 1) - begin};
}

}  // namespace forebay
