// Sizes and durations as people write them: "64MiB", "2.5GiB", "512K"; "5s", "200ms".
//
//   size      number [unit]   B (default); K KiB, M MiB, G GiB, T TiB: powers of 1024;
//                             kB KB, MB, GB, TB: powers of 1000
//   duration  number unit     ns, us, ms, s, min, h
//
// A number may have a fraction; the result is rounded to whole bytes or nanoseconds. Nothing is
// guessed: unknown units, signs, spaces, empty text and overflow are errors of kind usage that
// quote the text and, through `name`, the option it was given for.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace forebay {

std::uint64_t parse_bytes(std::string_view text, std::string_view name);
std::chrono::nanoseconds parse_duration(std::string_view text, std::string_view name);
/// A whole number between `least` and `most`, decimal digits only.
std::uint64_t parse_count(std::string_view text, std::string_view name, std::uint64_t least = 0,
                          std::uint64_t most = UINT64_MAX);

/// For people: at most three digits and one decimal, "2.5 GiB", "999 B".
std::string format_bytes(std::uint64_t bytes);
/// For machines: the largest binary unit that divides, "64MiB", "1000B"; parse_bytes reads it back.
std::string exact_bytes(std::uint64_t bytes);
/// The largest unit that divides: "5s", "1500ms"; parse_duration reads it back.
std::string exact_duration(std::chrono::nanoseconds duration);

}  // namespace forebay
