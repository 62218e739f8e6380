// Which of a file's fields a sample has, where the format fixes their names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/dataset_files.hpp"
#include "format/field_set.hpp"

namespace forebay::raw {

/// Keeps the chosen fields of `schema` and of every part, in the order of `choices` and under the
/// names that they give; all when there are none. Throws not_found listing the fields that exist,
/// usage for a name that appears twice.
void choose_fields(std::span<const FieldChoice> choices, Schema& schema,
                   std::vector<SamplePart>& parts, const std::string& text);

}  // namespace forebay::raw
