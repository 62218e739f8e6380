// The file that the option `list` names: sample ids as decimal numbers between white space.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace forebay {

/// Local. Throws not_found, io, and usage naming the line that is no number; io also once a file
/// system, or the writer of a pipe, has given nothing for `timeout`. Takes at most four times the
/// size of the file in memory.
std::vector<std::uint64_t> read_list_file(const std::string& path,
                                          std::chrono::milliseconds timeout);
/// The same of a file that is open. Throws usage, and what its stream throws.
std::vector<std::uint64_t> read_list(std::istream& file, const std::string& path);

}  // namespace forebay
