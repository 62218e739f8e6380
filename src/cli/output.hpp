// What all commands print: results on stdout, everything else on stderr.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace forebay {

/// One line "forebay: error: ..." on stderr, whatever `message` contains.
void print_error(std::string_view message);

/// `json` on one line of stdout. Bytes that are not UTF-8 (in paths) are replaced.
void print_json(const nlohmann::ordered_json& json);

/// Throws io when what was printed did not reach stdout (a full disk behind a redirection).
void flush_output();

/// "3.2 MB": powers of 1,000, three significant digits.
std::string human_bytes(std::uint64_t bytes);
/// "1,234,567"
std::string human_count(std::uint64_t count);

bool is_terminal(std::FILE* stream);
/// A terminal, and NO_COLOR is not set.
bool use_color(std::FILE* stream);

}  // namespace forebay
