#include "cli/pack/destination.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/limits.hpp"
#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr const char* kFilesFile = "forebay-pack.files";
// Everything that a directory made by this program may hold; only such directories are removed.
constexpr std::array<std::string_view, 8> kOwnFiles{
    "data.mdb", "lock.mdb", "data.mdb.forebay",      "data.mdb.classes",
    kPackPlan,  kFilesFile, "forebay-pack.json.new", "forebay-pack.files.new"};

[[noreturn]] void throw_at(const std::string& path, ErrorKind kind, const std::string& happened,
                           const std::string& remedy) {
  throw Error(kind, happened, remedy, at_file(path));
}

[[noreturn]] void throw_system(const std::string& path, const char* call) {
  const int error = errno;
  throw_at(path, ErrorKind::io, fmt::format("{}: {}", call, std::strerror(error)),
           remedy_for(error, "check permissions and free space"));
}

bool holds_only_own_files(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    // What was being written beside the data when the program was killed.
    if (name.starts_with("data.mdb.") && name.ends_with(".part")) continue;
    if (std::find(kOwnFiles.begin(), kOwnFiles.end(), name) == kOwnFiles.end()) return false;
  }
  return true;
}

void clear_own_directory(const std::string& directory) {
  if (!holds_only_own_files(directory)) {
    throw_at(directory, ErrorKind::usage, "the directory holds other files than a data set",
             "remove it by hand, or name another DEST");
  }
  for (const auto& entry : fs::directory_iterator(directory)) fs::remove(entry.path());
}

void remove_own_directory(const std::string& directory) {
  clear_own_directory(directory);
  fs::remove(directory);
}

/// "another process (1234 of this machine)", as /proc/locks names who has locked the file behind
/// `fd`.
std::string holder_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return "another process";
  const std::string file =
      fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // "1: FLOCK  ADVISORY  WRITE 1234 08:02:12345 0 EOF"
    std::istringstream words(line);
    std::string number, kind, mode, access, place;
    std::int64_t process = 0;
    const bool read = bool(words >> number >> kind >> mode >> access >> process >> place);
    if (read && kind == "FLOCK" && place == file && process > 0) {
      return fmt::format("another process ({} of this machine)", process);
    }
  }
  return "another process, of another machine or container,";
}

/// A name is on the device when its directory is.
void sync_path(const std::string& path) {
  const int fd = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_system(path, "open");
  // Some file systems do not sync directories; they say so with EINVAL.
  const bool failed = fsync(fd) != 0 && errno != EINVAL;
  close(fd);
  if (failed) throw_system(path, "fsync");
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// Names of files are bytes: a list of numbers where they are no text.
Json bytes_json(const std::string& bytes) {
  try {
    static_cast<void>(Json(bytes).dump());
    return bytes;
  } catch (const Json::exception&) {
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  }
}

std::string bytes_of(const Json& json) {
  if (json.is_string()) return json;
  const auto bytes = json.get<std::vector<std::uint8_t>>();
  return {bytes.begin(), bytes.end()};
}

Json read_json(const std::string& file) {
  std::ifstream stream(file);
  return Json::parse(stream, nullptr, false);
}

/// The file appears whole, or stays what it was.
void write_json(const std::string& file, const Json& json) {
  const std::string fresh = file + ".new";
  {
    std::ofstream stream(fresh);
    stream << text_of(json) << '\n';
    if (!stream.flush()) throw_system(fresh, "write");
  }
  sync_path(fresh);
  if (std::rename(fresh.c_str(), file.c_str()) != 0) throw_system(file, "rename");
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Destination::Destination(const Options& options, std::string plan)
    : path_(without_trailing_slash(options.destination)),
      partial_(path_ + ".partial"),
      plan_(std::move(plan)),
      force_(options.force) {
  if (path_.empty()) throw_at("DEST", ErrorKind::usage, "the name is empty", "name a directory");
  try {
    check_destination();
    lock_partial();
    prepare_partial(options.resume, options.force);
  } catch (const fs::filesystem_error& error) {
    throw_at(error.path1().string(), ErrorKind::io, error.code().message(),
             "check permissions and free space");
  }
}

Destination::~Destination() {
  if (lock_ >= 0) close(lock_);
}

void Destination::check_destination() const {
  if (!fs::exists(fs::symlink_status(path_))) return;
  if (!force_) {
    throw_at(path_, ErrorKind::usage, "the destination exists",
             "name another one, or replace it with --force");
  }
  if (!fs::is_directory(fs::symlink_status(path_)) || !holds_only_own_files(path_)) {
    throw_at(path_, ErrorKind::usage, "the destination is something else than a data set directory",
             "--force replaces data sets only: remove it by hand, or name another DEST");
  }
}

/// What another process packs into is looked at by nobody else: the directory is locked before.
void Destination::lock_partial() {
  for (;;) {
    fs::create_directories(partial_);
    lock_ = open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0) throw_system(partial_, "open");
    lock_alone(lock_);
    // It may have been finished, and so renamed, since it was opened.
    struct stat locked {};
    struct stat named {};
    const bool same = fstat(lock_, &locked) == 0 && stat(partial_.c_str(), &named) == 0 &&
                      locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
    if (same) break;
    close(std::exchange(lock_, -1));
    check_destination();
  }
  // Earlier versions lock this instead.
  const int plan = open((fs::path(partial_) / kPackPlan).c_str(), O_RDONLY | O_CLOEXEC);
  if (plan < 0) return;
  lock_alone(plan);
  close(plan);
}

void Destination::lock_alone(int fd) const {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw_at(partial_, ErrorKind::changed, holder_of(fd) + " is packing here",
           "wait for it, or name another DEST");
}

void Destination::prepare_partial(bool resume, bool force) {
  if (resume && fs::exists(fs::path(partial_) / kPackPlan)) return check_plan();
  // Killed before anything was packed: nothing to resume, nothing to lose.
  if (!force && fs::exists(fs::path(partial_) / "data.mdb")) {
    throw_at(partial_, ErrorKind::usage, "an interrupted packing is in the way",
             "continue it with --resume, or start anew with --force");
  }
  clear_own_directory(partial_);
  write_plan();
}

void Destination::check_plan() const {
  const std::string file = (fs::path(partial_) / kPackPlan).string();
  const Json json = read_json(file);
  const bool readable = json.is_object() && json.contains("plan") && json["plan"].is_string();
  // As it was written, whatever its bytes were.
  if (readable && text_of(Json(json["plan"])) == text_of(Json(plan_))) return;
  throw_at(file, ErrorKind::usage,
           "the interrupted packing was of another source, or with other options",
           "repeat its command with --resume, or start anew with --force");
}

void Destination::write_plan() const {
  write_json(fs::path(partial_) / kPackPlan, {{"plan", plan_}});
  sync_path(partial_);
}

void Destination::keep(const PackedFiles& files) const {
  Json states = Json::array(), skipped = Json::array();
  for (const PackedState& state : files.states) states.push_back({state.records, state.digest});
  for (const BadFile& file : files.skipped) {
    skipped.push_back({{"at", file.at}, {"file", bytes_json(file.name)}, {"error", file.error}});
  }
  write_json(fs::path(partial_) / kFilesFile, {{"packed", states}, {"skipped", skipped}});
}

PackedFiles Destination::packed_files() const {
  PackedFiles files;
  try {
    const Json json = read_json(fs::path(partial_) / kFilesFile);
    for (const Json& state : json.at("packed")) {
      files.states.push_back({.records = state.at(0), .digest = state.at(1)});
    }
    for (const Json& file : json.at("skipped")) {
      files.skipped.push_back(
          {.at = file.at("at"), .name = bytes_of(file.at("file")), .error = file.at("error")});
    }
  } catch (const Json::exception&) {
    return {};
  }
  return files;
}

void Destination::discard() const {
  try {
    remove_own_directory(partial_);
  } catch (const std::exception&) {
    // The error that is on its way says more.
  }
}

void Destination::complete() {
  try {
    if (force_ && fs::exists(path_)) remove_own_directory(path_);
    sync_path(partial_);
    fs::rename(partial_, path_);
    for (const char* file : {kPackPlan, kFilesFile}) fs::remove(fs::path(path_) / file);
    sync_path(path_);
    sync_path(fs::path(path_).parent_path().string());
  } catch (const fs::filesystem_error& error) {
    throw_at(error.path1().string(), ErrorKind::io, error.code().message(),
             "check permissions and free space; the records are all in " + partial_);
  }
}

}  // namespace forebay::pack
