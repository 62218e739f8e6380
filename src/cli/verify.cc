// forebay verify: every page and every record of a data set, decoded.
#include "format/lmdb/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "cli/sample_reports.hpp"
#include "forebay/error.hpp"
#include "format/convention/layout.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyCommand {
  DatasetOptions dataset;
  std::uint64_t max_faults = 100;
};

// A damaged first value must not decide what the others are taken for.
constexpr int kRecordsToLookAt = 8;

std::shared_ptr<const Codec> codec_at(lmdb::Database& database, const lmdb::Cursor& cursor,
                                      const CodecOptions& options) {
  try {
    return make_codec(options, database.tree().entry(cursor).value);
  } catch (const Error&) {
    return nullptr;
  }
}

/// What most of the first records are, undecoded bytes only if all are. Nothing when none of them
/// says, or when the tree cannot be read: what is wrong with it is for the walk to report.
std::shared_ptr<const Codec> find_codec(lmdb::Database& database, const CodecOptions& options) {
  std::vector<std::shared_ptr<const Codec>> codecs;
  try {
    lmdb::Cursor cursor = database.tree().first();
    for (int i = 0; i < kRecordsToLookAt && cursor.valid(); ++i) {
      if (auto codec = codec_at(database, cursor, options)) codecs.push_back(std::move(codec));
      if (!database.tree().next(cursor)) break;
    }
  } catch (const Error&) {
  }
  const auto votes = [&](const std::shared_ptr<const Codec>& codec) {
    if (codec->schema().fields.empty()) return std::ptrdiff_t{0};
    return std::ranges::count_if(
        codecs, [&](const auto& other) { return other->schema() == codec->schema(); });
  };
  const auto best = std::ranges::max_element(codecs, {}, votes);
  return best == codecs.end() ? nullptr : *best;
}

/// Decodes each record; where no record looked at had a codec, the first one that has decides.
class Decoder {
 public:
  Decoder(CodecOptions options, std::shared_ptr<const Codec> codec)
      : options_(std::move(options)), codec_(std::move(codec)) {}

  void operator()(const Record& record) {
    if (codec_ == nullptr) codec_ = make_codec(options_, record.value);
    if (buffers_ == nullptr) buffers_ = std::make_unique<FieldBuffers>(codec_->schema());
    codec_->decode(record.value, buffers_->spans());
  }

  const Codec* codec() const { return codec_.get(); }

 private:
  CodecOptions options_;
  std::shared_ptr<const Codec> codec_;
  std::unique_ptr<FieldBuffers> buffers_;
};

struct Outcome {
  lmdb::VerifyReport report;
  std::string codec;
  Schema schema;
  double seconds = 0;
};

// A request that makes no sense must not show up as a fault of each record.
void check_request(const CodecOptions& options) {
  const Schema declared = parse_schema(options.schema);
  if (options.codec == "raw" && declared.fields.empty()) make_codec(options, {});
}

Outcome check(const VerifyCommand& command) {
  check_request(command.dataset.codec);
  const auto start = std::chrono::steady_clock::now();
  lmdb::Database database = open_dataset(command.dataset);
  Decoder decoder(command.dataset.codec, find_codec(database, command.dataset.codec));
  Progress progress("verifying", database.entries());
  Outcome outcome;
  outcome.report =
      lmdb::verify(database, {.max_faults = command.max_faults}, [&](const Record& record) {
        progress.update(record.sample);
        decoder(record);
      });
  database.check_unchanged();
  if (decoder.codec() != nullptr) {
    outcome.codec = decoder.codec()->name();
    outcome.schema = decoder.codec()->schema();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Json to_json(const lmdb::Fault& fault) {
  return {{"database", fault.database},
          {"page", fault.page},
          {"offset", fault.offset},
          {"key", fault.key},
          {"text", fault.text}};
}

Json to_json(const Outcome& outcome, const std::string& path) {
  Json faults = Json::array();
  for (const lmdb::Fault& fault : outcome.report.faults) faults.push_back(to_json(fault));
  return {{"path", path},
          {"sound", outcome.report.sound()},
          {"records", outcome.report.records},
          {"codec", outcome.codec},
          {"schema", to_string(outcome.schema)},
          {"pages", outcome.report.pages},
          {"free_pages", outcome.report.free_pages},
          {"unreferenced_pages", outcome.report.unreferenced_pages},
          {"fault_count", outcome.report.fault_count},
          {"faults", faults},
          {"seconds", outcome.seconds}};
}

void print_outcome(const Outcome& outcome, const std::string& path) {
  const lmdb::VerifyReport& report = outcome.report;
  for (const lmdb::Fault& fault : report.faults) {
    fmt::print("{}: page {} at offset {}:{}{} {}\n", fault.database, fault.page, fault.offset,
               fault.key.empty() ? "" : " key ", fault.key.empty() ? "" : fault.key + ":",
               fault.text);
  }
  if (report.fault_count > report.faults.size()) {
    fmt::print("and {} more faults: see --max-faults\n",
               human_count(report.fault_count - report.faults.size()));
  }
  const std::string fields =
      outcome.schema.fields.empty() ? "not decoded" : "decoded as " + to_string(outcome.schema);
  fmt::print("{}: {} records {}, {} pages checked in {:.1f} s: {}\n", path,
             human_count(report.records), fields, human_count(report.pages), outcome.seconds,
             report.sound() ? "sound" : human_count(report.fault_count) + " faults");
}

/// Whether samples are the records of one database. What is wrong with bytes is
/// for the walk to find, what contradicts itself is an error now.
bool is_simply_records(const DatasetOptions& options) {
  const convention::ConventionOptions how{.convention = options.files.convention,
                                          .order_by = options.files.order_by};
  if (is_sample_set(options) || names_several_databases(options)) return false;
  lmdb::Database database = open_dataset(options);
  return database.entries() == 0 || convention::is_plain(database, how) ||
         !database.named_databases().empty();
}

void verify_dataset(const VerifyCommand& command) {
  const std::string& path = command.dataset.path;
  const Outcome outcome = check(command);
  if (command.dataset.json) {
    print_json(to_json(outcome, path));
  } else {
    print_outcome(outcome, path);
  }
  if (outcome.report.sound()) return;
  flush_output();
  throw Error(
      ErrorKind::corrupt,
      fmt::format("{} faults in {} records and {} pages", human_count(outcome.report.fault_count),
                  human_count(outcome.report.records), human_count(outcome.report.pages)),
      "restore the file from a copy, or pack the data set again", at_file(path));
}

}  // namespace

void add_verify_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("verify", "Check a data set and decode every sample");
  auto command = std::make_shared<VerifyCommand>();
  add_dataset_options(*sub, command->dataset);
  sub->add_option("--max-faults", command->max_faults, "Faults to list; all are counted")
      ->capture_default_str();
  sub->callback([command] {
    if (!is_simply_records(command->dataset)) {
      return verify_samples(command->dataset, command->max_faults);
    }
    verify_dataset(*command);
  });
}

}  // namespace forebay
