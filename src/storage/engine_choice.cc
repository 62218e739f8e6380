#include "storage/engine_choice.hpp"

#include <fmt/format.h>

#include <atomic>

#include "forebay/log.hpp"
#include "storage/file_error.hpp"
#include "storage/pread_file.hpp"

namespace forebay {
namespace {

void say_once(const std::string& refusal) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) log_message(LogLevel::info, refusal + "; reading by pread instead");
}

}  // namespace

EngineChoice choose_engine(const File& file, const UringProbe& probe) {
  const auto* on_disk = dynamic_cast<const PreadFile*>(&file);
  if (on_disk == nullptr) return {Engine::pread, "the bytes are not on a file system"};
  const std::string system = file_system_name(on_disk->fd());
  if (system == "tmpfs") return {Engine::pread, "tmpfs is memory: nothing to wait for"};
  if (const int error = probe(); error != 0) {
    const std::string refusal = uring_refusal(error);
    say_once(refusal);
    return {Engine::pread, refusal};
  }
  return {Engine::uring, fmt::format("io_uring is available, file system {}", system)};
}

EngineChoice choose_engine(const File& file) { return choose_engine(file, probe_uring); }

}  // namespace forebay
