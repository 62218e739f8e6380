#include "format/convention/mapped_index.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forebay/packed_parts.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {
namespace {

// Samples whose parts are found before they are put together.
constexpr std::uint64_t kSamplesAtOnce = 1024;

/// The bytes of one file among those that were joined.
class BytesOfFile final : public ExtentBytes {
 public:
  BytesOfFile(const ExtentBytes& all, std::uint64_t begin) : all_(all), begin_(begin) {}
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const override {
    return all_.at(begin_ + offset, length);
  }

 private:
  const ExtentBytes& all_;
  std::uint64_t begin_;
};

}  // namespace

MappedIndex::MappedIndex(std::shared_ptr<const Convention> convention,
                         std::vector<IndexedRecords> databases)
    : convention_(std::move(convention)), databases_(std::move(databases)) {
  for (const DatabaseNote& note : convention_->databases()) {
    first_records_.push_back(note.first_record);
  }
}

void MappedIndex::check_range(std::uint64_t first, std::uint64_t count) const {
  if (first <= entries() && count <= entries() - first) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} samples from {} on leave the {} samples", count, first, entries()));
}

/// Calls use(database, first record of it, count), in order.
template <typename Use>
void MappedIndex::for_each_stretch(std::size_t part, std::uint64_t first, std::uint64_t count,
                                   Use&& use) {
  const RecordMap& records = convention_->parts()[part].records;
  records.for_each_run(first, count, [&](std::uint64_t record, std::uint64_t left) {
    while (left > 0) {
      const auto after = std::ranges::upper_bound(first_records_, record);
      const auto database = static_cast<std::size_t>(after - first_records_.begin()) - 1;
      const std::uint64_t inside = record - first_records_[database];
      const std::uint64_t here =
          std::min(left, convention_->databases()[database].records - inside);
      use(database, inside, here);
      record += here;
      left -= here;
    }
  });
}

void MappedIndex::extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) {
  check_range(first, count);
  for (std::size_t part = 0; part < convention_->parts().size(); ++part) {
    for_each_stretch(part, first, count,
                     [&](std::size_t database, std::uint64_t record, std::uint64_t records) {
                       const std::size_t before = out.size();
                       databases_[database].index->extents(record, records, out);
                       for (std::size_t i = before; i < out.size(); ++i) {
                         out[i].offset += databases_[database].begin;
                       }
                     });
  }
}

void MappedIndex::unpack_part(std::size_t part, std::uint64_t first, std::uint64_t count,
                              const ExtentBytes& bytes, const RecordSink& sink) {
  std::uint64_t sample = first;
  for_each_stretch(
      part, first, count, [&](std::size_t database, std::uint64_t record, std::uint64_t records) {
        const BytesOfFile of_file(bytes, databases_[database].begin);
        databases_[database].index->unpack(record, records, of_file, [&](const Record& found) {
          sink({.sample = sample++, .key = found.key, .value = found.value});
        });
      });
}

void MappedIndex::unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                         const RecordSink& sink) {
  check_range(first, count);
  if (!convention_->has_parts()) return unpack_part(0, first, count, bytes, sink);
  while (count > 0) {
    const std::uint64_t now = std::min(count, kSamplesAtOnce);
    unpack_parts(first, now, bytes, sink);
    first += now;
    count -= now;
  }
}

void MappedIndex::unpack_parts(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                               const RecordSink& sink) {
  const std::size_t parts = convention_->parts().size();
  keys_.resize(count * parts);
  values_.resize(count * parts);
  for (std::size_t part = 0; part < parts; ++part) {
    unpack_part(part, first, count, bytes, [&](const Record& record) {
      keys_[(record.sample - first) * parts + part] = record.key;
      values_[(record.sample - first) * parts + part] = record.value;
    });
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto values = std::span(values_).subspan(i * parts, parts);
    packed_.resize(packed_parts_bytes(values));
    pack_parts(values, packed_);
    sink({.sample = first + i,
          .key = common_key(first + i, std::span(keys_).subspan(i * parts, parts)),
          .value = packed_});
  }
}

/// What follows the prefixes, which are checked, and is the same in all parts.
MappedIndex::RecordSpan MappedIndex::common_key(std::uint64_t sample,
                                                std::span<const RecordSpan> keys) const {
  const auto parts = convention_->parts();
  const std::string_view first = key_text(keys[0]);
  const std::size_t skipped = std::min(parts[0].prefix.size(), first.size());
  const std::string_view rest = first.substr(skipped);
  for (std::size_t p = 0; p < keys.size(); ++p) {
    const std::string_view key = key_text(keys[p]);
    const bool has_prefix = key.starts_with(parts[p].prefix);
    const std::string_view mine = has_prefix ? key.substr(parts[p].prefix.size()) : key;
    if (has_prefix && mine == rest) continue;
    // Numbers may be padded differently.
    const auto number = numbered_key(rest);
    const auto my_number = numbered_key(mine);
    if (has_prefix && !parts[p].prefix.empty() && number && my_number && number->prefix.empty() &&
        my_number->prefix.empty() && number->number == my_number->number) {
      continue;
    }
    throw Error(
        ErrorKind::corrupt,
        fmt::format("the record has no partner {} in part '{}', where {} lies",
                    shown_key(parts[p].prefix + std::string(rest)), parts[p].name, shown_key(key)),
        "add or remove one of them",
        {.file = convention_->databases()[parts[p].first_database].path,
         .sample = sample,
         .key = shown_key(first)});
  }
  return keys[0].subspan(skipped);
}

bool MappedIndex::give_up() {
  bool first = true;
  for (const IndexedRecords& database : databases_) first = database.index->give_up() && first;
  return first;
}

std::uint64_t MappedIndex::memory_bytes() const {
  std::uint64_t bytes = convention_->memory_bytes();
  for (const IndexedRecords& database : databases_) bytes += database.index->memory_bytes();
  return bytes;
}

}  // namespace forebay::convention
