// Making the sidecar of an existing database, and comparing one with the tree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/infer.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/provenance/survey.hpp"

namespace forebay::lmdb {

enum class WantedForm : std::uint8_t { automatic, table, recipe };

struct MadeSidecar {
  SidecarForm form = SidecarForm::table;
  std::vector<std::byte> bytes;
  std::optional<Recipe> recipe;  ///< of the form `recipe`
  std::string why_no_recipe;     ///< automatic: why it became a table
  LayoutSurvey survey;
};

/// Walks every leaf once, and for a recipe compares the replay with each of them. Local.
/// Throws usage when a recipe was asked for and none fits (the message says why); as
/// survey_layout().
MadeSidecar make_sidecar(Database& database, WantedForm form, const RecipeHints& hints = {},
                         const SurveyProgress& progress = {});

/// The first difference between `leaves` and the tree, every leaf and key fact compared; empty when
/// there is none. Throws as survey_layout().
std::string first_difference(LeafProducer& leaves, Database& database,
                             const SurveyProgress& progress = {});

}  // namespace forebay::lmdb
