#include "bench/command/commands.hpp"
#include "program/run.hpp"

int main(int argc, char** argv) {
  CLI::App app("Emulated trainings, data and figures of papers, for Forebay's benchmarks.",
               "forebay-bench");
  app.require_subcommand(1);
  forebay::bench::add_sync_command(app);
  forebay::bench::add_generate_command(app);
  forebay::bench::add_report_command(app);
  return forebay::run_program(app, argc, argv);
}
