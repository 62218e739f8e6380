// Samples of several parts (forebay/packed_parts.hpp), each part with a codec of its own.
//
//   parts(image=auto,label=bytes)      the text form, CodecOptions::codec
//
// A part whose values have one field gives it the part's name, one with several gives
// "part.field". Parts that decode to no fixed shape, text above all, have no field: who wants them
// takes them from the value.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/codec/codecs.hpp"

namespace forebay {

/// The text form for samples of these parts, when the user says `wanted`: one codec for all, or
/// NAME=CODEC,... Where that is auto, `known` may say better, a codec a part. Throws usage.
std::string parts_codec_text(const std::vector<std::string>& parts, const std::string& wanted,
                             std::span<const std::string> known = {});

bool is_parts_codec(std::string_view codec);

/// `options.codec` as parts_codec_text() made it. Throws usage, corrupt, unsupported.
CodecPtr make_parts_codec(const CodecOptions& options, std::span<const std::byte> first_value);

}  // namespace forebay
