// forebay-pfs: a modelled parallel file system, mounted read-only once for each virtual node.
//
//   forebay-pfs BACKING MOUNT... [options]      see --help, and docs/pfs.md
//
// Stays in the foreground; prints one line when all mounts are ready. SIGTERM and SIGINT unmount
// and end it, SIGUSR1 writes the statistics now, SIGUSR2 resets them. Exit status: 0 fine, 1
// failed, 2 wrong usage.
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "core/number_text.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "pfs/faults.hpp"
#include "pfs/meter.hpp"
#include "pfs/model.hpp"
#include "pfs/mount.hpp"

namespace forebay::pfs {
namespace {

// More than cores, because the backing file system can make one wait.
constexpr std::size_t kAnsweringThreads = 8;
// Servers of a real file system do not compete with their clients for processors.
constexpr int kNice = -10;

struct Settings {
  ModelOptions model;
  MountOptions mount;
  std::vector<std::string> mount_points;
  std::vector<std::string> faults;  ///< lines of faults.hpp
  std::string stats_file;
  std::string control_path;
  bool force = false;
};

/// "50MB/s" and "50MB" alike.
std::uint64_t parse_bandwidth(std::string text) {
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  return parse_bytes(text, "bandwidth");
}

/// "FILE:OFFSET" or "FILE:OFFSET:DURATION" as a line of faults.hpp; the file may contain colons.
std::string fault_line(const std::string& verb, std::string text, int colons) {
  for (std::size_t at = text.size(); colons > 0; --colons) {
    at = at == 0 ? std::string::npos : text.rfind(':', at - 1);
    if (at == std::string::npos) {
      throw Error(ErrorKind::usage, fmt::format("'{}' names no place in a file", text),
                  "say --fail-at FILE:OFFSET or --stall-at FILE:OFFSET:DURATION");
    }
    text[at] = ' ';
  }
  return verb + " " + text;
}

template <typename Target, typename Parse>
void add_parsed(CLI::App& app, const std::string& name, Target& target, Parse parse,
                const std::string& help) {
  app.add_option_function<std::string>(
      name, [&target, parse](const std::string& text) { target = parse(text); }, help);
}

void add_model_options(CLI::App& app, Settings& settings) {
  ModelOptions& model = settings.model;
  const auto duration = [](const char* name) {
    return [name](const std::string& text) { return parse_duration(text, name); };
  };
  app.add_option("--servers", model.servers, "number of servers (4)");
  add_parsed(
      app, "--stripe", model.stripe,
      [](const std::string& text) { return parse_bytes(text, "stripe"); },
      "bytes of a file on one server before the next takes over (1MiB)");
  add_parsed(app, "--bandwidth", model.bandwidth, parse_bandwidth,
             "bytes a second of each server (50MB/s)");
  add_parsed(app, "--latency", model.latency, duration("latency"),
             "of every request; overlaps between requests (1ms)");
  add_parsed(app, "--seek-penalty", model.seek_penalty, duration("seek-penalty"),
             "occupies a server whose next request is not adjacent to its last (2ms)");
  add_parsed(
      app, "--server-read-ahead", model.read_ahead,
      [](const std::string& text) { return parse_bytes(text, "server-read-ahead"); },
      "bytes that a server reads beyond what it was asked for (0: none)");
  app.add_option("--server-streams", model.streams,
                 "readers whose read-ahead a server keeps; with more it is lost unused (2)");
  app.add_flag("--force", settings.force, "allow what the file system cannot keep honestly");
}

void add_mount_options(CLI::App& app, Settings& settings) {
  app.add_option("backing", settings.mount.backing, "directory to show")->required();
  app.add_option("mounts", settings.mount_points, "empty directories, one a node")->required();
  app.add_flag("--direct-io", settings.mount.direct_io,
               "no page cache; shared mappings are refused");
  app.add_option("--read-ahead-kb", settings.mount.read_ahead_kb,
                 "most that the kernel reads ahead (its default: 128)");
  add_parsed(
      app, "--attr-timeout", settings.mount.attribute_timeout,
      [](const std::string& text) { return parse_duration(text, "attr-timeout"); },
      "how long nodes trust names, sizes and times (1s)");
}

void add_run_options(CLI::App& app, Settings& settings) {
  const auto add_fault = [&](const char* name, const char* verb, int colons, const char* help) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&settings, verb, colons](const std::vector<std::string>& places) {
             for (const auto& place : places) {
               settings.faults.push_back(fault_line(verb, place, colons));
             }
           },
           help)
        ->expected(1)
        ->allow_extra_args(false);
  };
  add_fault("--fail-at", "fail", 1, "FILE:OFFSET: reads that cover this byte end with EIO");
  add_fault("--stall-at", "stall", 2, "FILE:OFFSET:DURATION: they hang their server");
  app.add_flag_callback(
      "--short-reads", [&] { settings.faults.emplace_back("short on"); },
      "with --direct-io, reads return half of what was asked");
  app.add_option("--stats", settings.stats_file, "file for the statistics, at the end");
  app.add_option("--control", settings.control_path,
                 "socket for the commands stats, reset and those of faults.hpp");
}

// Commands to the running file system, over a Unix socket: a line in, a line of JSON out.

constexpr int kStopCheckMs = 100;
constexpr std::size_t kLongestLine = 4096;

bool readable(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  return ::poll(&waiting, 1, kStopCheckMs) > 0;
}

class Control : private NonCopyable {
 public:
  /// Gets a line without its end, gives the answer. Called on the control's own thread.
  using Handler = std::function<std::string(const std::string& line)>;

  /// Listens at `path`, which must not exist and is removed at destruction. Throws io.
  Control(std::string path, Handler handler)
      : path_(std::move(path)),
        handler_(std::move(handler)),
        socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (path_.size() >= sizeof address.sun_path) {
      throw Error(ErrorKind::usage, "the path is too long for a socket",
                  "give --control a shorter one", {.file = path_});
    }
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_.get(), 4) != 0) {
      throw Error(ErrorKind::io, fmt::format("no socket can be made: {}", std::strerror(errno)),
                  "give --control a path that does not exist, in a directory that can be written",
                  {.file = path_});
    }
    thread_ = HelperThread("pfs-control", Placement{},
                           [this](const std::stop_token& stop) { serve(stop); });
  }

  ~Control() {
    thread_.stop();
    ::unlink(path_.c_str());
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!readable(socket_.get())) continue;
      const Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.get() >= 0) converse(connection.get());
    }
  }

  // One command a connection, so that nobody can keep others out by staying.
  void converse(int connection) {
    std::string line;
    std::array<char, 512> bytes{};
    while (line.find('\n') == std::string::npos && line.size() < kLongestLine) {
      if (!readable(connection)) return;
      const ssize_t got = ::recv(connection, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      line.append(bytes.data(), static_cast<std::size_t>(got));
    }
    const std::string answer = handler_(line.substr(0, line.find('\n'))) + "\n";
    for (std::size_t sent = 0; sent < answer.size();) {
      const ssize_t more =
          ::send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += static_cast<std::size_t>(more);
    }
  }

  std::string path_;
  Handler handler_;
  Descriptor socket_;
  HelperThread thread_;  // last: it uses all of the above
};

/// Everything that runs, in the order in which it depends on each other.
class FileSystem : private NonCopyable {
 public:
  explicit FileSystem(const Settings& settings)
      : settings_(settings),
        model_(settings.model),
        faults_(settings.mount.backing),
        meter_(settings.mount_points),
        queue_(kAnsweringThreads) {
    for (const std::string& line : settings.faults) faults_.command(line);
    for (const std::string& mount_point : settings.mount_points) {
      MountOptions options = settings.mount;
      options.mount_point = mount_point;
      mounts_.push_back(std::make_unique<Mount>(options, Servers{model_, faults_, meter_, queue_},
                                                mounts_.size()));
    }
  }

  /// No new readers first; those that wait are woken before their files go.
  ~FileSystem() {
    for (const auto& mount : mounts_) mount->unmount();
    queue_.stop();
  }

  nlohmann::json statistics() const {
    nlohmann::json json = meter_.to_json(model_.tallies());
    json["model"] = {
        {"servers", settings_.model.servers},
        {"stripe", settings_.model.stripe},
        {"bandwidth", settings_.model.bandwidth},
        {"latency_seconds", std::chrono::duration<double>(settings_.model.latency).count()},
        {"server_read_ahead", settings_.model.read_ahead},
        {"server_streams", settings_.model.streams},
        {"seek_penalty_seconds",
         std::chrono::duration<double>(settings_.model.seek_penalty).count()}};
    return json;
  }

  void write_statistics() const {
    if (settings_.stats_file.empty()) return;
    std::ofstream out(settings_.stats_file);
    if (out << statistics().dump(2) << '\n' << std::flush) return;
    throw Error(ErrorKind::io, "the statistics cannot be written", "give --stats another path",
                {.file = settings_.stats_file});
  }

  void reset() {
    model_.reset();
    meter_.reset();
  }

  /// Answers a line of the control socket.
  std::string command(const std::string& line) {
    try {
      if (line == "stats") return statistics().dump();
      if (line == "reset") {
        reset();
      } else {
        faults_.command(line);
      }
      return R"({"ok":true})";
    } catch (const Error& error) {
      return nlohmann::json{{"error", error.what()}}.dump();
    }
  }

 private:
  Settings settings_;
  Model model_;
  Faults faults_;
  Meter meter_;
  DeadlineQueue queue_;
  std::vector<std::unique_ptr<Mount>> mounts_;
};

sigset_t blocked_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, number);
  return signals;
}

/// Until somebody asks to end.
void obey_signals(const sigset_t& signals, FileSystem& file_system) {
  for (int number = 0; sigwait(&signals, &number) == 0;) {
    if (number == SIGUSR1) {
      file_system.write_statistics();
    } else if (number == SIGUSR2) {
      file_system.reset();
    } else {
      return;
    }
  }
}

void serve(const Settings& settings) {
  check(settings.model, settings.force);
  // Before any thread starts: all of them leave these signals to sigwait().
  const sigset_t signals = blocked_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::setpriority(PRIO_PROCESS, 0, kNice);  // where it is not allowed, answers may be later
  FileSystem file_system(settings);
  std::optional<Control> control;
  if (!settings.control_path.empty()) {
    control.emplace(settings.control_path,
                    [&](const std::string& line) { return file_system.command(line); });
  }
  fmt::print("forebay-pfs: {} mounts ready\n", settings.mount_points.size());
  std::fflush(stdout);
  obey_signals(signals, file_system);
  file_system.write_statistics();
}

int run(int argc, char** argv) {
  CLI::App app("A modelled parallel file system, mounted read-only once for each node.",
               "forebay-pfs");
  Settings settings;
  add_model_options(app, settings);
  add_mount_options(app, settings);
  add_run_options(app, settings);
  try {
    app.parse(argc, argv);
    serve(settings);
    return 0;
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "forebay-pfs: {}; see 'forebay-pfs --help'\n", error.what());
    return 2;
  } catch (const Error& error) {
    fmt::print(stderr, "forebay-pfs: {}\n", error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  }
}

}  // namespace
}  // namespace forebay::pfs

int main(int argc, char** argv) {
  try {
    return forebay::pfs::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "forebay-pfs: {}\n", error.what());
    return 1;
  }
}
