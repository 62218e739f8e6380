#include "storage/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "storage/file_error.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

constexpr const char* kSymbol = "forebay_storage_plugin_v1";
constexpr const char* kRebuild =
    "build it with the header forebay/storage_plugin.h of this Forebay";
constexpr std::size_t kErrorBytes = 512;
/// What every table has: all up to the optional members.
constexpr std::size_t kRequiredBytes = offsetof(forebay_storage_plugin, identity);

/// Closed unless it is kept, which it is once code of the plug-in may have run.
class SharedObject : private NonCopyable {
 public:
  explicit SharedObject(const std::string& path) : path_(path) {
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* reason = ::dlerror();
    throw Error(ErrorKind::unsupported,
                fmt::format("the storage plug-in cannot be loaded: {}",
                            reason == nullptr ? "no reason given" : reason),
                "build it for this machine, and see that the libraries it needs are found",
                {.file = path});
  }
  ~SharedObject() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  const forebay_storage_plugin& table() const {
    const void* symbol = ::dlsym(handle_, kSymbol);
    if (symbol != nullptr) return *static_cast<const forebay_storage_plugin*>(symbol);
    throw Error(ErrorKind::unsupported,
                fmt::format("this is no storage plug-in: it does not export {}", kSymbol), kRebuild,
                {.file = path_});
  }
  void keep() { handle_ = nullptr; }

 private:
  std::string path_;
  void* handle_ = nullptr;
};

void require_path(const std::string& path) {
  const Where where{.file = path};
  if (!std::filesystem::path(path).is_absolute()) {
    throw Error(ErrorKind::usage, "a storage plug-in is named by its absolute path only",
                "write it with a '/' in front", where);
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return;
  throw Error(ErrorKind::not_found, "there is no storage plug-in of that name",
              "check the path, and that this node sees the file", where);
}

/// One line of printable text, whatever the plug-in has written.
std::string as_line(std::string text) {
  text.resize(std::min(text.size(), kErrorBytes));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

/// The members that the plug-in knows of, once it is clear that it has those that it must have.
forebay_storage_plugin checked_copy(const forebay_storage_plugin& table, const std::string& path) {
  const Where where{.file = path};
  if (table.abi_version != FOREBAY_STORAGE_ABI) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the storage plug-in is of interface version {}, this Forebay knows {}",
                            table.abi_version, static_cast<int>(FOREBAY_STORAGE_ABI)),
                kRebuild, where);
  }
  if (table.struct_size < kRequiredBytes) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the table of the storage plug-in has {} bytes, {} are needed",
                            table.struct_size, kRequiredBytes),
                kRebuild, where);
  }
  forebay_storage_plugin copy{};
  std::memcpy(&copy, &table, std::min(table.struct_size, sizeof(copy)));
  const bool complete = copy.init != nullptr && copy.shut_down != nullptr && copy.open != nullptr &&
                        copy.size != nullptr && copy.read != nullptr && copy.close != nullptr;
  if (complete) return copy;
  throw Error(ErrorKind::unsupported, "the storage plug-in leaves out functions that it must have",
              "only identity may be null", where);
}

std::string checked_scheme(const char* scheme, const std::string& path) {
  const std::size_t length = scheme == nullptr ? 0 : ::strnlen(scheme, kLongestScheme + 1);
  std::string text(scheme == nullptr ? "" : scheme, length);
  if (is_scheme(text)) return text;
  throw Error(ErrorKind::usage,
              fmt::format("the storage plug-in serves no usable scheme: '{}'", as_line(text)),
              "a scheme is a small letter, then small letters, digits, '+', '-' or '.'",
              {.file = path});
}

ErrorKind kind_of(int code) {
  switch (code) {
    case FOREBAY_STORAGE_NOT_FOUND:
      return ErrorKind::not_found;
    case FOREBAY_STORAGE_USAGE:
      return ErrorKind::usage;
    case FOREBAY_STORAGE_UNSUPPORTED:
      return ErrorKind::unsupported;
    default:
      return ErrorKind::io;
  }
}

std::string reason_in(std::array<char, kErrorBytes>& buffer, int code) {
  buffer.back() = '\0';
  const std::string text = as_line(buffer.data());
  return text.empty() ? fmt::format("it gives no reason (code {})", code) : text;
}

}  // namespace

std::shared_ptr<const StoragePlugin> StoragePlugin::load(const std::string& path,
                                                         const Taken& taken) {
  require_path(path);
  SharedObject object(path);
  // Not make_shared: the constructor is nobody else's affair.
  std::shared_ptr<StoragePlugin> plugin(new StoragePlugin(path, object.table()));
  if (const std::string by = taken(plugin->scheme_); !by.empty()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the storage plug-in is for '{}://', which {} serves", plugin->scheme_, by),
        "load only one of them", {.file = path});
  }
  object.keep();
  plugin->call("start", {.file = path}, [&](char* error, std::size_t size) {
    return plugin->table_.init(&plugin->state_, error, size);
  });
  plugin->ready_ = true;
  return plugin;
}

StoragePlugin::StoragePlugin(std::string path, const forebay_storage_plugin& table)
    : path_(std::move(path)), table_(checked_copy(table, path_)) {
  scheme_ = checked_scheme(table_.scheme, path_);
}

StoragePlugin::~StoragePlugin() {
  if (ready_) call_quietly("shut down", [this] { table_.shut_down(state_); });
}

std::shared_ptr<const File> StoragePlugin::open(const std::string& name) const {
  return std::make_shared<PluginFile>(shared_from_this(), name);
}

void StoragePlugin::call(const char* what, const Where& where, const Step& step) const {
  std::array<char, kErrorBytes> text{};
  int code = FOREBAY_STORAGE_OK;
  try {
    code = step(text.data(), text.size());
  } catch (const std::exception& error) {
    throw nonsense(
        fmt::format("threw an exception when it was to {}: {}", what, as_line(error.what())),
        where);
  } catch (...) {
    throw nonsense(fmt::format("threw something when it was to {}", what), where);
  }
  if (code == FOREBAY_STORAGE_OK) return;
  throw Error(
      kind_of(code),
      fmt::format("the storage plug-in {} failed to {}: {}", path_, what, reason_in(text, code)),
      "see the documentation of the plug-in", where);
}

void StoragePlugin::call_quietly(const char* what,
                                 const std::function<void()>& step) const noexcept {
  try {
    step();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "the storage plug-in {} threw when it was to {}: {}", path_, what,
        error.what());
  } catch (...) {
    log(LogLevel::warning, "the storage plug-in {} threw when it was to {}", path_, what);
  }
}

Error StoragePlugin::nonsense(const std::string& happened, const Where& where) const {
  return {ErrorKind::io, fmt::format("the storage plug-in {} {}", path_, happened),
          "this is a fault of the plug-in: tell its makers", where};
}

PluginFile::PluginFile(std::shared_ptr<const StoragePlugin> plugin, const std::string& name)
    : plugin_(std::move(plugin)), path_(plugin_->scheme() + "://" + name) {
  const Where where{.file = path_};
  plugin_->call("open this", where, [&](char* error, std::size_t size) {
    return plugin_->table_.open(plugin_->state_, name.c_str(), &file_, error, size);
  });
  if (file_ == nullptr) throw plugin_->nonsense("opened this, but gave no file", where);
}

PluginFile::~PluginFile() {
  plugin_->call_quietly("close a file", [this] { plugin_->table_.close(file_); });
}

std::uint64_t PluginFile::size() const {
  std::uint64_t bytes = 0;
  plugin_->call("tell the size", {.file = path_}, [&](char* error, std::size_t size) {
    return plugin_->table_.size(file_, &bytes, error, size);
  });
  return bytes;
}

void PluginFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t wanted = out.size();
  if (offset > UINT64_MAX - wanted) throw end_of_file_error(path_, offset, wanted, size());
  std::uint64_t filled = 0;
  while (filled < wanted) {
    const std::uint64_t got = read_some(offset + filled, out.subspan(filled));
    if (got == 0) throw end_of_file_error(path_, offset, wanted, offset + filled);
    filled += got;
  }
}

std::uint64_t PluginFile::read_some(std::uint64_t offset, std::span<std::byte> out) const {
  const Where where{.file = path_, .offset = offset};
  std::uint64_t got = 0;
  requests_.fetch_add(1, std::memory_order_relaxed);
  plugin_->call("read", where, [&](char* error, std::size_t size) {
    return plugin_->table_.read(file_, offset, out.data(), out.size(), &got, error, size);
  });
  if (got > out.size()) {
    throw plugin_->nonsense(fmt::format("says that it read {} bytes of {}", got, out.size()),
                            where);
  }
  bytes_.fetch_add(got, std::memory_order_relaxed);
  return got;
}

FileFingerprint PluginFile::fingerprint() const {
  FileFingerprint fingerprint;
  fingerprint.size = size();
  if (plugin_->table_.identity == nullptr) return fingerprint;
  plugin_->call("identify this", {.file = path_}, [&](char* error, std::size_t size) {
    return plugin_->table_.identity(file_, &fingerprint.inode, error, size);
  });
  return fingerprint;
}

FileCounters PluginFile::counters() const {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed)};
}

}  // namespace forebay
