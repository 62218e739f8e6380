// TFRecord files: records of any size, one behind the other.
//
//   length, 8 bytes | masked CRC-32C of it, 4 | data | masked CRC-32C of them, 4
//
// One walk over the lengths finds the records. Where they are tf.train.Examples, parts of a sample
// are features: texts, singles and integers of 64 bits as arrays have them. Which features there
// are tell some records, and each that is read has to agree. Other records are samples as they are.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "format/registry.hpp"

namespace forebay::tfrecord {

/// Throws corrupt, unsupported, not_found, usage, io, naming file and offset.
std::unique_ptr<DataSet> open_records(const std::string& text, DataFiles files,
                                      std::span<const FieldChoice> choices);

Format tfrecord_format();

}  // namespace forebay::tfrecord
