// forebay pack: from files of images, or from nothing, to an LMDB data set of Caffe Datums.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/pack/destination.hpp"
#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "core/limits.hpp"
#include "core/non_copyable.hpp"
#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/codec/codecs.hpp"
#include "format/lmdb/provenance/make_sidecar.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/writer.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"

namespace forebay {
namespace pack {
namespace {

// A signal handler can reach nothing but static storage.
volatile std::sig_atomic_t interrupted_flag = 0;

void remember(int) { interrupted_flag = 1; }

/// Ctrl-C as a question that a loop asks, instead of a death in the middle of a write: while it
/// lives, SIGINT and SIGTERM are remembered; a second one ends the process as usual. One at a time
/// in a process.
class InterruptGuard : private NonCopyable {
 public:
  InterruptGuard() {
    interrupted_flag = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }

  bool interrupted() const { return interrupted_flag != 0; }

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

constexpr std::size_t kMinDigits = 8;
constexpr std::size_t kMaxKeyBytes = 511;  // LMDB as it is built everywhere

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::uint64_t records_to_pack(const Source& source, const Options& options) {
  const std::uint64_t count = options.count.value_or(source.count());
  if (count == 0 || count > source.count()) {
    throw Error(ErrorKind::usage,
                count == 0
                    ? "the source holds no records"
                    : fmt::format("the source holds {} records, fewer than the {} of --count",
                                  source.count(), count),
                "see --from and --count", at_file(options.source));
  }
  return count;
}

struct Summary {
  std::string destination;
  std::uint64_t records = 0;
  std::uint64_t resumed_from = 0;  ///< records that an earlier run had packed
  std::uint64_t value_bytes = 0;   ///< of the records that this run packed
  std::uint64_t file_bytes = 0;
  std::string sidecar = "none";  ///< form of the sidecar, or why there is none
  double seconds = 0;
};

/// "00000042", or "00000042_cats/a.jpg": digits enough for `count` records and at least eight, as
/// in Caffe's tools, so that the order of the keys is the order of the numbers. A name that is too
/// long for a key loses its beginning.
std::string record_key(std::uint64_t index, std::uint64_t count, const std::string& name) {
  const std::size_t digits = std::max(kMinDigits, std::to_string(count - 1).size());
  std::string key = fmt::format("{:0{}}", index, digits);
  if (name.empty()) return key;
  key += '_';
  const std::size_t room = kMaxKeyBytes - key.size();
  return key + (name.size() <= room ? name : name.substr(name.size() - room));
}

/// Packs as asked. Throws usage, not_found, corrupt, io; cancelled after Ctrl-C. After any error
/// what was committed waits in DEST.partial for --resume.
class Packer {
 public:
  explicit Packer(const Options& options)
      : options_(options),
        source_(open_source(options)),
        count_(records_to_pack(*source_, options)),
        destination_(options, fmt::format("{},count={}", source_->fingerprint(), count_)) {
    lmdb::WriterOptions writing;
    writing.commit_every = options.commit_every;
    writer_.emplace(destination_.partial(), writing);
  }

  Summary run() {
    const auto start = std::chrono::steady_clock::now();
    summary_.destination = destination_.path();
    summary_.resumed_from = first_record();
    put_records();
    finish();
    summary_.records = count_;
    summary_.file_bytes = file_size(destination_.path() + "/data.mdb");
    summary_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return summary_;
  }

 private:
  /// How many records are there already, having compared the ends of what is there.
  std::uint64_t first_record() {
    const std::uint64_t packed = writer_->entries();
    if (packed == 0) return 0;
    bool same = packed <= count_;
    for (const std::uint64_t index : {std::uint64_t{0}, packed - 1}) {
      same = same && is_packed(index);
    }
    if (same && writer_->last_key() == last_key_) return packed;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("the {} records packed so far are not the first ones of the source", packed),
        "start anew with --force", at_file(destination_.partial()));
  }

  bool is_packed(std::uint64_t index) {
    const SourceRecord record = source_->read(index);
    const std::string key = record_key(index, count_, record.name);
    last_key_.assign(bytes_of(key).begin(), bytes_of(key).end());
    std::vector<std::byte> value;
    return writer_->find(bytes_of(key), value) && std::ranges::equal(value, bytes_of(record.value));
  }

  void put_records() {
    const InterruptGuard interrupt;
    Progress progress("packing", count_);
    for (std::uint64_t index = summary_.resumed_from; index < count_; ++index) {
      if (interrupt.interrupted()) stop(index);
      const SourceRecord record = source_->read(index);
      const std::string key = record_key(index, count_, record.name);
      write([&] { writer_->put(bytes_of(key), bytes_of(record.value)); });
      summary_.value_bytes += record.value.size();
      progress.update(index + 1);
    }
  }

  // LMDB takes a full disk, and a file as large as it may be, for an input/output error, so the
  // message says how much room there is.
  template <typename Call>
  void write(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      std::error_code unknown;
      const auto space = std::filesystem::space(destination_.partial(), unknown);
      std::string room = unknown ? "unknown bytes" : human_bytes(space.available);
      room += " are free there";
      const auto most = largest_file();
      if (most) room += fmt::format(", 'ulimit -f' allows files of {}", human_bytes(*most));
      throw Error(ErrorKind::io, fmt::format("{} ({})", error.happened(), room),
                  fmt::format("make room{}, then continue with the same command and --resume",
                              most ? ", or raise that limit" : ""),
                  error.where());
    }
  }

  [[noreturn]] void stop(std::uint64_t packed) {
    writer_->commit();
    throw Error(ErrorKind::cancelled,
                fmt::format("interrupted after {} of {} records", packed, count_),
                "continue with the same command and --resume", at_file(destination_.partial()));
  }

  void finish() {
    write([&] { writer_->commit(); });
    const std::uint64_t packed = writer_->entries();
    if (packed != count_) {
      throw Error(ErrorKind::changed,
                  fmt::format("{} records are there after {} were packed", packed, count_),
                  "another program wrote there: start anew with --force",
                  at_file(destination_.partial()));
    }
    writer_.reset();
    if (options_.provenance) write_sidecar();
    destination_.complete();
  }

  // A data set without it is whole, so a failure does not spoil the packing.
  void write_sidecar() {
    try {
      lmdb::Database database = lmdb::Database::open(destination_.partial(), Engine::mmap);
      Progress progress("looking at leaves: records", count_);
      const lmdb::MadeSidecar made = lmdb::make_sidecar(
          database, lmdb::WantedForm::automatic, {.commit_every = options_.commit_every},
          [&](std::uint64_t records) { progress.update(records); });
      const auto path = lmdb::resolve_dataset_path(destination_.partial());
      write_whole_file(lmdb::sidecar_path(path), made.bytes);
      summary_.sidecar = to_string(made.form);
    } catch (const Error& error) {
      summary_.sidecar = std::string("none: ") + error.what();
      log_message(LogLevel::warning, fmt::format("no sidecar was written: {}", error.what()));
    }
  }

  const Options& options_;
  std::unique_ptr<Source> source_;
  std::uint64_t count_;
  Destination destination_;
  std::optional<lmdb::Writer> writer_;
  std::vector<std::byte> last_key_;
  Summary summary_;
};

}  // namespace
}  // namespace pack

namespace {

using pack::Encoding;
using pack::Options;
using pack::Origin;

const std::map<std::string, Origin> kOrigins{{"idx", Origin::idx},
                                             {"cifar10", Origin::cifar10},
                                             {"folder", Origin::folder},
                                             {"raw", Origin::raw},
                                             {"synthetic", Origin::synthetic}};
const std::map<std::string, Encoding> kEncodings{
    {"raw", Encoding::raw}, {"jpeg", Encoding::jpeg}, {"png", Encoding::png}};

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
the path. The data set is written as DEST.partial and gets its name when it is complete.)";

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

void print_summary(const Options& options, const pack::Summary& summary) {
  if (options.json) {
    print_json({{"destination", summary.destination},
                {"records", summary.records},
                {"resumed_from", summary.resumed_from},
                {"value_bytes", summary.value_bytes},
                {"file_bytes", summary.file_bytes},
                {"sidecar", summary.sidecar},
                {"seconds", summary.seconds}});
    return;
  }
  fmt::print("packed {} records, {} of values, in {:.1f} s\n",
             human_count(summary.records - summary.resumed_from), human_bytes(summary.value_bytes),
             summary.seconds);
  if (summary.resumed_from > 0) {
    fmt::print("continued behind {} records of an earlier run\n",
               human_count(summary.resumed_from));
  }
  fmt::print("{}: {} records, data.mdb has {}\n", summary.destination, human_count(summary.records),
             human_bytes(summary.file_bytes));
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

  void run() {
    if (!shape.empty()) options.shape = parse_shape(shape);
    options.images = parse_images(codec, options.from);
    print_summary(options, pack::Packer(options).run());
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
  auto* resume = app.add_flag("--resume", options.resume, "Continue an interrupted packing");
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
  sub->callback([command] { command->run(); });
}

}  // namespace forebay
