// forebay pack: from files of images, or from nothing, to an LMDB data set of Caffe Datums.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/inspect_samples.hpp"
#include "cli/pack/packer.hpp"
#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"
#include "format/dataset_files.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

using pack::Encoding;
using pack::OnError;
using pack::Options;
using pack::Origin;

const std::map<std::string, Origin> kOrigins{{"idx", Origin::idx},
                                             {"cifar10", Origin::cifar10},
                                             {"folder", Origin::folder},
                                             {"raw", Origin::raw},
                                             {"synthetic", Origin::synthetic}};
const std::map<std::string, Encoding> kEncodings{
    {"raw", Encoding::raw}, {"jpeg", Encoding::jpeg}, {"png", Encoding::png}};

const std::map<std::string, OnError> kOnError{{"fail", OnError::fail}, {"skip", OnError::skip}};

constexpr const char* kFooter = R"(
Sources:
  idx        images file of MNIST or Fashion-MNIST, gzipped or not, or their directory
  cifar10    *.bin file of CIFAR-10's binary version, or their directory
  folder     directory with one sub-directory of image files for each class
  raw        file of images of --shape, one behind the other
  synthetic  '-': generated images (--preset, or --shape and --count);
             a data set: its records over and over, --count of them

Records are Caffe Datums with channels in the order red, green, blue, and transparency behind them
where files have it; images stand upright, as their EXIF orientation says. Images of 16 bits are
stored with --encode png. Keys are numbers of eight or more digits, for folders followed by '_' and
the path. Classes are numbered in the order of their names, or as --classes says; their names are
kept, and what is no sample is counted. The data set is written as DEST.partial and gets its name
when it is complete.)";

ImageShape parse_shape(const std::string& text) {
  const Schema schema = parse_schema("shape:u8[" + text + "]");
  const auto& sides = schema.fields.front().shape;
  if (schema.fields.size() != 1 || sides.size() != 3 ||
      schema.fields.front().bytes() > kMaxImageBytes) {
    throw Error(ErrorKind::usage, fmt::format("--shape {}: not a usable image shape", text),
                "write channels, height and width, like 3x32x32");
  }
  return {static_cast<std::uint32_t>(sides[0]), static_cast<std::uint32_t>(sides[1]),
          static_cast<std::uint32_t>(sides[2])};
}

nlohmann::ordered_json to_json(const pack::Summary& summary) {
  nlohmann::ordered_json left_out = nlohmann::ordered_json::object();
  for (const auto& [why, count] : summary.left_out.counts()) left_out[why] = count;
  auto skipped = nlohmann::ordered_json::array();
  for (const pack::BadFile& file : summary.skipped) {
    skipped.push_back({{"file", file.name}, {"error", file.error}});
  }
  return {{"destination", summary.destination},
          {"records", summary.records},
          {"resumed_from", summary.resumed_from},
          {"value_bytes", summary.value_bytes},
          {"file_bytes", summary.file_bytes},
          {"classes", summary.classes},
          {"left_out", left_out},
          {"notes", summary.notes},
          {"skipped", skipped},
          {"sidecar", summary.sidecar},
          {"seconds", summary.seconds}};
}

/// What the source holds and the data set does not.
void print_others(const pack::Summary& summary) {
  if (const std::string text = summary.left_out.text(); !text.empty()) fmt::print("{}\n", text);
  for (const std::string& note : summary.notes) fmt::print("note: {}\n", note);
  if (summary.skipped.empty()) return;
  fmt::print("{} skipped, as {} cannot be packed:\n", human_count(summary.skipped.size()),
             summary.skipped.size() == 1 ? "it" : "they");
  for (const pack::BadFile& file : summary.skipped) {
    fmt::print("  {}: {}\n", shown_name(file.name), file.error);
  }
}

void print_summary(const Options& options, const pack::Summary& summary) {
  if (options.json) return print_json(to_json(summary));
  fmt::print("packed {} records, {} of values, in {:.1f} s\n",
             human_count(summary.records - summary.resumed_from), human_bytes(summary.value_bytes),
             summary.seconds);
  if (summary.resumed_from > 0) {
    fmt::print("continued behind {} records of an earlier run\n",
               human_count(summary.resumed_from));
  }
  fmt::print("{}: {} records, data.mdb has {}\n", summary.destination, human_count(summary.records),
             human_bytes(summary.file_bytes));
  if (!summary.classes.empty()) fmt::print("classes: {}\n", classes_text(summary.classes));
  print_others(summary);
  if (options.provenance) fmt::print("sidecar: {}\n", summary.sidecar);
}

/// Throws usage: packing reads files of images, and nothing else may be said of them.
ImageChoices parse_images(const std::string& codec, Origin from) {
  const CodecName parsed = parse_codec_name(codec);
  if (parsed.name == "image" && (from == Origin::folder || parsed.images == ImageChoices{})) {
    return parsed.images;
  }
  throw Error(ErrorKind::usage, fmt::format("--codec {}: of --from folder alone", codec),
              "write image and what is chosen, like image:rgb or image:palette=index");
}

struct Command {
  Options options;
  std::string shape;
  std::string codec = "image";
  std::chrono::milliseconds timeout = LoaderOptions().timeout;

  void run() {
    if (!shape.empty()) options.shape = parse_shape(shape);
    options.images = parse_images(codec, options.from);
    print_summary(options, pack::pack(options));
  }
};

void add_source_options(CLI::App& app, Command& command) {
  Options& options = command.options;
  app.add_option("--from", options.from, "What SOURCE is: idx, cifar10, folder, raw, synthetic")
      ->required()
      ->type_name("NAME")
      ->transform(named_choice(kOrigins));
  app.add_option("--count", options.count, "Pack this many records")->check(CLI::PositiveNumber);
  app.add_option("--shape", command.shape, "CxHxW: bring images to this shape; for raw, the shape");
  app.add_option("--codec", command.codec,
                 "Folder: how images are read, like image:rgb, image:palette=index or "
                 "image:orientation=stored")
      ->capture_default_str();
  app.add_option("--labels", options.labels, "File with the labels (idx, raw): IDX or one a line");
  app.add_option("--split", options.split, "Which files of a directory: train or test")
      ->check(CLI::IsMember({"train", "test"}))
      ->capture_default_str();
  app.add_option("--preset", options.preset, "Synthetic: cifar10-large or imagenet-large");
  app.add_option("--seed", options.seed, "Synthetic and --shuffle: what to draw from")
      ->capture_default_str();
  app.add_option("--classes", options.classes,
                 "File with the name of one class a line, or a data set: folders get the numbers "
                 "that its classes have; other sources just these names")
      ->type_name("FILE|DATASET");
  app.add_option("--leave-out", options.leave_out,
                 "Synthetic, of a data set: records that are no samples, beside those that are "
                 "recognised")
      ->type_name("KEYS");
  app.add_option("--keep-records", options.keep_records,
                 "Likewise: records that are samples, whatever their keys look like")
      ->type_name("KEYS");
  app.add_flag("--shuffle", options.shuffle, "Folder: files in random order");
}

void add_destination_options(CLI::App& app, Options& options) {
  app.add_option("--encode", options.encode, "How images are stored: raw, jpeg, png")
      ->type_name("NAME")
      ->transform(named_choice(kEncodings))
      ->default_str("raw");
  app.add_option("--quality", options.quality, "JPEG quality, 1 to 100")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--commit-every", options.commit_every, "Records in a transaction")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--on-error", options.on_error,
                 "Folder: files that cannot be packed end it once all are looked at (fail), or are "
                 "left out (skip)")
      ->type_name("NAME")
      ->transform(named_choice(kOnError))
      ->default_str("fail");
  auto* resume =
      app.add_flag("--resume", options.resume,
                   "Continue an interrupted packing, also after bad files were mended or removed");
  app.add_flag("--force", options.force, "Replace DEST, drop an interrupted packing")
      ->excludes(resume);
  app.add_flag("--provenance,!--no-provenance", options.provenance,
               "Write a sidecar that says where the records lie (default: yes)");
  app.add_flag("--json", options.json, "Print the summary as JSON");
}

}  // namespace

void add_pack_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("pack", "Make an LMDB data set");
  auto command = std::make_shared<Command>();
  sub->add_option("SOURCE", command->options.source, "Where the samples are")->required();
  sub->add_option("DEST", command->options.destination, "Directory to make")->required();
  add_source_options(*sub, *command);
  add_destination_options(*sub, command->options);
  sub->footer(kFooter);
  add_timeout_flag(*sub, command->timeout);
  sub->callback([command] {
    run_with_answers(command->options.source, command->timeout, [&] { command->run(); });
  });
}

}  // namespace forebay
