#include "format/raw/choose_fields.hpp"

#include <fmt/format.h>

#include "forebay/error.hpp"
#include "format/same_schema.hpp"

namespace forebay::raw {

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

}  // namespace forebay::raw
