#include "format/field_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "forebay/error.hpp"

namespace forebay {
namespace {

// Decoded fields start where vector instructions like it.
constexpr std::uint64_t kAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool ascend(std::span<const std::uint64_t> ids) {
  return std::ranges::adjacent_find(ids, std::greater_equal{}) == ids.end();
}

/// Whether the fields of each row lie one behind the other, in place.
bool lies_as_delivered(const SamplePart& part) {
  const std::vector<PartField>& fields = part.fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (!fields[f].storage->in_place() || !fields[f].storage->in_file()) return false;
    if (f == 0) continue;
    const auto* before = fields[f - 1].storage->layout();
    const auto* layout = fields[f].storage->layout();
    if (before == nullptr || layout == nullptr || before->row_bytes == 0 ||
        layout->row_bytes == 0 || fields[f].file != fields[f - 1].file ||
        layout->stride != before->stride || layout->first != before->first + before->row_bytes) {
      return false;
    }
  }
  return true;
}

/// Throws corrupt when a sample would have more bytes than numbers can tell.
std::uint64_t sample_bytes_of(const Schema& schema, const std::string& path) {
  std::uint64_t bytes = 0;
  for (const Field& field : schema.fields) {
    if (field.bytes() > UINT64_MAX / 4 - bytes) {
      throw Error(ErrorKind::corrupt, "the files claim samples of more than 2^62 bytes",
                  "check the files", {.file = path});
    }
    bytes += field.bytes();
  }
  return bytes;
}

}  // namespace

FieldSet::FieldSet(std::string path, std::string format, Schema schema, DataFiles files,
                   std::vector<SamplePart> parts, std::vector<std::string> notes)
    : DataSet(std::move(path), std::move(format), std::move(files)),
      parts_(std::move(parts)),
      first_{0} {
  facts_.schema = std::move(schema);
  facts_.notes = std::move(notes);
  facts_.sample_bytes = sample_bytes_of(facts_.schema, facts_.path);
  for (const SamplePart& part : parts_) {
    if (part.rows > UINT64_MAX / 2 - first_.back()) {
      throw Error(ErrorKind::corrupt, "the files claim more than 2^63 samples", "check the files",
                  {.file = facts_.path});
    }
    first_.push_back(first_.back() + part.rows);
  }
  facts_.entries = first_.back();
  facts_.of_files = samples_of_files();
  // Files whose rows were never written may promise more than numbers can tell.
  const bool absurd = facts_.sample_bytes > 0 && facts_.entries > UINT64_MAX / facts_.sample_bytes;
  facts_.value_bytes = absurd ? UINT64_MAX : facts_.entries * facts_.sample_bytes;
  tell_storage();
  facts_.fingerprint =
      fmt::format("{}:samples={},files={},bytes={},fields={},ends={}", facts_.format,
                  facts_.entries, this->files().size(), stored_bytes(), to_string(facts_.schema),
                  ends_digest(std::as_bytes(std::span(first_))));
}

/// Nothing where a sample is spread over files, or files are not in the order of samples.
std::vector<std::uint64_t> FieldSet::samples_of_files() const {
  std::vector<std::uint64_t> samples(files().size());
  std::uint32_t last = 0;
  for (const SamplePart& part : parts_) {
    for (const PartField& field : part.fields) {
      if (field.file < last || field.file != part.fields[0].file) return {};
      last = field.file;
    }
    samples[last] += part.rows;
  }
  return samples;
}

void FieldSet::tell_storage() {
  bool all_decoded = true;
  for (std::size_t f = 0; f < facts_.schema.fields.size(); ++f) {
    StoredPart& stored = facts_.stored.emplace_back();
    if (!parts_.empty()) stored.how = parts_[0].fields[f].storage->describe();
    for (const SamplePart& part : parts_) {
      const FieldStorage& storage = *part.fields[f].storage;
      stored.in_place = stored.in_place && storage.in_place();
      all_decoded = all_decoded && !storage.in_place();
      facts_.together = std::max(facts_.together, storage.rows_together());
    }
    facts_.decodes = facts_.decodes || !stored.in_place;
  }
  if (std::ranges::all_of(parts_, lies_as_delivered)) {
    facts_.values = DataSetFacts::Values::in_file;
  } else if (facts_.schema.fields.size() == 1 && all_decoded) {
    facts_.values = DataSetFacts::Values::in_scratch;
  } else {
    facts_.values = DataSetFacts::Values::in_parts;
  }
}

void FieldSet::check_files(const std::function<void(const Error&)>& sink) const {
  for (const SamplePart& part : parts_) {
    for (const PartField& field : part.fields) {
      const File& file = *files()[field.file];
      try {
        field.storage->check(file);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::corrupt) throw;
        sink(error.within({.file = file.path()}));
      }
    }
  }
}

DecodeCounters FieldSet::counters() const {
  return {.chunks = chunks_.load(std::memory_order_relaxed),
          .bytes_decoded = bytes_decoded_.load(std::memory_order_relaxed)};
}

/// Ids become ascending rows of each part, rows become extents and units.
class FieldPlan final : public Plan {
 public:
  FieldPlan(const FieldSet& data, std::span<const std::uint64_t> ids);

  std::size_t units() const override { return units_.size(); }
  void decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte> scratch,
              DecodeSpace& space) const override;
  std::span<const std::byte> part(std::size_t position, std::size_t field, const FileBytes& bytes,
                                  std::span<const std::byte> scratch) const override;

 private:
  // The rows that are needed of one part; their slots follow each other over the parts.
  struct PartRows {
    std::size_t part = 0;
    std::uint64_t first_slot = 0;
    std::vector<std::uint64_t> rows;          // of the part, ascending, each once
    std::vector<std::uint64_t> scratch = {};  // where each field starts; kInPlace
  };
  struct Unit {
    std::size_t part_rows = 0;
    std::size_t field = 0;
    DecodeUnit rows;
  };
  static constexpr std::uint64_t kInPlace = UINT64_MAX;

  void add_part(std::size_t part, std::span<const std::uint64_t> ids);
  void add_fields(PartRows& rows);
  std::uint64_t slot_of(std::size_t position) const {
    return slots_.empty() ? position : slots_[position];
  }

  const FieldSet& data_;
  std::vector<std::uint64_t> slots_;  // of each position; empty: ids ascend, and it is the position
  std::vector<PartRows> parts_;
  std::vector<Unit> units_;
};

std::unique_ptr<const Plan> FieldSet::plan_runs(std::span<const IdRun> runs) const {
  return std::make_unique<FieldPlan>(*this, ids_of(runs));
}

FieldPlan::FieldPlan(const FieldSet& data, std::span<const std::uint64_t> ids)
    : Plan(ids.size()), data_(data) {
  std::vector<std::uint64_t> sorted;
  std::span<const std::uint64_t> rest = ids;
  if (!ascend(ids)) {
    sorted.assign(ids.begin(), ids.end());
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    slots_.reserve(ids.size());
    for (const std::uint64_t id : ids) {
      slots_.push_back(std::ranges::lower_bound(sorted, id) - sorted.begin());
    }
    rest = sorted;
  }
  const auto& first = data_.first_;
  while (!rest.empty()) {
    // The last part that begins at or before the id; empty parts begin where their follower does.
    const auto after = std::ranges::upper_bound(first, rest.front());
    const auto part = static_cast<std::size_t>(after - first.begin()) - 1;
    const auto end = std::ranges::lower_bound(rest, first[part + 1]);
    add_part(part, rest.first(static_cast<std::size_t>(end - rest.begin())));
    rest = rest.subspan(static_cast<std::size_t>(end - rest.begin()));
  }
  join(extents_);
}

void FieldPlan::add_part(std::size_t part, std::span<const std::uint64_t> ids) {
  PartRows rows{.part = part, .first_slot = 0, .rows = {ids.begin(), ids.end()}};
  if (!parts_.empty()) rows.first_slot = parts_.back().first_slot + parts_.back().rows.size();
  for (std::uint64_t& row : rows.rows) row -= data_.first_[part];
  add_fields(rows);
  parts_.push_back(std::move(rows));
}

void FieldPlan::add_fields(PartRows& rows) {
  const SamplePart& part = data_.parts_[rows.part];
  std::vector<DecodeUnit> units;
  for (std::size_t f = 0; f < part.fields.size(); ++f) {
    const FieldStorage& storage = *part.fields[f].storage;
    storage.extents(rows.rows, part.fields[f].file, extents_);
    if (storage.in_place()) {
      rows.scratch.push_back(kInPlace);
      continue;
    }
    units.clear();
    storage.units(rows.rows, units);
    for (const DecodeUnit& unit : units) {
      units_.push_back({.part_rows = parts_.size(), .field = f, .rows = unit});
    }
    rows.scratch.push_back(scratch_bytes_);
    const std::uint64_t row_bytes = data_.facts().schema.fields[f].bytes();
    if (row_bytes > (UINT64_MAX / 2 - scratch_bytes_ - kAlignment) / rows.rows.size()) {
      throw Error(ErrorKind::usage, "so many samples do not fit into memory",
                  "read fewer at a time", {.file = data_.facts().path});
    }
    scratch_bytes_ += aligned(rows.rows.size() * row_bytes);
  }
}

void FieldPlan::decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte> scratch,
                       DecodeSpace& space) const {
  const Unit& work = units_[unit];
  const PartRows& rows = parts_[work.part_rows];
  const PartField& field = data_.parts_[rows.part].fields[work.field];
  const std::uint64_t row_bytes = data_.facts().schema.fields[work.field].bytes();
  const auto out = scratch.subspan(rows.scratch[work.field], rows.rows.size() * row_bytes);
  try {
    const std::uint64_t decoded =
        field.storage->decode(work.rows, rows.rows, field.file, bytes, out, space);
    if (decoded == 0) return;
    data_.chunks_.fetch_add(1, std::memory_order_relaxed);
    data_.bytes_decoded_.fetch_add(decoded, std::memory_order_relaxed);
  } catch (const Error& error) {
    throw error.within({.file = data_.files()[field.file]->path(),
                        .sample = data_.first_[rows.part] + rows.rows[work.rows.first]});
  }
}

std::span<const std::byte> FieldPlan::part(std::size_t position, std::size_t field,
                                           const FileBytes& bytes,
                                           std::span<const std::byte> scratch) const {
  const std::uint64_t slot = slot_of(position);
  const auto after = std::ranges::upper_bound(parts_, slot, {}, &PartRows::first_slot);
  const PartRows& rows = *(after - 1);
  const std::uint64_t within = slot - rows.first_slot;
  const PartField& stored = data_.parts_[rows.part].fields[field];
  if (rows.scratch[field] == kInPlace) {
    return stored.storage->value(rows.rows[within], stored.file, bytes);
  }
  const std::uint64_t row_bytes = data_.facts().schema.fields[field].bytes();
  return scratch.subspan(rows.scratch[field] + within * row_bytes, row_bytes);
}

}  // namespace forebay
