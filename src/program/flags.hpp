// The flags that commands share: those of a loader, made from its own option table, options whose
// values have names, and options that have another name now.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/options.hpp"

namespace forebay {

/// Adds --batch, --strategy, ..., and what add_format_flags() adds, to `command`; what is given
/// ends up in `options`, which must live as long as the parser. `leave_out` names options that the
/// command has in a form of its own.
void add_loader_flags(CLI::App& command, LoaderOptions& options,
                      const std::vector<std::string_view>& leave_out = {});

/// Likewise --format, --header-bytes, ...: what the files are.
void add_format_flags(CLI::App& command, LoaderOptions& options);

/// --timeout of a command that reads without a loader.
void add_timeout_flag(CLI::App& command, std::chrono::milliseconds& timeout);

/// Likewise --order, --seed, ...
void add_order_flags(CLI::App& command, LoaderOptions& options,
                     const std::vector<std::string_view>& leave_out = {});

/// Options that are added while it lives stand under `name` in the help.
class OptionGroup : private NonCopyable {
 public:
  OptionGroup(CLI::App& command, const std::string& name)
      : defaults_(*command.option_defaults()), before_(defaults_.get_group()) {
    defaults_.group(name);
  }
  ~OptionGroup() { defaults_.group(before_); }

 private:
  CLI::OptionDefaults& defaults_;
  std::string before_;
};

/// An option that was called `former`: who gives it gets a usage error that says what it is `now`.
void add_former_name(CLI::App& command, const std::string& former, const std::string& now);

/// For CLI::Option::transform(): a name of `names` becomes its number, anything else an error that
/// lists the names. (CLI11's own transformer shows what stands behind them, in the help and in
/// errors: for small enums, control characters.)
template <typename Enum>
CLI::Validator named_choice(const std::map<std::string, Enum>& names) {
  const auto look_up = [names](std::string& text) -> std::string {
    if (const auto found = names.find(text); found != names.end()) {
      text = std::to_string(static_cast<int>(found->second));
      return {};
    }
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name.first;
    return fmt::format("'{}' is none of: {}", text, known);
  };
  return {look_up, "", "named choice"};
}

}  // namespace forebay
