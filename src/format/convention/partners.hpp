// Databases beside each other: the record of each part for every sample, by equal keys.
#pragma once

#include <span>
#include <vector>

#include "format/convention/convention.hpp"

namespace forebay::convention {

/// Where both are in key order, database by database, with the same counts and the same first and
/// last keys, records are taken to be partners in order, and their keys are compared when they are
/// read. Else all keys are compared now. Throws corrupt naming the key that has no partner.
void align_parts(const std::vector<PartDatabases>& list, std::span<lmdb::Database* const> databases,
                 const std::vector<Layout>& layouts, const std::vector<DatabaseNote>& notes,
                 std::vector<Convention::Part>& parts);

}  // namespace forebay::convention
