// What a sidecar was made of, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "format/lmdb/provenance/make_sidecar.hpp"

namespace forebay {

/// Form, size and the facts: the six that the papers call provenance ("papers"), and those that
/// they leave out ("more"). What a table cannot know is null.
nlohmann::ordered_json provenance_json(lmdb::Database& database, const lmdb::MadeSidecar& made);

}  // namespace forebay
