#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/mpi_main.hpp"
#include "cli/output.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "forebay/storage.hpp"

namespace forebay {
namespace {

enum ExitCode : int { kFine = 0, kFailed = 1, kUsage = 2 };

void add_commands(CLI::App& app) {
  add_pack_command(app);
  add_generate_command(app);
  add_inspect_command(app);
  add_verify_command(app);
  add_provenance_command(app);
  add_order_command(app);
  add_samples_command(app);
  add_train_command(app);
  add_bench_command(app);
  add_report_command(app);
}

/// Loads the plug-in, and names it to the programs that commands become.
void use_storage_plugin(const std::string& path) {
  constexpr const char* kVariable = "FOREBAY_STORAGE_PLUGINS";
  load_storage_plugin(path);
  const char* others = std::getenv(kVariable);
  const std::string all = others == nullptr ? path : path + ":" + others;
  ::setenv(kVariable, all.c_str(), 1);
}

/// The command whose help explains what went wrong.
std::string help_command(const CLI::App& app) {
  std::string words = "forebay";
  for (auto commands = app.get_subcommands(); !commands.empty();
       commands = commands.front()->get_subcommands()) {
    words += " " + commands.front()->get_name();
  }
  return words + " --help";
}

int run(int argc, char** argv) {
  CLI::App app("Feeds distributed training from large data files.", "forebay");
  app.set_version_flag("--version", "forebay " FOREBAY_VERSION " (" FOREBAY_MPI_NAME ")");
  app.require_subcommand(1);
  app.add_option_function<std::vector<std::string>>(
         "--storage-plugin",
         [](const std::vector<std::string>& paths) {
           for (const std::string& path : paths) use_storage_plugin(path);
         },
         "Shared object, by its absolute path, that reads data sets on another storage "
         "(repeatable)")
      ->type_name("PATH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_commands(app);
  try {
    app.parse(argc, argv);
    flush_output();
    return kFine;
  } catch (const CLI::Success& asked) {  // --help, --version
    const int code = app.exit(asked);
    if (std::cout.flush()) return code;
    print_error("standard output cannot be written; make room where the output goes");
    return kFailed;
  } catch (const CLI::RuntimeError& ended) {  // the command has said what there was to say
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    // All ranks of a job fail here alike: one line is enough.
    if (launched_rank() == 0) {
      print_error(fmt::format("{}; see '{}'", error.what(), help_command(app)));
    }
    return kUsage;
  } catch (const Error& error) {
    if (launched_rank() == 0) print_error(error.what());
    return error.kind() == ErrorKind::usage ? kUsage : kFailed;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::set_log_hook(forebay::stderr_log_hook(), forebay::LogLevel::warning);
  return forebay::run(argc, argv);
}
