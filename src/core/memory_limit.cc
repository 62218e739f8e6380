#include "core/memory_limit.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The file names and statistics that the two versions of control groups use for the same things.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

// A mounted hierarchy: the part of it that is visible (`root`) appears at `mount_point`.
struct Hierarchy {
  GroupFiles files;
  std::string root;
  std::string mount_point;
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;  // "max" is not a number: unlimited
  return parse_number(word);
}

// The number after `key` in a file of "key value" or "key: value kB" lines.
std::optional<std::uint64_t> read_field(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool names_memory(const std::string& comma_list) {
  const auto names = split(comma_list, ',');
  return std::find(names.begin(), names.end(), "memory") != names.end();
}

// /proc/self/mountinfo: "36 35 98:0 /root /mount/point options [optional...] - type source super".
std::vector<Hierarchy> mounted_hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto front = split(line.substr(0, dash), ' ');
    const auto back = split(line.substr(dash + 3), ' ');
    if (front.size() < 5 || back.size() < 3) continue;
    if (back[0] == "cgroup2") found.push_back({kVersion2, front[3], front[4]});
    if (back[0] == "cgroup" && names_memory(back[2])) {
      found.push_back({kVersion1, front[3], front[4]});
    }
  }
  return found;
}

// /proc/self/cgroup: "4:memory:/path" for version 1, "0::/path" for version 2.
std::optional<std::string> group_path(const fs::path& root, bool version2) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = version2 ? controllers.empty() : names_memory(controllers);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Where the group lies below the mount point. In a container the group's path may lie outside the
// visible part; then the mount point itself is the nearest group that can be seen.
fs::path below_mount(const std::string& group, const std::string& visible_root) {
  fs::path relative = fs::path(group).lexically_relative(visible_root);
  if (relative.empty() || *relative.begin() == ".." || relative == ".") return {};
  return relative;
}

void apply_group(MemoryLimit& limit, const fs::path& folder, const GroupFiles& files,
                 const std::string& name) {
  const auto bytes = read_number(folder / files.limit);
  if (!bytes) return;
  const std::uint64_t usage = read_number(folder / files.usage).value_or(0);
  const std::uint64_t cache = read_field(folder / "memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t held = usage - std::min(usage, cache);
  limit.available_bytes = std::min(limit.available_bytes, *bytes - std::min(*bytes, held));
  if (*bytes >= limit.limit_bytes) return;
  limit.limit_bytes = *bytes;
  limit.source = "control group " + name;
}

void apply_hierarchy(MemoryLimit& limit, const fs::path& root, const Hierarchy& hierarchy) {
  const bool version2 = hierarchy.files.limit == kVersion2.limit;
  const auto group = group_path(root, version2);
  if (!group) return;
  const fs::path mount = root / fs::path(hierarchy.mount_point).relative_path();
  for (fs::path level = below_mount(*group, hierarchy.root);; level = level.parent_path()) {
    apply_group(limit, mount / level, hierarchy.files, "/" + level.string());
    if (level.empty()) return;
  }
}

// Of /proc/self/limits, the numbers in /proc/self/statm that count against them.
struct UserLimit {
  const char* line;
  const char* name;
  int usage;
};
constexpr UserLimit kUserLimits[] = {{"Max address space", "ulimit -v", 0},
                                     {"Max data size", "ulimit -d", 5}};

// "Max address space         1024000000           unlimited            bytes": the soft limit.
void apply_user_limits(MemoryLimit& limit, const fs::path& root) {
  std::vector<std::uint64_t> used;
  std::ifstream usage(root / "proc/self/statm");
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t pages = 0; usage >> pages;) used.push_back(pages * page);
  std::ifstream limits(root / "proc/self/limits");
  for (std::string line; std::getline(limits, line);) {
    for (const UserLimit& one : kUserLimits) {
      const std::string_view name = one.line;
      if (!line.starts_with(name)) continue;
      const auto from = std::min(line.find_first_not_of(' ', name.size()), line.size());
      const auto bytes = parse_number(std::string_view(line).substr(from));
      if (!bytes) continue;  // "unlimited"
      const auto place = static_cast<std::size_t>(one.usage);
      const std::uint64_t held = place < used.size() ? used[place] : 0;
      limit.available_bytes = std::min(limit.available_bytes, *bytes - std::min(*bytes, held));
      if (*bytes >= limit.limit_bytes) continue;
      limit.limit_bytes = *bytes;
      limit.source = one.name;
    }
  }
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root) {
  MemoryLimit limit{
      .limit_bytes = kUnlimited, .available_bytes = kUnlimited, .source = "physical memory"};
  if (const auto total = read_field(root / "proc/meminfo", "MemTotal:")) {
    limit.limit_bytes = *total * 1024;
  }
  if (const auto available = read_field(root / "proc/meminfo", "MemAvailable:")) {
    limit.available_bytes = *available * 1024;
  }
  for (const Hierarchy& hierarchy : mounted_hierarchies(root)) {
    apply_hierarchy(limit, root, hierarchy);
  }
  apply_user_limits(limit, root);
  limit.available_bytes = std::min(limit.available_bytes, limit.limit_bytes);
  return limit;
}

namespace {

// MADV_COLLAPSE of linux/mman.h: newer than the C library of some systems whose kernel has it.
constexpr int kCollapse = 25;

bool advise(std::span<std::byte> memory, int advice) {
  return !memory.empty() && ::madvise(memory.data(), memory.size(), advice) == 0;
}

}  // namespace

bool advise_huge_pages(std::span<std::byte> memory) noexcept {
  return advise(memory, MADV_HUGEPAGE);
}

bool collapse_into_huge_pages(std::span<std::byte> memory) noexcept {
  return advise(memory, kCollapse);
}

}  // namespace forebay
