// Streams of tokens as windows: a sample is so many tokens, wherever documents begin and end.
//
//   tokens     t0 t1 t2 t3 t4 t5 t6 t7 ...      of one file
//   samples    [t0 t1 t2 t3]                    length 4, step 2
//                    [t2 t3 t4 t5] ...
//
// Files: one-dimensional .npy; Megatron's .bin with its .idx beside it, which tells the type; other
// .bin, as nanoGPT writes them, whose type the user has to say.
#pragma once

#include "format/registry.hpp"

namespace forebay::tokens {

/// The type of tokens that Megatron's index tells. Throws corrupt, unsupported; the caller adds the
/// file. `tokens` becomes how many it lists.
ElementType parse_index(std::span<const std::byte> index, std::uint64_t& tokens);

Format tokens_format();

}  // namespace forebay::tokens
