// One storage plug-in (forebay/storage_plugin.h) and its files, with nothing believed that it says.
//
//   what the plug-in may do                        what becomes of it
//   exports no table, another version, too short   unsupported, before any of its code runs
//   leaves members out, names a bad scheme         unsupported, usage
//   returns an error, with or without text         an Error of that kind, with the text made fit
//   throws                                         an io Error
//   reads less than wanted, or nothing             asked again, or the end of the file
//   says that it read more than wanted             an io Error
//   opens without a file                           an io Error
//
// Each of these Errors names the plug-in. Code that writes where it must not cannot be defended
// against: a plug-in is as trusted as the program.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "forebay/storage_plugin.h"

namespace forebay {

class PluginFile;

/// A plug-in that is ready. Thread-safe. Lives for as long as any of its files.
class StoragePlugin : public std::enable_shared_from_this<StoragePlugin>, private NonCopyable {
 public:
  /// Who serves a scheme already; empty: nobody.
  using Taken = std::function<std::string(const std::string& scheme)>;

  /// Loads and initialises what is in the shared object `path`. Throws as load_storage_plugin().
  static std::shared_ptr<const StoragePlugin> load(const std::string& path, const Taken& taken);
  ~StoragePlugin();

  /// `name` is what stands behind "scheme://".
  std::shared_ptr<const File> open(const std::string& name) const;

  const std::string& path() const { return path_; }
  const std::string& scheme() const { return scheme_; }

 private:
  friend class PluginFile;
  using Step = std::function<int(char* error, std::size_t error_size)>;

  StoragePlugin(std::string path, const forebay_storage_plugin& table);

  /// Calls `step` and throws what it reports; `what` completes "the plug-in ... failed to ...".
  void call(const char* what, const Where& where, const Step& step) const;
  /// Calls what cannot report anything; an exception is logged.
  void call_quietly(const char* what, const std::function<void()>& step) const noexcept;
  /// An io Error for what no plug-in may do.
  Error nonsense(const std::string& happened, const Where& where) const;

  std::string path_;
  std::string scheme_;
  forebay_storage_plugin table_;  ///< a copy; members that the plug-in does not have are null
  void* state_ = nullptr;
  bool ready_ = false;
};

/// Thread-safe. `counters` count calls of the plug-in.
class PluginFile final : public File {
 public:
  PluginFile(std::shared_ptr<const StoragePlugin> plugin, const std::string& name);
  ~PluginFile() override;

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::span<const std::byte> map() const override { return {}; }
  void check() const override {}
  FileFingerprint fingerprint() const override;
  FileCounters counters() const override;

 private:
  std::uint64_t read_some(std::uint64_t offset, std::span<std::byte> out) const;

  std::shared_ptr<const StoragePlugin> plugin_;
  std::string path_;
  void* file_ = nullptr;
  mutable std::atomic<std::uint64_t> requests_ = 0;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace forebay
