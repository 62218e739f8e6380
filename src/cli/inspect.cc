#include "cli/commands.hpp"
namespace forebay { void add_inspect_command(CLI::App&) {} void add_verify_command(CLI::App&) {} }
