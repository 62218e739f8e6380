// How a program of ours starts and ends, on many ranks too, and how it becomes another program.
//
//   exit code   0 fine      1 failed      2 the command line makes no sense (ErrorKind::usage and
//               parse errors)
//
// What runs on ranks, started by mpirun, srun or another PMI launcher, does so on all of
// MPI_COMM_WORLD; started by hand it runs alone, and MPI is not even initialised. When a rank
// fails, all end within seconds and with the same exit code, and one line goes to stderr. Ranks
// that still answer finalize MPI; if one does not, MPI_Abort ends the job.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

/// Parses the command line, and with it runs the callbacks of commands; what they throw becomes one
/// line on stderr. Returns the exit code. The log goes to stderr, from warnings on.
int run_program(CLI::App& app, int argc, char** argv);

/// For the callback of a command: runs `body` on all ranks. Collective over the job, including
/// errors: those of a Loader are.
void run_on_ranks(const std::function<void(const std::shared_ptr<Communicator>&)>& body);

/// For the callback of a command of one process: runs `body`, which reads `path`. When a read has
/// had no answer for `timeout`, one line says so and the program ends, as far as the kernel lets
/// it.
void run_with_answers(const std::string& path, std::chrono::milliseconds timeout,
                      const std::function<void()>& body);

/// Where this executable lies; empty when the system does not tell.
std::filesystem::path own_folder();

bool is_program(const std::filesystem::path& path);

/// The folders of PATH.
std::vector<std::filesystem::path> search_path();

/// Replaces this process by `program` with `arguments`. Throws io where it cannot be started.
[[noreturn]] void become(const std::filesystem::path& program, std::vector<std::string> arguments);

}  // namespace forebay
