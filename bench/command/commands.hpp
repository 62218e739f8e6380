// The sub-commands of `forebay-bench`: what papers show, and no user of Forebay runs. As in
// cli/commands.hpp, they say what is wrong by throwing.
#pragma once

#include <CLI/CLI.hpp>

namespace forebay::bench {

void add_sync_command(CLI::App& app);      ///< gradients beside an emulated accelerator
void add_generate_command(CLI::App& app);  ///< data sets like those of paper 003
void add_report_command(CLI::App& app);    ///< figures of results

}  // namespace forebay::bench
