#include "format/kept_members.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/log.hpp"
#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/user_cache.hpp"

namespace forebay {
namespace {

constexpr std::string_view kMagic = "FBMEMB3\n";
// Clocks of file systems are as coarse as that.
constexpr std::int64_t kJustNow = 2'000'000'000;

/// An index is smaller than what it is of.
std::uint64_t most_bytes(const DataFiles& files) {
  std::uint64_t most = std::uint64_t{1} << 20;
  for (const auto& file : files) most += file->size();
  return most;
}

struct Kept {
  std::vector<std::byte> bytes;  ///< none: nothing that can be used
  FoundMembers found;
};

Kept find_kept(const std::string& path, const std::string& identity, const DataFiles& files) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  try {
    auto bytes = read_small_file(path, most_bytes(files));
    auto found = from_kept_bytes(bytes, identity, files.size());
    return {.bytes = std::move(bytes), .found = std::move(found)};
  } catch (const Error& error) {
    log(LogLevel::warning, "{} is not used: {}", path, error.what());
    return {};
  }
}

/// Takes what peer 0 has; false where it has nothing.
bool share_kept(Kept& kept, std::string& identity, const DataFiles& files, Peers& peers) {
  if (peers.size() == 1) return !kept.bytes.empty();
  identity = peers.told_by(0, identity);
  const std::string told = peers.told_by(0, std::string(chars_of(kept.bytes)));
  if (told.empty()) return false;
  kept.bytes.clear();
  if (peers.rank() != 0) kept.found = from_kept_bytes(bytes_of(told), identity, files.size());
  return true;
}

void keep(const std::string& path, const std::string& identity, const FoundMembers& found) {
  try {
    write_whole_file(path, kept_bytes(identity, found));
    log(LogLevel::info, "what the walk has found is kept in {}", path);
  } catch (const Error& error) {
    log(LogLevel::info, "what the walk has found is not kept: {}", error.what());
  }
}

/// Each peer walks through its part of the files, and tells what it has found.
FoundMembers walk_together(const DataFiles& files, Peers& peers, const WalkFile& walk) {
  FoundMembers mine;
  peers.together([&] {
    const auto part = peers.part_of(files.size());
    for (auto f = static_cast<std::uint32_t>(part.begin); f < part.end; ++f) {
      walk(*files[f], f, mine);
    }
  });
  if (peers.size() == 1) return mine;
  ByteWriter out;
  mine.write(out);
  const std::string told(chars_of(out.bytes()));
  mine = {};
  std::vector<std::string> theirs;
  for (int peer = 0; peer < peers.size(); ++peer) theirs.push_back(peers.told_by(peer, told));
  FoundMembers all;
  peers.together([&] {
    for (const std::string& found : theirs) {
      ByteReader in(bytes_of(found));
      all.append(FoundMembers::read(in, files.size()));
    }
  });
  return all;
}

std::string cache_path(const FormatRequest& request, const std::string& identity) {
  if (!request.options.keeps || identity.empty()) return {};
  return user_cache_path(identity).value_or(std::string());
}

}  // namespace

std::string identity_of(const std::string& format, const DataFiles& files) {
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  std::string identity = format;
  for (const auto& file : files) {
    const FileFingerprint is = file->fingerprint();
    if (!file->has_descriptors() || is.modified_ns > now.count() - kJustNow) return {};
    identity += fmt::format(";{},{},{},{}", is.size, is.inode, is.modified_ns, is.changed_ns);
  }
  return hash_text(identity + ";" + ends_digest(files, [](const ByteSink&) {}));
}

std::vector<std::byte> kept_bytes(const std::string& identity, const FoundMembers& found) {
  ByteWriter out;
  // Room for the digest, until it is known.
  out.raw(bytes_of(std::string(kMagic) + std::string(sizeof(std::uint64_t), '\0')));
  const std::size_t begin = out.size();
  out.block(bytes_of(identity));
  found.write(out);
  std::vector<std::byte> bytes = out.take();
  const std::uint64_t digest = XXH3_64bits(bytes.data() + begin, bytes.size() - begin);
  std::memcpy(bytes.data() + kMagic.size(), &digest, sizeof digest);
  return bytes;
}

FoundMembers from_kept_bytes(std::span<const std::byte> bytes, const std::string& identity,
                             std::uint64_t files) {
  ByteReader in(bytes);
  if (chars_of(in.raw(kMagic.size())) != kMagic) {
    throw Error(ErrorKind::corrupt, "it is no index of members, or of another version");
  }
  const auto digest = in.number<std::uint64_t>();
  if (digest != XXH3_64bits(in.rest().data(), in.rest().size())) {
    throw Error(ErrorKind::corrupt, "it does not fit its digest");
  }
  if (chars_of(in.block()) != identity) {
    throw Error(ErrorKind::corrupt, "it is of other files");
  }
  return FoundMembers::read(in, files);
}

std::unique_ptr<DataSet> open_walked(const FormatRequest& request, const std::string& format,
                                     const WalkFile& walk) {
  Peers& peers = request.peers;
  DataFiles files;
  std::string identity;
  Kept kept;
  peers.together([&] {
    files = request.open_files();
    if (peers.rank() != 0 || !request.options.keeps) return;
    identity = identity_of(format, files);
    kept = find_kept(cache_path(request, identity), identity, files);
  });
  const bool known = share_kept(kept, identity, files, peers);
  FoundMembers found = std::move(kept.found);
  kept = {};
  if (!known) {
    found = walk_together(files, peers, walk);
    peers.together([&] { found.set_digest(files); });
    if (peers.rank() == 0) {
      // Whatever was changed during the walk is known by its time of change.
      const std::string path = cache_path(request, identity);
      if (!path.empty() && identity_of(format, files) == identity) keep(path, identity, found);
    }
  }
  found.require_samples(request.text);
  return std::make_unique<MemberSet>(request.text, format, std::move(files),
                                     std::move(found).choose(request.found.fields, request.text));
}

}  // namespace forebay
