#include <cstdlib>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"
#include "forebay/storage.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

void add_commands(CLI::App& app) {
  add_pack_command(app);
  add_inspect_command(app);
  add_verify_command(app);
  add_provenance_command(app);
  add_order_command(app);
  add_samples_command(app);
  add_train_command(app);
  add_bench_command(app);
}

/// Loads the plug-in, and names it to the programs that commands become.
void use_storage_plugin(const std::string& path) {
  constexpr const char* kVariable = "FOREBAY_STORAGE_PLUGINS";
  load_storage_plugin(path);
  const char* others = std::getenv(kVariable);
  const std::string all = others == nullptr ? path : path + ":" + others;
  ::setenv(kVariable, all.c_str(), 1);
}

/// The MPI library that a run on ranks would use here.
std::string mpi_found() {
  try {
    return mpi_library();
  } catch (const Error& error) {
    return "without MPI: " + error.happened();
  }
}

int run(int argc, char** argv) {
  CLI::App app("Feeds distributed training from large data files.", "forebay");
  app.set_version_flag("--version",
                       [] { return "forebay " FOREBAY_VERSION " (" + mpi_found() + ")"; });
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
  return run_program(app, argc, argv);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return forebay::run(argc, argv); }
