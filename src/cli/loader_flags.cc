#include "cli/loader_flags.hpp"

#include <algorithm>
#include <string>

namespace forebay {

void add_loader_flags(CLI::App& command, LoaderOptions& options,
                      const std::vector<std::string_view>& leave_out) {
  for (const OptionInfo& info : loader_option_infos()) {
    if (std::ranges::find(leave_out, info.name) != leave_out.end()) continue;
    command
        .add_option_function<std::string>(
            "--" + std::string(info.name),
            [&options, name = info.name](const std::string& value) { options.set(name, value); },
            std::string(info.help))
        ->type_name(std::string(info.value))
        ->group("Loader");
  }
}

}  // namespace forebay
