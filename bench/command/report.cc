// `forebay-bench report` is a Python script, because it draws with matplotlib.
#include <filesystem>
#include <memory>
#include <string>

#include "bench/command/commands.hpp"
#include "forebay/error.hpp"
#include "program/run.hpp"

namespace forebay::bench {
namespace {

namespace fs = std::filesystem;

/// The distribution's own Python is the one that its matplotlib belongs to.
fs::path find_python() {
  if (is_program("/usr/bin/python3")) return "/usr/bin/python3";
  for (const fs::path& folder : search_path()) {
    if (is_program(folder / "python3")) return folder / "python3";
  }
  throw Error(ErrorKind::unsupported, "there is no python3 in PATH",
              "install Python 3 with matplotlib (Debian: python3-matplotlib)");
}

}  // namespace

void add_report_command(CLI::App& app) {
  struct Flags {
    std::string results;
    std::string output;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("report", "Draw the figures of a benchmark's results on one HTML page");
  command
      ->add_option("results", flags->results,
                   "JSON file of bench/run_matrix.py or of 'forebay bench ... --json'")
      ->required();
  command->add_option("--output", flags->output, "The page (default: RESULTS with .html)");
  command->callback([flags] {
    std::string output = flags->output;
    if (output.empty()) output = fs::path(flags->results).replace_extension(".html").string();
    become(find_python(),
           {"-B", FOREBAY_REPORT_SCRIPT, "--output=" + output, "--", flags->results});
  });
}

}  // namespace forebay::bench
