// What a process may run out of, and how that is told: memory, threads, open files, sizes of files.
//
// An error of these says what was being done, how much of it was asked for where that is known,
// what this process may have, and what to lower or raise. Memory in large pieces is asked for
// before it is needed: the system promises more than there is, and would end the process later.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "forebay/error.hpp"

namespace forebay {

/// What to do about `error` (an errno) where it says that a limit was reached; else `otherwise`.
std::string remedy_for(int error, std::string otherwise);

/// The most bytes that this process may write to a file ('ulimit -f'); nothing where that is not
/// limited.
std::optional<std::uint64_t> largest_file();

/// "1048576 of 2097152 bytes are left (ulimit -v)"
std::string memory_left();
/// Throws io where this process cannot have `bytes` more for `what` ("decoded batches"), as far as
/// its limits tell. `lower`: the options that make it less, as "--batch or --decode-ahead". Looks
/// at a few files of the system: for large pieces, and not often. Thread-safe.
void require_memory(std::uint64_t bytes, std::string_view what, std::string_view lower);
/// The error of an allocation that has failed.
Error no_memory(std::uint64_t bytes, std::string_view what, std::string_view lower);

/// Where the address space of this process is limited ('ulimit -v'), lets allocation take an eighth
/// of it in advance at most: each thread would reserve an arena of 64 MiB. For programs, before
/// they start threads (libraries leave that to the program that they are in), and unless the user
/// has said how many (MALLOC_ARENA_MAX).
void limit_arenas();

/// `failure` as an Error: as it is where it is one; where memory, threads or files ran out, with
/// `doing` ("decoding a batch") and what to do about it; other ones with their own words.
Error as_error(const std::exception& failure, std::string_view doing, std::string_view lower = {});

/// The error of a thread that the system does not start.
Error no_thread(const std::string& name, int error);

}  // namespace forebay
