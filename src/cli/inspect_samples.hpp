// What `forebay inspect` tells of files that are not made of pages: fields or parts, and what
// reading them costs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "cli/dataset_options.hpp"

namespace forebay {

/// The fields of values, or why they are not known.
struct Fields {
  std::string codec;
  Schema schema;
  std::string problem;
  std::uint64_t with_images = 0;  ///< of a few samples that were looked at
  std::uint64_t turned = 0;       ///< of these, by their EXIF orientation
  std::uint64_t other_kind = 0;   ///< of these, with images of another depth or other channels
  std::string first_other = {};   ///< what the first of those is
};

/// As the first samples tell. Throws usage.
Fields fields_of(const DataSet& data, const CodecOptions& options);
/// "image:u8[3x32x32] (image)"
std::string describe(const Fields& fields);
/// "image:u8[3x32x32],box:f32[] of any length"; empty where there is nothing but bytes.
std::string describe(const Schema& schema);
/// {"any_length": [{"name": "box", "type": "f32"}]}, where there are such.
void add_arrays(const Schema& schema, nlohmann::ordered_json& json);

/// That so many of `with_images` samples are turned when they are decoded, and how not to.
std::string turned_text(std::uint64_t turned, std::uint64_t with_images);
/// What was seen of images, where there is something to tell: those that are turned, and those of
/// another kind.
void print_images(const Fields& fields);
void add_images(const Fields& fields, nlohmann::ordered_json& json);

/// "3: cat, dog, emu": how many, and the first names.
std::string classes_text(std::span<const std::string> names);

struct InspectSamplesOptions {
  std::uint64_t group = 256;  ///< samples whose reads are counted
  std::string dump;           ///< ids whose bytes go to stdout; "all"
};

/// --group, --dump
void add_inspect_samples_options(CLI::App& app, InspectSamplesOptions& options);

/// Prints what `data` holds and what reading it costs, or dumps samples.
void inspect_samples(const DatasetOptions& dataset, const DataSet& data,
                     const InspectSamplesOptions& options);

}  // namespace forebay
