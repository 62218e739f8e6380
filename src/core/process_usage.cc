#include "core/process_usage.hpp"

#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace forebay {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

ProcessUsage usage_of(__rusage_who who) {
  rusage usage{};
  ::getrusage(who, &usage);
  ProcessUsage result;
  result.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  result.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  result.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  result.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  result.user_seconds = seconds(usage.ru_utime);
  result.system_seconds = seconds(usage.ru_stime);
  return result;
}

// Lines such as "RssAnon:	    1234 kB".
void read_memory_levels(ProcessUsage& usage) {
  std::ifstream status("/proc/self/status");
  std::string name;
  std::uint64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.find(" kB") == std::string::npos) continue;
    name = line.substr(0, colon);
    kibibytes = std::strtoull(line.c_str() + colon + 1, nullptr, 10);
    if (name == "VmHWM") usage.peak_resident_bytes = kibibytes * 1024;
    if (name == "RssAnon") usage.private_bytes = kibibytes * 1024;
    if (name == "RssFile" || name == "RssShmem") usage.mapped_bytes += kibibytes * 1024;
  }
}

}  // namespace

ProcessUsage process_usage() {
  ProcessUsage usage = usage_of(RUSAGE_SELF);
  read_memory_levels(usage);
  return usage;
}

ProcessUsage thread_usage() { return usage_of(RUSAGE_THREAD); }

ProcessUsage operator-(const ProcessUsage& later, const ProcessUsage& earlier) {
  ProcessUsage spent = later;
  spent.voluntary_switches -= earlier.voluntary_switches;
  spent.involuntary_switches -= earlier.involuntary_switches;
  spent.minor_faults -= earlier.minor_faults;
  spent.major_faults -= earlier.major_faults;
  spent.user_seconds -= earlier.user_seconds;
  spent.system_seconds -= earlier.system_seconds;
  return spent;
}

}  // namespace forebay
