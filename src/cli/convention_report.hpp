// By which convention the records of LMDB databases are samples: for inspect and verify.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/dataset_options.hpp"
#include "forebay/samples.hpp"

namespace forebay {

/// Whether `options` name several databases, one behind the other or beside each other.
bool names_several_databases(const DatasetOptions& options);

/// Opens the samples as --convention, --order-by and --codec say; reads by plain reads, and keeps
/// nothing in the user's cache. Throws as Samples::open.
Samples open_for_report(const DatasetOptions& options);

/// Whether a sample is something else than the record of its number.
bool is_mapped(const Samples& samples);

/// {"name": "grouped", "why": ..., "order_by": ..., "parts": [...], "metadata": [...]}
nlohmann::ordered_json convention_json(const Samples& samples);
/// "120 (grouped: image, label)"
std::string samples_text(const Samples& samples);

/// inspect, for several databases.
void inspect_databases(const DatasetOptions& options);

}  // namespace forebay
