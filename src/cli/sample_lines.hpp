// The text of `forebay samples`: one JSON line a sample.
#pragma once

#include <string>

#include "forebay/loader.hpp"

namespace forebay {

/// {"epoch":0,"iteration":0,"rank":0,"position":0,"global":0,"sample":0,"key":"<hex>","bytes":3100,
/// "xxh3":"<16 hex>","repeat":false}, and a newline. With `decoded`, the XXH3-64 of the sample's
/// fields, one after the other, is added under that name. Of a sample of several `parts`:
/// "parts":{"image":{"bytes":3000,"xxh3":"<16 hex>"},...} as well.
std::string sample_line(const Sample& sample, std::uint64_t iteration, int rank,
                        const std::uint64_t* decoded, std::span<const std::string> parts);

/// XXH3-64.
std::uint64_t digest(std::span<const std::byte> bytes);

}  // namespace forebay
