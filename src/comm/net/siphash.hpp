// SipHash-2-4 with a result of 128 bits: a keyed digest of short texts, which nobody can make who
// does not know the key (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012;
// the long result as in the authors' reference code).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace forebay::net {

using Bytes16 = std::array<std::byte, 16>;

/// Local, thread-safe.
Bytes16 siphash(const Bytes16& key, std::span<const std::byte> text);

/// Compares in a time that does not depend on where the two differ.
bool same_digest(const Bytes16& a, const Bytes16& b);

/// 16 bytes that nobody can guess. Throws io where the system gives none.
Bytes16 random_bytes();

}  // namespace forebay::net
