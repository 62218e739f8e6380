// NumPy .npy files as a data set of one field: a sample is what lies under one index of the first
// dimension.
#pragma once

#include <memory>
#include <string>

#include "format/field_set.hpp"
#include "format/registry.hpp"

namespace forebay::raw {

/// Opens `files` as one data set that the user named `text`. The field is "data", or as chosen
/// ("FILE#image=data"). Throws not_found, unsupported, corrupt, io, usage.
std::unique_ptr<DataSet> open_npy(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices);
Format npy_format();

}  // namespace forebay::raw
