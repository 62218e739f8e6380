#include "cli/pack/input_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/limits.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"
#include "storage/file_error.hpp"
#include "storage/pread_file.hpp"
#include "storage/read_fully.hpp"

namespace forebay::pack {
namespace {

Error system_error(const std::string& path, const char* call, int code) {
  return {code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io,
          fmt::format("{}: {}", call, std::strerror(code)),
          remedy_for(code, "check the path and its permissions"), at_file(path)};
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw system_error(path, "stat", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::usage, "not a regular file", "name a file", at_file(path));
  }
  return status;
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  status_of(path_);
  file_ = gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) throw system_error(path_, "open", errno == 0 ? ENOMEM : errno);
  gzbuffer(file_, 1U << 18);
}

InputFile::~InputFile() {
  if (file_ != nullptr) gzclose(file_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}

void InputFile::seek(std::uint64_t offset) {
  const auto target = static_cast<z_off_t>(offset);
  if (gztell(file_) != target && gzseek(file_, target, SEEK_SET) != target) {
    throw Error(ErrorKind::corrupt, fmt::format("byte {} cannot be reached", offset),
                "the file is damaged or was cut: fetch it again", at_file(path_, offset));
  }
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) {
  seek(offset);
  while (!out.empty()) {
    const auto wanted = static_cast<unsigned>(std::min<std::size_t>(out.size(), INT_MAX));
    const int got = gzread(file_, out.data(), wanted);
    if (got <= 0) {
      const int failed = errno;
      int code = Z_OK;
      const char* reason = gzerror(file_, &code);
      if (code == Z_ERRNO) throw read_error(path_, offset, failed);
      throw Error(ErrorKind::corrupt,
                  code == Z_OK ? fmt::format("the file ends {} bytes too early", out.size())
                               : fmt::format("the file does not unpack: {}", reason),
                  "the file is damaged or was cut: fetch it again", at_file(path_, offset));
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void InputFile::check_end(std::uint64_t offset) {
  // Seeking in a plain file succeeds behind its end, so the last byte has to be seen.
  std::byte last{};
  if (offset > 0) read(offset - 1, std::span(&last, 1));
  const int got = gzread(file_, &last, 1);
  int code = Z_OK;
  gzerror(file_, &code);
  if (got == 0 && code == Z_OK) return;
  throw Error(ErrorKind::corrupt,
              got > 0 ? "the file goes on behind its last record" : "the file does not unpack",
              "the file is damaged or of another kind: see --from", at_file(path_, offset));
}

std::vector<std::byte> read_file(const std::string& path, std::uint64_t limit) {
  const std::uint64_t size = file_size(path);
  if (size > limit) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are more than the limit of {}", size, limit),
                "remove the file from the source", at_file(path));
  }
  std::vector<std::byte> bytes(size);
  const FileDescriptor file(path);
  const ReadResult result = read_fully(0, bytes, [&](std::byte* to, std::size_t count, auto at) {
    return ::pread(file.get(), to, count, static_cast<off_t>(at));
  });
  if (result.error != 0) throw read_error(path, result.filled, result.error);
  if (result.filled == size) return bytes;
  throw Error(ErrorKind::corrupt,
              fmt::format("it had {} bytes, and {} could be read", size, result.filled),
              "repeat it once nothing writes to the file", at_file(path));
}

std::uint64_t file_size(const std::string& path) {
  return static_cast<std::uint64_t>(status_of(path).st_size);
}

std::string file_fingerprint(const std::string& path) {
  const struct stat status = status_of(path);
  return fmt::format("{}:{}:{}.{:09}", std::filesystem::absolute(path).string(), status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace forebay::pack
