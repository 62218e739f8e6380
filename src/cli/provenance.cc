// forebay provenance: makes, checks or removes the sidecar that says where the records lie.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/layout.hpp"
#include "format/lmdb/provenance/make_sidecar.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
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

/// What a sidecar was made of: form, size and the facts, the six that the papers call provenance
/// ("papers"), and those that they leave out ("more"). What a table cannot know is null.
Json provenance_json(lmdb::Database& database, const lmdb::MadeSidecar& made) {
  Json json{{"form", to_string(made.form)},
            {"bytes", made.bytes.size()},
            {"fingerprint", database.fingerprint().text}};
  if (!made.why_no_recipe.empty()) json["why_no_recipe"] = made.why_no_recipe;
  json["papers"] = papers_facts(made);
  json["more"] = more_facts(database, made);
  return json;
}

using lmdb::WantedForm;

const std::map<std::string, WantedForm> kForms{
    {"auto", WantedForm::automatic}, {"recipe", WantedForm::recipe}, {"table", WantedForm::table}};
const std::map<std::string, Engine> kEngines{{"mmap", Engine::mmap}, {"pread", Engine::pread}};

constexpr const char* kFooter = R"(
A sidecar lets any number of processes find every record without walking the tree. It lies beside
the data, in <data file>.forebay or, for a named database, <data file>.<name>.forebay, and is used
as long as the data set is in the state that it was made for.

Forms:
  recipe   the few facts from which the layout can be computed: for data sets that were written in
           key order, records of one size, with even commits; compared with every leaf before it is
           written
  table    where the leaves are, compressed: for any data set
  auto     a recipe where one fits, else a table)";

struct ProvenanceCommand {
  std::string path;
  std::string sidecar;
  Engine engine = Engine::mmap;
  WantedForm form = WantedForm::automatic;
  std::chrono::milliseconds timeout = LoaderOptions().timeout;
  bool check = false;
  bool remove = false;
  bool json = false;
};

std::string sidecar_file(const ProvenanceCommand& command) {
  if (!command.sidecar.empty()) return command.sidecar;
  const std::string beside = lmdb::sidecar_path(lmdb::resolve_dataset_path(command.path));
  if (!beside.empty()) return beside;
  throw Error(ErrorKind::usage, "nothing is kept beside data on this storage",
              "name a place for the sidecar with --sidecar", {.file = command.path});
}

lmdb::Database open_lmdb(const ProvenanceCommand& command) {
  return lmdb::Database::open(command.path, can_map(command.path) ? command.engine : Engine::pread);
}

/// Calls `work` and returns the seconds that it took.
template <typename Work>
double timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void make(const ProvenanceCommand& command) {
  const std::string file = sidecar_file(command);
  lmdb::Database database = open_lmdb(command);
  lmdb::MadeSidecar made;
  const double seconds = timed([&] {
    Progress progress("looking at leaves: records", database.entries());
    made = lmdb::make_sidecar(database, command.form, {},
                              [&](std::uint64_t records) { progress.update(records); });
    write_whole_file(file, made.bytes);
  });
  if (command.json) {
    Json json{{"path", command.path}, {"sidecar", file}};
    json.update(provenance_json(database, made));
    json["seconds"] = seconds;
    return print_json(json);
  }
  if (!made.why_no_recipe.empty()) fmt::print("no recipe: {}\n", made.why_no_recipe);
  fmt::print("{}: {} of {} for {} records, in {:.1f} s\n", file, to_string(made.form),
             human_bytes(made.bytes.size()), human_count(database.entries()), seconds);
}

bool is_wanted(WantedForm wanted, const std::string& form) {
  return wanted == WantedForm::automatic || kForms.at(form) == wanted;
}

/// What is wrong with the sidecar in `file`; empty when nothing is. `form` becomes its form.
std::string find_fault(const ProvenanceCommand& command, const std::string& file,
                       std::string& form) {
  lmdb::Database database = open_lmdb(command);
  const lmdb::TreeFacts facts = lmdb::facts_of(database);
  const auto bytes =
      read_small_file(file, lmdb::most_sidecar_bytes(facts.entries, facts.leaf_pages));
  auto loaded = lmdb::load_sidecar(bytes, facts);
  if (!loaded) return loaded.problem;
  form = loaded.leaves->form();
  if (!is_wanted(command.form, form)) return "it is of the form " + form;
  Progress progress("checking: records", database.entries());
  return lmdb::first_difference(*loaded.leaves, database,
                                [&](std::uint64_t records) { progress.update(records); });
}

void check(const ProvenanceCommand& command) {
  const std::string file = sidecar_file(command);
  std::string form, fault;
  const double seconds = timed([&] { fault = find_fault(command, file, form); });
  if (command.json) {
    print_json({{"path", command.path},
                {"sidecar", file},
                {"form", form},
                {"right", fault.empty()},
                {"difference", fault},
                {"seconds", seconds}});
  } else if (fault.empty()) {
    fmt::print("{}: {}, right about every leaf, checked in {:.1f} s\n", file, form, seconds);
  }
  if (fault.empty()) return;
  flush_output();
  throw Error(ErrorKind::corrupt, fault, "make it anew with 'forebay provenance'", at_file(file));
}

/// Beside the data and, where the data set can be opened, in the cache.
std::vector<std::string> candidates(const ProvenanceCommand& command) {
  std::vector<std::string> files{sidecar_file(command)};
  if (!command.sidecar.empty()) return files;
  try {
    auto database = open_lmdb(command);
    if (auto cached = user_cache_path(database.cache_identity())) {
      files.push_back(std::move(*cached));
    }
  } catch (const Error&) {
    // A damaged data set must not keep its sidecar.
  }
  return files;
}

void remove(const ProvenanceCommand& command) {
  Json removed = Json::array();
  for (const std::string& file : candidates(command)) {
    std::error_code error;
    if (fs::remove(file, error)) removed.push_back(file);
    const bool absent = error == std::errc::not_a_directory;  // as where nothing is to be cached
    if (error && !absent) {
      throw Error(ErrorKind::io, error.message(), "check the permissions of its directory",
                  at_file(file));
    }
  }
  if (command.json) return print_json({{"path", command.path}, {"removed", removed}});
  for (const auto& file : removed) fmt::print("removed {}\n", file.get<std::string>());
  if (removed.empty()) fmt::print("{}: there is no sidecar\n", command.path);
}

void run(const ProvenanceCommand& command) {
  if (command.check) return check(command);
  if (command.remove) return remove(command);
  make(command);
}

}  // namespace

void add_provenance_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("provenance", "Make, check or remove a data set's sidecar");
  auto command = std::make_shared<ProvenanceCommand>();
  sub->add_option("DATASET", command->path,
                  "LMDB directory or file; '#NAME' picks a named database")
      ->required();
  sub->add_option("--form", command->form, "What to make, or must be there: auto, recipe, table")
      ->type_name("NAME")
      ->transform(named_choice(kForms))
      ->default_str("auto");
  auto* check = sub->add_flag("--check", command->check, "Compare the sidecar with every leaf");
  sub->add_flag("--remove", command->remove, "Delete the sidecar, and what the user's cache holds")
      ->excludes(check);
  sub->add_option("--sidecar", command->sidecar, "File to write, check or remove instead");
  sub->add_option("--engine", command->engine, "How bytes are read: mmap or pread")
      ->type_name("NAME")
      ->transform(named_choice(kEngines))
      ->default_str("mmap");
  sub->add_flag("--json", command->json, "Print the result as JSON");
  sub->footer(kFooter);
  add_timeout_flag(*sub, command->timeout);
  sub->callback(
      [command] { run_with_answers(command->path, command->timeout, [&] { run(*command); }); });
}

}  // namespace forebay
