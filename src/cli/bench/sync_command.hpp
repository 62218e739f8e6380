// forebay bench sync: its flags, and how it is started.
#pragma once

#include <CLI/CLI.hpp>

namespace forebay::bench {

void add_sync_command(CLI::App& bench);

}  // namespace forebay::bench
