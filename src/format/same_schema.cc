#include "format/same_schema.hpp"

#include <fmt/format.h>

#include <utility>

#include "forebay/error.hpp"

namespace forebay {

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

}  // namespace forebay
