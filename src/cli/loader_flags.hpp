// The flags that every command with a loader shares, made from the loader's own option table.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/options.hpp"

namespace forebay {

/// Adds --batch, --strategy, ..., and what add_format_flags() adds, to `command`; what is given
/// ends up in `options`, which must live as long as the parser. `leave_out` names options that the
/// command has in a form of its own.
void add_loader_flags(CLI::App& command, LoaderOptions& options,
                      const std::vector<std::string_view>& leave_out = {});

/// Likewise --format, --header-bytes, ...: what the files are.
void add_format_flags(CLI::App& command, LoaderOptions& options);

/// Likewise --order, --seed, ...
void add_order_flags(CLI::App& command, LoaderOptions& options,
                     const std::vector<std::string_view>& leave_out = {});

/// An option that was called `former`: who gives it gets a usage error that says what it is `now`.
void add_former_name(CLI::App& command, const std::string& former, const std::string& now);

}  // namespace forebay
