// What samples of a convention take of their databases: a plan of each database, and which record
// of it is which part of which sample.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <string_view>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/convention/convention_set.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {
namespace {

/// The bytes of one file, as the only one of a database.
class BytesOfFile final : public FileBytes {
 public:
  BytesOfFile(const FileBytes& all, std::uint32_t file) : all_(all), file_(file) {}
  std::span<const std::byte> at(std::uint32_t, std::uint64_t offset,
                                std::uint64_t length) const override {
    return all_.at(file_, offset, length);
  }

 private:
  const FileBytes& all_;
  std::uint32_t file_;
};

}  // namespace

/// A plan a database, and which record of it is which part of which sample.
class ConventionPlan final : public Plan {
 public:
  ConventionPlan(const ConventionSet& data, std::span<const IdRun> runs)
      : Plan(count_of(runs)), data_(data), of_(data.databases_.size()) {
    const auto parts = data.convention_.parts();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::size_t position = 0;
      for (const IdRun& run : runs) {
        if (part == 0) ids_.push_back({run, position});
        parts[part].records.for_each_run(run.first, run.count,
                                         [&](std::uint64_t record, std::uint64_t count) {
                                           add(part, position, record, count);
                                           position += count;
                                         });
      }
    }
    for (std::uint32_t d = 0; d < of_.size(); ++d) {
      if (!of_[d].runs.empty()) of_[d].plan = data.databases_[d]->plan_runs(of_[d].runs);
    }
  }

  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte> scratch) const override {
    return with_record(position, part, [&](const Plan& plan, std::size_t at, std::uint32_t file) {
      return plan.part(at, 0, BytesOfFile(bytes, file), scratch);
    });
  }
  std::span<const std::byte> key(std::size_t position, const FileBytes& bytes) const override {
    const auto key =
        with_record(position, 0, [&](const Plan& plan, std::size_t at, std::uint32_t file) {
          return plan.key(at, BytesOfFile(bytes, file));
        });
    return key.subspan(std::min(data_.convention_.parts()[0].prefix.size(), key.size()));
  }
  void unpack(std::size_t parts, const FileBytes& bytes, std::span<const std::byte> scratch,
              const FoundSink& sink) const override;

 private:
  using Bytes = std::span<const std::byte>;

  void find_extents() const override {
    const std::scoped_lock lock(mutex_);
    if (found_) return;
    extents_.clear();
    for (std::uint32_t d = 0; d < of_.size(); ++d) {
      if (!of_[d].plan) continue;
      for (FileExtent extent : of_[d].plan->extents()) {
        extent.file = d;
        extents_.push_back(extent);
      }
      named_ += of_[d].plan->named_extents();
    }
    found_ = true;
  }

  /// Records of a database that follow each other, as parts of samples that do so.
  struct Stretch {
    std::size_t at = 0;  ///< position in the database's plan
    std::size_t count = 0;
    std::size_t part = 0;
    std::size_t position = 0;  ///< in this plan
  };
  struct OfDatabase {
    std::vector<IdRun> runs;
    std::vector<Stretch> stretches;
    std::unique_ptr<const Plan> plan;
  };

  /// Records from `record` on are part `part` of samples from `position` on.
  void add(std::size_t part, std::size_t position, std::uint64_t record, std::uint64_t left) {
    const auto& first = data_.first_records_;
    while (left > 0) {
      const auto after = std::ranges::upper_bound(first, record);
      const auto database = static_cast<std::size_t>(after - first.begin()) - 1;
      const std::uint64_t inside = record - first[database];
      const std::uint64_t here =
          std::min(left, data_.convention_.databases()[database].records - inside);
      OfDatabase& of = of_[database];
      const std::size_t at =
          of.stretches.empty() ? 0 : of.stretches.back().at + of.stretches.back().count;
      of.runs.push_back({inside, here});
      of.stretches.push_back({.at = at, .count = here, .part = part, .position = position});
      record += here;
      position += here;
      left -= here;
    }
  }

  template <typename Use>
  Bytes with_record(std::size_t position, std::size_t part, const Use& use) const {
    for (std::uint32_t d = 0; d < of_.size(); ++d) {
      for (const Stretch& stretch : of_[d].stretches) {
        if (stretch.part != part || position - stretch.position >= stretch.count) continue;
        return use(*of_[d].plan, stretch.at + (position - stretch.position), d);
      }
    }
    return {};
  }

  /// Calls use(position, part, key, value) for all records.
  template <typename Use>
  void for_each_record(const FileBytes& bytes, Use&& use) const {
    for (std::uint32_t d = 0; d < of_.size(); ++d) {
      if (!of_[d].plan) continue;
      const BytesOfFile of_file(bytes, d);
      auto stretch = of_[d].stretches.begin();
      of_[d].plan->unpack(1, d == 0 ? bytes : of_file, {}, [&](const FoundSample& found) {
        while (found.position >= stretch->at + stretch->count) ++stretch;
        use(stretch->position + (found.position - stretch->at), stretch->part, found.key,
            found.parts[0]);
      });
    }
  }

  Bytes common_key(std::size_t position, std::span<const Bytes> keys) const;
  std::uint64_t id_at(std::size_t position) const {
    const auto after = std::ranges::upper_bound(ids_, position, {}, &Positioned::position);
    return (after - 1)->run.first + (position - (after - 1)->position);
  }

  struct Positioned {
    IdRun run;
    std::size_t position = 0;
  };
  const ConventionSet& data_;
  std::vector<Positioned> ids_;
  std::vector<OfDatabase> of_;
  mutable std::mutex mutex_;  ///< of what extents() gives
  mutable bool found_ = false;
};

void ConventionPlan::unpack(std::size_t, const FileBytes& bytes, std::span<const std::byte>,
                            const FoundSink& sink) const {
  if (!data_.convention_.has_parts()) {
    return for_each_record(bytes, [&](std::size_t position, std::size_t, Bytes key, Bytes value) {
      sink({.position = position, .key = key, .parts = {&value, 1}});
    });
  }
  const std::size_t parts = data_.convention_.parts().size();
  std::vector<Bytes> keys(size() * parts), values(size() * parts);
  for_each_record(bytes, [&](std::size_t position, std::size_t part, Bytes key, Bytes value) {
    keys[position * parts + part] = key;
    values[position * parts + part] = value;
  });
  for (std::size_t i = 0; i < size(); ++i) {
    sink({.position = i,
          .key = common_key(i, std::span(keys).subspan(i * parts, parts)),
          .parts = std::span(values).subspan(i * parts, parts)});
  }
}

/// What follows the prefixes, which are checked, and is the same in all parts.
ConventionPlan::Bytes ConventionPlan::common_key(std::size_t position,
                                                 std::span<const Bytes> keys) const {
  const auto parts = data_.convention_.parts();
  const std::string_view first = chars_of(keys[0]);
  const std::size_t skipped = std::min(parts[0].prefix.size(), first.size());
  const std::string_view rest = first.substr(skipped);
  for (std::size_t p = 0; p < keys.size(); ++p) {
    const std::string_view key = chars_of(keys[p]);
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
        {.file = data_.convention_.databases()[parts[p].first_database].path,
         .sample = id_at(position),
         .key = shown_key(first)});
  }
  return keys[0].subspan(skipped);
}

std::unique_ptr<const Plan> ConventionSet::plan_runs(std::span<const IdRun> runs) const {
  require_runs(runs);
  return std::make_unique<ConventionPlan>(*this, runs);
}

}  // namespace forebay::convention
