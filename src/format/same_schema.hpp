// Fields of one file and of several, checked against each other.
#pragma once

#include <string>

#include "forebay/dataset.hpp"

namespace forebay {

/// Appends `field`. Throws usage when `schema`, of the file `path`, has one of that name.
void add_field(Schema& schema, Field field, const std::string& path);

/// Throws usage, naming both files, unless the schemas are equal.
void require_same_schema(const Schema& first, const std::string& first_path, const Schema& other,
                         const std::string& other_path);

}  // namespace forebay
