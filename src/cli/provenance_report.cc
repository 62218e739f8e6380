#include "cli/provenance_report.hpp"

#include "format/lmdb/layout.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const lmdb::SizeRange& range) { return {{"min", range.least}, {"max", range.most}}; }

/// As in Pumma's dissertation, section 5.2.2.
Json papers_facts(const lmdb::MadeSidecar& made) {
  Json json;
  if (made.recipe) {
    const std::uint64_t every = made.recipe->commit_every;
    json["commit_frequency"] = every == 0 ? made.recipe->records : every;
    json["max_records_per_leaf"] = lmdb::max_records_per_leaf(*made.recipe);
    json["max_children_per_branch"] = lmdb::max_children_per_branch(*made.recipe);
  } else {
    json["commit_frequency"] = nullptr;
    json["max_records_per_leaf"] = made.survey.max_records;
    json["max_children_per_branch"] = made.survey.max_children;
  }
  json["record_size"] = to_json(made.survey.values);
  json["insert_order"] = made.recipe ? Json("ascending") : Json(nullptr);
  json["meta_pages"] = lmdb::kFirstTreePage;
  return json;
}

std::string rule_text(const lmdb::KeyRule& rule) {
  switch (rule.kind) {
    case lmdb::KeyRule::Kind::decimal:
      return "decimal";
    case lmdb::KeyRule::Kind::integer:
      return "integer";
    case lmdb::KeyRule::Kind::none:
      break;
  }
  return "none";
}

Json more_facts(lmdb::Database& database, const lmdb::MadeSidecar& made) {
  const lmdb::TreeHeader& tree = database.tree().header();
  Json json{{"records", database.entries()},
            {"page_size", database.page_size()},
            {"key_size", to_json(made.survey.keys)},
            {"database", database.name()},
            {"transaction", database.txn_id()},
            {"leaf_pages", tree.leaf_pages},
            {"overflow_pages", tree.overflow_pages},
            {"key_rule", rule_text(made.survey.table.keys().rule())}};
  if (!made.recipe) {
    json["append"] = nullptr;
    json["created_apart"] = nullptr;
    return json;
  }
  json["append"] = made.recipe->append;
  json["created_apart"] = made.recipe->created_apart;
  return json;
}

}  // namespace

Json provenance_json(lmdb::Database& database, const lmdb::MadeSidecar& made) {
  Json json{{"form", to_string(made.form)},
            {"bytes", made.bytes.size()},
            {"fingerprint", database.fingerprint().text}};
  if (!made.why_no_recipe.empty()) json["why_no_recipe"] = made.why_no_recipe;
  json["papers"] = papers_facts(made);
  json["more"] = more_facts(database, made);
  return json;
}

}  // namespace forebay
