#include "format/lmdb/provenance/make_sidecar.hpp"

#include <fmt/format.h>

#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/provenance/recipe_leaves.hpp"
#include "format/lmdb/scan.hpp"

namespace forebay::lmdb {
namespace {

/// Whether all nodes take the same room on their leaves, as far as the ranges of sizes tell.
bool nodes_are_equal(const LayoutSurvey& survey) {
  const bool inside = !survey.layout.has_runs();  // the values are
  const std::uint64_t least = survey.keys.least + (inside ? survey.values.least : 0);
  const std::uint64_t most = survey.keys.most + (inside ? survey.values.most : 0);
  return (least + 1) / 2 == (most + 1) / 2;  // nodes begin at even places
}

std::string why_no_recipe(const LayoutSurvey& survey) {
  if (survey.table.samples() == 0) return "there are no records";
  if (!survey.layout.uniform() || !nodes_are_equal(survey)) {
    return fmt::format(
        "the records do not all take the same room (keys of {} to {} bytes, values of {} to {})",
        survey.keys.least, survey.keys.most, survey.values.least, survey.values.most);
  }
  return "no replay of LMDB's allocator gives this layout: it was not built in key order from an "
         "empty file with even commits and no reader open";
}

std::vector<std::byte> recipe_sidecar(const Recipe& recipe, const LayoutSurvey& survey,
                                      const TreeFacts& facts) {
  ByteWriter body;
  RecipeLeaves(recipe, survey.table.keys()).write(body);
  return seal_sidecar(SidecarForm::recipe, facts.fingerprint, body.bytes());
}

/// Compares leaf after leaf with what a producer says of it.
class Comparison {
 public:
  Comparison(LeafProducer& leaves, Database& database)
      : leaves_(leaves), database_(database), pages_(list_leaves(database)) {}

  /// Returns the first difference of `segment`.
  std::string compare(std::size_t segment) {
    std::string difference;
    leaves_.expand(segment, [&](const LeafLayout& leaf) {
      if (difference.empty()) difference = compare(leaf);
    });
    return difference;
  }

  std::uint64_t records() const { return sample_; }

  std::string totals() const {
    const std::uint64_t entries = database_.entries();
    if (leaf_ == pages_.size() && sample_ == entries) return {};
    return fmt::format("it has {} records on {} leaves, the tree has {} on {}", sample_, leaf_,
                       entries, pages_.size());
  }

 private:
  std::string compare(const LeafLayout& leaf) {
    if (leaf_ == pages_.size()) return totals();
    const Page page = database_.pages().tree_page(pages_[leaf_]);
    const SeenLeaf seen = look_at_leaf(page, database_.page_size(), runs_);
    std::string text = differs(leaf, seen.layout);
    if (text.empty() && leaves_.witness() != nullptr) {
      const LeafKeys keys{.leaf = leaf_,
                          .first_sample = sample_,
                          .page = leaf.page,
                          .first = seen.first_key,
                          .last = seen.last_key};
      text = leaves_.witness()->contradicts(keys, leaf.records);
    }
    if (!text.empty()) {
      return fmt::format("leaf {}, page {}, sample {}: {}", leaf_, pages_[leaf_], sample_, text);
    }
    ++leaf_;
    sample_ += leaf.records;
    return {};
  }

  static std::string differs(const LeafLayout& said, const LeafLayout& found) {
    if (said.page != found.page) return fmt::format("it says page {}", said.page);
    if (said.records != found.records) {
      return fmt::format("it says {} records, there are {}", said.records, found.records);
    }
    if (said.runs.size() != found.runs.size()) {
      return fmt::format("it says {} overflow runs, there are {}", said.runs.size(),
                         found.runs.size());
    }
    for (std::size_t i = 0; i < said.runs.size(); ++i) {
      const LeafRun& one = said.runs[i];
      const LeafRun& other = found.runs[i];
      if (one == other) continue;
      return fmt::format(
          "it says {} overflow pages at page {} for record {}, there are {} at page "
          "{} for record {}",
          one.pages, one.page, one.slot, other.pages, other.page, other.slot);
    }
    return {};
  }

  LeafProducer& leaves_;
  Database& database_;
  std::vector<PageNumber> pages_;
  std::vector<LeafRun> runs_;
  std::uint64_t leaf_ = 0;
  std::uint64_t sample_ = 0;
};

}  // namespace

MadeSidecar make_sidecar(Database& database, WantedForm form, const RecipeHints& hints,
                         const SurveyProgress& progress) {
  const TreeFacts facts = facts_of(database);
  MadeSidecar made{.survey = survey_layout(database, progress)};
  if (form != WantedForm::table) {
    if (made.survey.layout.uniform() && facts.entries > 0) {
      made.recipe = infer_recipe(recipe_facts(database), made.survey.layout, hints);
    }
    if (made.recipe) {
      made.form = SidecarForm::recipe;
      made.bytes = recipe_sidecar(*made.recipe, made.survey, facts);
      return made;
    }
    made.why_no_recipe = why_no_recipe(made.survey);
    if (form == WantedForm::recipe) {
      throw Error(ErrorKind::usage, "no recipe fits: " + made.why_no_recipe,
                  "use --form table or auto", {.file = facts.file});
    }
  }
  made.bytes = table_sidecar(made.survey.table, facts);
  return made;
}

std::string first_difference(LeafProducer& leaves, Database& database,
                             const SurveyProgress& progress) {
  Comparison comparison(leaves, database);
  try {
    for (std::size_t i = 0; i + 1 < leaves.directory().size(); ++i) {
      std::string difference = comparison.compare(i);
      if (!difference.empty()) return difference;
      if (progress) progress(comparison.records());
    }
  } catch (const Error& error) {
    // A place speaks of the data set; the sidecar's own faults have none.
    if (error.kind() != ErrorKind::corrupt || !error.where().file.empty()) throw;
    return error.happened();
  }
  database.check_unchanged();
  return comparison.totals();
}

}  // namespace forebay::lmdb
