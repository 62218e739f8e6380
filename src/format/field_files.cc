#include "format/field_files.hpp"

#include <fmt/format.h>

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

}  // namespace

std::unique_ptr<DataSet> open_fields(const std::string& text, const std::string& format,
                                     DataFiles files, std::span<const FieldChoice> choices,
                                     const ReadFields& read,
                                     const std::vector<std::string>& notes) {
  std::vector<SamplePart> parts;
  Schema schema;
  for (const auto& file : files) {
    const auto number = static_cast<std::uint32_t>(parts.size());
    try {
      FileFields found = read(file);
      SamplePart part{.rows = found.rows, .fields = {}};
      Schema of_file;
      for (FileField& one : found.fields) {
        add_field(of_file, std::move(one.field), file->path());
        part.fields.push_back({.file = number, .storage = std::move(one.storage)});
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

}  // namespace forebay
