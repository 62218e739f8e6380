#include "storage/engine_choice.hpp"

#include <fmt/format.h>

#include <atomic>

#include "forebay/log.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

void say_once(const std::string& refusal) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) log_message(LogLevel::info, refusal + "; reading by pread instead");
}

}  // namespace

EngineChoice choose_engine(const File& file, bool scattered, const UringProbe& probe) {
  if (file.descriptor() < 0) return {Engine::pread, "the bytes are not on a file system"};
  const std::string system = file_system_name(file.descriptor());
  const bool local = file.is_local();
  const bool deep = scattered && system != "tmpfs";
  if (local && !deep) return {Engine::pread, fmt::format("{} is local", system)};
  if (const int error = probe(); error != 0) {
    const std::string refusal = uring_refusal(error);
    say_once(refusal);
    return {Engine::pread, refusal};
  }
  if (local) return {Engine::uring, fmt::format("{} is local, reads are scattered", system)};
  return {Engine::uring, fmt::format("io_uring is available, file system {}", system)};
}

EngineChoice choose_engine(const File& file, bool scattered) {
  return choose_engine(file, scattered, probe_uring);
}

}  // namespace forebay
