#include "cli/pack/packer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "cli/pack/destination.hpp"
#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/lmdb/provenance/make_sidecar.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/writer.hpp"
#include "program/output.hpp"

namespace forebay::pack {
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

  // LMDB takes a full disk for an input/output error, so the message says how much room there is.
  template <typename Call>
  void write(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      std::error_code unknown;
      const auto space = std::filesystem::space(destination_.partial(), unknown);
      throw Error(ErrorKind::io,
                  fmt::format("{} ({} are free there)", error.happened(),
                              unknown ? "unknown bytes" : human_bytes(space.available)),
                  "make room, then continue with the same command and --resume", error.where());
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

Summary pack(const Options& options) { return Packer(options).run(); }

std::string record_key(std::uint64_t index, std::uint64_t count, const std::string& name) {
  const std::size_t digits = std::max(kMinDigits, std::to_string(count - 1).size());
  std::string key = fmt::format("{:0{}}", index, digits);
  if (name.empty()) return key;
  key += '_';
  const std::size_t room = kMaxKeyBytes - key.size();
  return key + (name.size() <= room ? name : name.substr(name.size() - room));
}

}  // namespace forebay::pack
