#include "cli/pack/packer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "cli/pack/destination.hpp"
#include "cli/pack/input_file.hpp"
#include "core/limits.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/dataset_files.hpp"
#include "format/lmdb/provenance/make_sidecar.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/lmdb/writer.hpp"
#include "format/user_cache.hpp"
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
// So many bad files say enough: where options do not suit the files, all are bad.
constexpr std::size_t kMostBad = 100;

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

/// What an earlier run must have had too. Files may be removed meanwhile: all of them is not a
/// number.
std::string plan_of(const Source& source, const Options& options, std::uint64_t count) {
  const bool all = source.has_files() && !options.count;
  return fmt::format("{},count={}", source.fingerprint(), all ? "all" : std::to_string(count));
}

ClassNames classes_of(const Source& source, const Options& options) {
  ClassNames names = source.classes();
  return names.empty() && !options.classes.empty() ? class_names_of(options.classes) : names;
}

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

/// What to do next where `remedy` mends the files. Records that were packed with other options are
/// no beginning of what it asks for.
std::string followed_up(const std::string& remedy) {
  constexpr std::array<std::string_view, 3> kOptions = {"--codec", "--encode", "--shape"};
  const bool other_options = std::ranges::any_of(
      kOptions, [&](std::string_view one) { return remedy.find(one) != std::string::npos; });
  return fmt::format("{}, {}; or leave such files out with --resume --on-error skip", remedy,
                     other_options ? "and start anew with --force" : "then go on with --resume");
}

/// The error of one or several files.
Error error_of(const std::vector<BadFile>& bad, const Error& first, std::uint64_t looked_at,
               bool gave_up) {
  if (bad.size() == 1) {
    const std::string remedy = first.remedy().empty() ? "mend or remove it" : first.remedy();
    return {first.kind(), first.happened(), followed_up(remedy), first.where()};
  }
  std::string all;
  const bool alike = !first.remedy().empty() && std::ranges::all_of(bad, [&](const BadFile& file) {
    return file.remedy == first.remedy();
  });
  for (const BadFile& file : bad) {
    all += fmt::format("{}{} ({})", all.empty() ? "" : "; ", shown_name(file.name), file.error);
  }
  return {first.kind(),
          fmt::format("{} of {} files cannot be packed{}: {}", bad.size(), looked_at,
                      gave_up ? ", and the others were not looked at" : "", all),
          followed_up(alike ? first.remedy() : "mend or remove them")};
}

class Packer {
 public:
  explicit Packer(const Options& options)
      : options_(options),
        source_(open_source(options)),
        count_(records_to_pack(*source_, options)),
        classes_(classes_of(*source_, options)),
        destination_(options, plan_of(*source_, options, count_)) {
    writer_.emplace(destination_.partial(), lmdb::WriterOptions{.commit_every = 0});
    is_new_ = writer_->entries() == 0;
  }

  Summary run() {
    try {
      return pack_all();
    } catch (const Error&) {
      // Nothing to resume, so nothing is to be in the way of the next command.
      if (is_new_ && done_.records == 0) discard();
      throw;
    }
  }

 private:
  Summary pack_all() {
    const auto start = std::chrono::steady_clock::now();
    summary_.destination = destination_.path();
    const std::uint64_t index = find_packed();
    summary_.resumed_from = done_.records;
    put_records(index);
    finish();
    summary_.records = packed_.records;
    summary_.file_bytes = file_size(destination_.path() + "/data.mdb");
    summary_.left_out = source_->left_out();
    summary_.notes = source_->notes();
    summary_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return summary_;
  }

  void discard() {
    writer_.reset();
    destination_.discard();
  }

  /// Finds out how many records are there already; the first that is not has number returned of the
  /// source's. Throws where what is there is not what the source begins with.
  std::uint64_t find_packed() {
    const std::uint64_t records = writer_->entries();
    std::uint64_t first = 0, end = records;
    if (source_->has_files() && records > 0) {
      std::tie(first, end) = find_packed_files(records);
    }
    packed_.records = records;
    done_ = packed_;
    if (records == 0) return 0;
    bool same = records <= count_ && is_packed(0, first);
    same = same && is_packed(records - 1, end - 1) && writer_->last_key() == last_key_;
    if (!same) refuse_packed(fmt::format("the {} records packed so far are not", records));
    return end;
  }

  /// The first of the files that are packed, and behind the last.
  std::pair<std::uint64_t, std::uint64_t> find_packed_files(std::uint64_t records) {
    const PackedFiles known = destination_.packed_files();
    const auto at = std::ranges::find(known.states, records, &PackedState::records);
    std::unordered_set<std::string> out;
    for (const BadFile& file : known.skipped) {
      // What was left out last may be mended: its place is the next one.
      if (file.at >= records) continue;
      out.insert(file.name);
      summary_.skipped.push_back(file);
    }
    std::optional<std::uint64_t> first;
    std::uint64_t index = 0;
    for (; packed_.records < records && index < source_->count(); ++index) {
      if (out.contains(source_->name(index))) continue;
      if (!first) first = index;
      add_state(index);
    }
    const bool same = at != known.states.end() && packed_ == *at;
    if (!same) refuse_files(records, out);
    return {*first, index};
  }

  /// Goes on with the file of number `index`, which is packed.
  void add_state(std::uint64_t index) {
    const std::string state = source_->name(index) + '\0' + source_->state(index);
    packed_.digest = XXH3_64bits_withSeed(state.data(), state.size(), packed_.digest);
    ++packed_.records;
  }

  [[noreturn]] void refuse_files(std::uint64_t records,
                                 const std::unordered_set<std::string>& out) {
    std::uint64_t record = 0;
    std::vector<std::byte> value;
    for (std::uint64_t index = 0; index < source_->count() && record < records; ++index) {
      const std::string name = source_->name(index);
      if (out.contains(name)) continue;
      if (!writer_->find(bytes_of(record_key(record++, count_, name)), value)) {
        refuse_packed(
            fmt::format("files were added or removed before '{}': the {} that are packed "
                        "are not",
                        shown_name(name), records));
      }
    }
    refuse_packed(fmt::format("one of the {} files that are packed was changed since: they are not",
                              records));
  }

  [[noreturn]] void refuse_packed(const std::string& what) {
    throw Error(ErrorKind::corrupt, what + " the first ones of the source",
                "start anew with --force", at_file(destination_.partial()));
  }

  /// Whether record `number` is that of `index` in the source.
  bool is_packed(std::uint64_t number, std::uint64_t index) {
    const std::string wanted = source_->read(index);
    const std::string key = record_key(number, count_, source_->name(index));
    last_key_.assign(bytes_of(key).begin(), bytes_of(key).end());
    std::vector<std::byte> value;
    return writer_->find(bytes_of(key), value) && std::ranges::equal(value, bytes_of(wanted));
  }

  /// From number `index` of the source on.
  void put_records(std::uint64_t index) {
    const InterruptGuard interrupt;
    Progress progress("packing", count_);
    std::uint64_t taken = packed_.records;  // records that there are, or would be of sound files
    for (; index < source_->count() && taken < count_ && bad_.size() < kMostBad; ++index) {
      if (interrupt.interrupted()) stop();
      const bool sound = take(index);
      if (sound || options_.on_error == OnError::fail) ++taken;
      progress.update(taken);
    }
    if (bad_.empty() && packed_.records > 0) return;
    commit();
    const bool gave_up = index < source_->count() && taken < count_;
    const std::uint64_t looked_at = taken + summary_.skipped.size();
    throw error_of(bad_.empty() ? summary_.skipped : bad_, *first_error_, looked_at, gave_up);
  }

  /// Packs number `index`, or only looks at it where another was bad before; false where it is bad
  /// itself.
  bool take(std::uint64_t index) {
    std::string value;
    try {
      value = source_->read(index);
    } catch (const Error& error) {
      if (!is_of_one_file(error)) end_with(error);
      if (!first_error_) first_error_ = error;
      const bool skip = options_.on_error == OnError::skip;
      (skip ? summary_.skipped : bad_)
          .push_back({.at = packed_.records,
                      .name = source_->name(index),
                      .error = error.happened(),
                      .remedy = error.remedy()});
      return false;
    }
    if (bad_.empty()) put(index, value);
    return true;
  }

  /// What was packed before is kept, for --resume.
  [[noreturn]] void end_with(const Error& error) {
    if (!source_->has_files() || packed_.records == 0) throw Error(error);
    commit();
    throw Error(error.kind(), error.happened(),
                fmt::format("{}, then go on with --resume", error.remedy()), error.where());
  }

  /// Whether others may be sound all the same. A file may be bad or not to be read by this user;
  /// where reading fails, the storage is bad.
  bool is_of_one_file(const Error& error) const {
    if (!source_->has_files()) return false;
    // Where all of the source went away, or no file can be opened any more.
    std::error_code failed;
    std::filesystem::directory_iterator(options_.source, failed);
    if (failed) return false;
    switch (error.kind()) {
      case ErrorKind::corrupt:
      case ErrorKind::unsupported:
      case ErrorKind::not_found:
      case ErrorKind::usage:
        return true;
      case ErrorKind::io:
        return ::access(error.where().file.c_str(), R_OK) != 0 && errno == EACCES;
      default:
        return false;
    }
  }

  void put(std::uint64_t index, const std::string& value) {
    const std::string key = record_key(packed_.records, count_, source_->name(index));
    write([&] { writer_->put(bytes_of(key), bytes_of(value)); });
    summary_.value_bytes += value.size();
    if (source_->has_files()) {
      add_state(index);
    } else {
      ++packed_.records;
    }
    if (packed_.records - done_.records >= options_.commit_every) commit();
  }

  /// The files that are in the database are known before they are there: a kill in between leaves
  /// those of before.
  void commit() {
    if (source_->has_files()) {
      destination_.keep({.states = {done_, packed_}, .skipped = summary_.skipped});
    }
    write([&] { writer_->commit(); });
    done_ = packed_;
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

  [[noreturn]] void stop() {
    commit();
    throw Error(ErrorKind::cancelled,
                fmt::format("interrupted after {} of {} records", packed_.records, count_),
                "continue with the same command and --resume", at_file(destination_.partial()));
  }

  void finish() {
    commit();
    const std::uint64_t records = writer_->entries();
    if (records != packed_.records) {
      throw Error(
          ErrorKind::changed,
          fmt::format("{} records are there after {} were packed", records, packed_.records),
          "another program wrote there: start anew with --force", at_file(destination_.partial()));
    }
    writer_.reset();
    if (options_.provenance) write_sidecar();
    write_classes();
    destination_.complete();
  }

  void write_classes() {
    summary_.classes = classes_;
    if (summary_.classes.empty()) return;
    write_whole_file(class_names_path(destination_.partial() + "/data.mdb"),
                     bytes_of(class_names_text(summary_.classes)));
  }

  // A data set without it is whole, so a failure does not spoil the packing.
  void write_sidecar() {
    try {
      lmdb::Database database = lmdb::Database::open(destination_.partial(), Engine::mmap);
      Progress progress("looking at leaves: records", packed_.records);
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
  ClassNames classes_;
  Destination destination_;
  std::optional<lmdb::Writer> writer_;
  bool is_new_ = true;  // nothing was packed there before
  PackedState done_;    // what is committed
  PackedState packed_;  // and what comes with the next commit
  std::vector<std::byte> last_key_;
  std::vector<BadFile> bad_;  // with OnError::fail
  std::optional<Error> first_error_;
  Summary summary_;
};

}  // namespace

Summary pack(const Options& options) { return Packer(options).run(); }

}  // namespace forebay::pack
