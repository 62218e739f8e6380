#include "program/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <span>
#include <system_error>
#include <thread>

#include "comm/values.hpp"
#include "core/limits.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "forebay/mpi_session.hpp"
#include "program/output.hpp"
#include "storage/answers.hpp"

namespace forebay {
namespace {

int exit_code(const Error& error) { return error.kind() == ErrorKind::usage ? 2 : 1; }

/// One rank speaks for all: the one that failed, or rank 0 where that one may be dead.
int speaker_for(const Error& error) {
  const bool by_first = error.where().rank < 0 || error.kind() == ErrorKind::communication;
  return by_first ? 0 : error.where().rank;
}

/// How a failed job ends.
struct Ending {
  int speaker = 0;
  int threads_stay = 0;  ///< some rank leaves a thread behind, and so cannot end MPI
};

/// Ranks on different nodes may have failed at the same moment, each for its own reason: the lowest
/// of them is heard. Throws communication when not all ranks come to tell.
Ending agree_on_ending(Communicator& at_exit, const Ending& mine) {
  const std::vector<Ending> all = gather_all(at_exit, mine);
  return {.speaker = std::ranges::min(all, {}, &Ending::speaker).speaker,
          .threads_stay = std::ranges::max(all, {}, &Ending::threads_stay).threads_stay};
}

/// Without destructors, which would wait for threads that may never return.
[[noreturn]] void leave(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

/// MPI_Finalize may wait for ever for operations that a failure has cut off.
void limit_finalize(int code) {
  try {
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      std::_Exit(code);
    }).detach();
  } catch (const std::system_error&) {  // no memory for a thread: nothing would end the waiting
    leave(code);
  }
}

void end_failed_job(const MpiSession& mpi, Communicator& at_exit, const Error& error, int code) {
  const int speaker = speaker_for(error);
  const bool may_speak = at_exit.rank() == speaker;
  at_exit.set_timeout(std::chrono::seconds(5));
  try {
    const Ending agreed = agree_on_ending(
        at_exit, {.speaker = speaker, .threads_stay = left_threads_behind() ? 1 : 0});
    const bool speaks = may_speak && agreed.speaker == speaker;
    if (speaks) print_error(error.what());
    if (agreed.threads_stay == 0) return limit_finalize(code);
    // Where a rank that has left a thread behind finalized MPI, or some ranks did and others not,
    // mpirun of Open MPI 4.1.4 hung at its own end now and then. Together, since a launcher kills
    // those that are late.
    at_exit.barrier();
    leave(code);
  } catch (const Error&) {
    // The speaker may be the one that does not come: then who ends the job first speaks.
    if (!may_speak) std::this_thread::sleep_for(std::chrono::milliseconds(200) * at_exit.rank());
    print_error(error.what());
    mpi.abort(code);
  }
}

/// The exit code of what `run` throws, which is printed.
int or_print(const std::function<void()>& run) {
  try {
    run();
    return 0;
  } catch (const Error& error) {
    print_error(error.what());
    return exit_code(error);
  } catch (const std::exception& error) {
    print_error(as_error(error, "this command").what());
    return 1;
  }
}

using Body = std::function<void(const std::shared_ptr<Communicator>&)>;

int run_under_launcher(const Body& body) {
  const MpiSession session;
  const auto world = session.world();
  // Of its own, since a failure may leave others in the middle of an operation on `world`.
  const auto at_exit = world->split(0, world->rank());
  try {
    body(world);
    return 0;
  } catch (const Error& error) {
    const int code = exit_code(error);
    end_failed_job(session, *at_exit, error, code);
    return code;
  } catch (const std::exception& error) {
    print_error(as_error(error, "this command").what());
    session.abort(1);
    return 1;
  }
}

/// This process's rank as the launcher's environment tells it, before MPI starts; 0 without one.
int launched_rank() {
  constexpr std::array kVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (const char* variable : kVariables) {
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  }
  return 0;
}

/// All ranks of a job fail alike before MPI starts: one line is enough.
void print_once(std::string_view message) {
  if (launched_rank() == 0) print_error(message);
}

/// The command whose help explains what went wrong.
std::string help_command(const CLI::App& app) {
  std::string words = app.get_name();
  for (auto commands = app.get_subcommands(); !commands.empty();
       commands = commands.front()->get_subcommands()) {
    words += " " + commands.front()->get_name();
  }
  return words + " --help";
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    flush_output();
    return 0;
  } catch (const CLI::Success& asked) {  // --help, --version
    const int code = app.exit(asked);
    if (std::cout.flush()) return code;
    print_error("standard output cannot be written; make room where the output goes");
    return 1;
  } catch (const CLI::RuntimeError& ended) {  // the command has said what there was to say
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    print_once(fmt::format("{}; see '{}'", error.what(), help_command(app)));
    return 2;
  } catch (const Error& error) {
    print_once(error.what());
    return exit_code(error);
  } catch (const std::exception& error) {
    print_error(as_error(error, "this command").what());
    return 1;
  }
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv) {
  set_log_hook(stderr_log_hook(), LogLevel::warning);
  limit_arenas();
  std::signal(SIGXFSZ, SIG_IGN);  // then writing fails, and says where and why
  const int code = parse_and_run(app, argc, argv);
  if (left_threads_behind()) leave(code);
  return code;
}

void run_with_answers(const std::string& path, std::chrono::milliseconds timeout,
                      const std::function<void()>& body) {
  try {
    with_answers({.each_read = timeout, .path = path}, "forebay", {}, body);
  } catch (const Error& error) {
    if (!left_threads_behind()) throw;
    print_error(error.what());
    leave(exit_code(error));  // `body` is still used
  }
}

void run_on_ranks(const Body& body) {
  int code = 0;
  const int failed = or_print([&] {
    if (launched_by_mpi()) {
      code = run_under_launcher(body);
    } else {
      body(self_communicator());
    }
  });
  if (code = std::max(code, failed); code != 0) throw CLI::RuntimeError(code);
}

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

bool is_program(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> search_path() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.erase(0, colon + 1);
  }
  return folders;
}

void become(const fs::path& program, std::vector<std::string> arguments) {
  std::vector<char*> words;
  std::string name = program.string();
  words.push_back(name.data());
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw Error(ErrorKind::io, "cannot start: " + std::generic_category().message(errno),
              "check the installation", {.file = name});
}

}  // namespace forebay
