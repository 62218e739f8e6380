#include "program/flags.hpp"

#include <algorithm>

#include "forebay/error.hpp"

namespace forebay {
namespace {

void add_flags(CLI::App& command, LoaderOptions& options, std::span<const OptionInfo> infos,
               const std::string& name, const std::vector<std::string_view>& leave_out) {
  const OptionGroup group(command, name);
  for (const OptionInfo& info : infos) {
    if (std::ranges::find(leave_out, info.name) != leave_out.end()) continue;
    if (info.value.empty()) {
      command.add_flag_callback(
          "--" + std::string(info.name), [&options, name = info.name] { options.set(name, "on"); },
          std::string(info.help));
      continue;
    }
    command
        .add_option_function<std::string>(
            "--" + std::string(info.name),
            [&options, name = info.name](const std::string& value) { options.set(name, value); },
            std::string(info.help))
        ->type_name(std::string(info.value));
  }
}

}  // namespace

void add_loader_flags(CLI::App& command, LoaderOptions& options,
                      const std::vector<std::string_view>& leave_out) {
  add_flags(command, options, loader_option_infos(), "Loader", leave_out);
  add_flags(command, options, format_option_infos(), "Files", leave_out);
}

void add_format_flags(CLI::App& command, LoaderOptions& options) {
  add_flags(command, options, format_option_infos(), "Files", {});
}

void add_timeout_flag(CLI::App& command, std::chrono::milliseconds& timeout) {
  command
      .add_option_function<std::string>(
          "--timeout",
          [&timeout](const std::string& text) {
            LoaderOptions options;
            options.set("timeout", text);
            timeout = options.timeout;
            if (timeout.count() > 0) return;
            throw Error(ErrorKind::usage, "--timeout is no time", "give 1ms or more");
          },
          "Longest wait for a read (default 10min)")
      ->type_name("TIME");
}

void add_order_flags(CLI::App& command, LoaderOptions& options,
                     const std::vector<std::string_view>& leave_out) {
  add_flags(command, options, order_option_infos(), "Order", leave_out);
}

void add_former_name(CLI::App& command, const std::string& former, const std::string& now) {
  command
      .add_option_function<std::string>(
          former,
          [former, now](const std::string&) {
            throw Error(ErrorKind::usage, former + " has another name now", "give " + now);
          },
          "")
      ->expected(0, 1)
      ->group("");  // in no help
}

}  // namespace forebay
