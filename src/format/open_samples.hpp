// Opens files with fields as a data set, whatever their format.
//
//   hdf5      the signature says so                  fields by name
//   npy       the magic says so                      one field, "data"
//   cifar10   name, size and labels fit              label, image
//   raw       when asked for by name                 fields as declared
#pragma once

#include <memory>
#include <string>

#include "format/sample_source.hpp"

namespace forebay {

struct SampleOptions {
  Engine engine = Engine::pread;
  /// auto: by the content of the first file; or hdf5, npy, cifar10, raw.
  std::string format = "auto";
  std::string schema;              ///< raw: the fields of a record; else an expectation to check
  std::uint64_t header_bytes = 0;  ///< raw: skipped at the start of every file
  std::uint64_t record_bytes = 0;  ///< raw: from record to record; 0: what the fields have
  bool big_endian = false;         ///< raw: byte order of the numbers
};

/// "hdf5", "npy" or "cifar10" by the content of the first file that `text` names; empty when it is
/// none of them (or no file, or a directory). Throws io.
std::string recognize_samples(const std::string& text);

/// Opens the data set that `text` names: files, patterns, "#FIELDS" (dataset_files.hpp). Local.
/// Throws not_found, unsupported, corrupt, io, usage.
std::unique_ptr<SampleSource> open_samples(const std::string& text, const SampleOptions& options);

}  // namespace forebay
