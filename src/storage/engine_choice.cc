#include "storage/engine_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "forebay/log.hpp"
#include "storage/file_error.hpp"
#include "storage/plugin.hpp"
#include "storage/pread_file.hpp"

namespace forebay {
namespace {

void say_once(const std::string& refusal) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) log_message(LogLevel::info, refusal + "; reading by pread instead");
}

constexpr std::string_view kLocal[] = {"ext4", "xfs",     "btrfs",    "f2fs",    "zfs",
                                       "vfat", "overlay", "squashfs", "iso9660", "tmpfs"};

}  // namespace

bool on_local_device(const File& file) {
  if (dynamic_cast<const PluginFile*>(&file) != nullptr) return false;  // who knows
  const auto* on_disk = dynamic_cast<const PreadFile*>(&file);
  return on_disk == nullptr ||
         std::ranges::find(kLocal, file_system_name(on_disk->fd())) != std::end(kLocal);
}

EngineChoice choose_engine(const File& file, bool scattered, const UringProbe& probe) {
  const auto* on_disk = dynamic_cast<const PreadFile*>(&file);
  if (on_disk == nullptr) return {Engine::pread, "the bytes are not on a file system"};
  const std::string system = file_system_name(on_disk->fd());
  const bool local = on_local_device(file);
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
