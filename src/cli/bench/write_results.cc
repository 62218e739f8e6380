#include "cli/bench/write_results.hpp"

#include <fmt/format.h>

#include <span>

#include "cli/output.hpp"
#include "storage/atomic_file.hpp"

namespace forebay::bench {

void write_results(const nlohmann::ordered_json& json, const std::string& text,
                   const std::string& json_path) {
  if (json_path == "-") return print_json(json);
  if (!json_path.empty()) {
    const std::string line =
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    AtomicFile file(json_path);
    file.write(std::as_bytes(std::span(line)));
    file.commit();
  }
  fmt::print("{}", text);
}

}  // namespace forebay::bench
