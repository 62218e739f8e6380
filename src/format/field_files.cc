#include "format/field_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Appends `field`, of the file `path`.
void add_field(Schema& schema, Field field, const std::string& path) {
  if (schema.find(field.name) != nullptr) {
    throw Error(ErrorKind::usage, fmt::format("two fields are called '{}'", field.name),
                "give them names: FILE#x=NAME,y=NAME", {.file = path});
  }
  schema.fields.push_back(std::move(field));
}

void require_same_schema(const Schema& first, const std::string& first_path, const Schema& other,
                         const std::string& other_path) {
  if (first == other) return;
  throw Error(ErrorKind::usage,
              fmt::format("its samples are {} but those of {} are {}", to_string(other), first_path,
                          to_string(first)),
              "files of one data set must have the same fields, types and shapes: leave one out, "
              "or name the fields that they share after '#'",
              {.file = other_path});
}

/// Keeps the chosen fields of `schema` and of every part; all when there are none.
void choose_fields(std::span<const FieldChoice> choices, Schema& schema,
                   std::vector<SamplePart>& parts, const std::string& text) {
  if (choices.empty()) return;
  Schema chosen;
  std::vector<std::size_t> from;
  for (const FieldChoice& choice : choices) {
    const Field* field = schema.find(choice.stored);
    if (field == nullptr) {
      throw Error(
          ErrorKind::not_found,
          fmt::format("there is no field '{}'; samples are {}", choice.stored, to_string(schema)),
          "correct the name after the '#'", {.file = text});
    }
    from.push_back(static_cast<std::size_t>(field - schema.fields.data()));
    Field renamed = *field;
    if (!choice.name.empty()) renamed.name = choice.name;
    add_field(chosen, std::move(renamed), text);
  }
  for (SamplePart& part : parts) {
    std::vector<PartField> kept;
    for (const std::size_t i : from) kept.push_back(part.fields[i]);
    part.fields = std::move(kept);
  }
  schema = std::move(chosen);
}

void require_same_rows(std::span<const FileField> fields) {
  for (const FileField& one : fields) {
    if (one.rows == fields[0].rows) continue;
    throw Error(ErrorKind::usage,
                fmt::format("'{}' has {} rows but '{}' has {}", fields[0].field.name,
                            fields[0].rows, one.field.name, one.rows),
                "name those that belong together: FILE#x=NAME,y=NAME");
  }
}

/// Its number among `files`, to which it is added where it is new. Those from `first` on are no
/// files that the user named.
std::uint32_t number_of(const std::shared_ptr<const File>& file, DataFiles& files,
                        std::size_t first) {
  const auto at = std::find_if(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(),
                               [&](const auto& one) { return one->path() == file->path(); });
  const auto number = static_cast<std::uint32_t>(at - files.begin());
  if (at == files.end()) files.push_back(file);
  return number;
}

/// Parts of `all`, of which each gets the fields of `side` beside its own, whose files come behind
/// `files` others. `names` tell both in messages.
void add_side(std::vector<SamplePart>& all, const FieldSet& side, std::uint32_t files,
              std::pair<std::string_view, std::string_view> names, const std::string& text) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw Error(ErrorKind::usage, what, remedy, {.file = text});
  };
  if (all.size() != side.parts().size()) {
    refuse(fmt::format("'{}' has {} files but '{}' has {}", names.first, all.size(), names.second,
                       side.parts().size()),
           "files beside each other need partners of as many samples: name as many of each");
  }
  for (std::size_t p = 0; p < all.size(); ++p) {
    const SamplePart& part = side.parts()[p];
    if (part.rows != all[p].rows) {
      const std::string of = all.size() > 1 ? fmt::format(" in file {}", p + 1) : "";
      refuse(fmt::format("'{}' has {} samples{} but '{}' has {}", names.first, all[p].rows, of,
                         names.second, part.rows),
             "correct the names, or make the files equally long");
    }
    for (PartField field : part.fields) {
      field.file += files;
      all[p].fields.push_back(std::move(field));
    }
  }
}

}  // namespace

void require_together(std::span<const FileField> fields) {
  Schema schema;
  for (const FileField& one : fields) add_field(schema, one.field, {});
  require_same_rows(fields);
}

std::unique_ptr<DataSet> open_fields(const std::string& text, const std::string& format,
                                     DataFiles files, std::span<const FieldChoice> choices,
                                     const ReadFields& read,
                                     const std::vector<std::string>& notes) {
  std::vector<SamplePart> parts;
  Schema schema;
  const std::size_t named = files.size();
  for (std::uint32_t number = 0; number < named; ++number) {
    const std::shared_ptr<const File> file = files[number];
    try {
      std::vector<FileField> found = read(file);
      require_same_rows(found);
      SamplePart part{.rows = found.empty() ? 0 : found[0].rows, .fields = {}};
      Schema of_file;
      for (FileField& one : found) {
        add_field(of_file, std::move(one.field), file->path());
        const auto in = one.elsewhere ? number_of(one.elsewhere, files, named) : number;
        part.fields.push_back({.file = in, .storage = std::move(one.storage)});
      }
      if (number == 0) schema = of_file;
      require_same_schema(schema, files[0]->path(), of_file, file->path());
      parts.push_back(std::move(part));
    } catch (const Error& error) {
      throw error.within({.file = file->path()});
    }
  }
  choose_fields(choices, schema, parts, text);
  return std::make_unique<FieldSet>(text, format, std::move(schema), std::move(files),
                                    std::move(parts), notes);
}

std::unique_ptr<DataSet> join_fields(
    const std::string& text,
    std::span<const std::pair<std::string, std::unique_ptr<DataSet>>> sides) {
  std::string format;
  Schema schema;
  DataFiles files;
  std::vector<SamplePart> parts;
  std::vector<std::string> notes;
  for (const auto& [name, data] : sides) {
    const auto* side = dynamic_cast<const FieldSet*>(data.get());
    if (side == nullptr) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}' is of format {}, whose samples lie beside no others", name,
                              data->facts().format),
                  "files of arrays and records do (npy, hdf5, raw), and databases of LMDB",
                  {.file = text});
    }
    const DataSetFacts& facts = side->facts();
    if (format.find(facts.format) == std::string::npos) {
      format += (format.empty() ? "" : "+") + facts.format;
    }
    for (Field field : facts.schema.fields) {
      field.name = facts.schema.fields.size() == 1 ? name : name + "." + field.name;
      add_field(schema, std::move(field), text);
    }
    const auto before = static_cast<std::uint32_t>(files.size());
    if (before == 0) parts.resize(side->parts().size());
    for (std::size_t p = 0; before == 0 && p < parts.size(); ++p) {
      parts[p].rows = side->parts()[p].rows;
    }
    add_side(parts, *side, before, {sides[0].first, name}, text);
    files.insert(files.end(), side->files().begin(), side->files().end());
    notes.insert(notes.end(), facts.notes.begin(), facts.notes.end());
  }
  return std::make_unique<FieldSet>(text, format, std::move(schema), std::move(files),
                                    std::move(parts), std::move(notes));
}

}  // namespace forebay
