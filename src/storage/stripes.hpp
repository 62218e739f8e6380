// How a file lies on the servers of a parallel file system, as the file system tells.
//
// Lustre deals a file to its servers in stripes of one size; a file may consist of several
// components, each with a size of its own, and of mirrors, of which the first counts here. What it
// answers is taken apart by a function of its own, since no Lustre was at hand: it was tested with
// recorded answers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

/// The bytes [begin, end) of a file. Stripes are counted from the start of the file.
struct StripedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Stripes stripes;
  bool operator==(const StripedRange&) const = default;
};

/// Of the extended attribute "lustre.lov": the parts of the file that lie on servers, ascending.
/// Empty for what is not understood; `answer` may be anything.
std::vector<StripedRange> parse_lustre_layout(std::span<const std::byte> answer);

/// Of an open file; empty where its file system is none that tells.
std::vector<StripedRange> striped_ranges(int descriptor);

/// What reads of `file` have as their size where nobody says: a stripe, so that a server has one
/// request for it, but 4 MiB at most, the largest of Lustre's own requests; else `usual`.
std::uint64_t request_bytes_for(const File& file, std::uint64_t usual);

}  // namespace forebay
