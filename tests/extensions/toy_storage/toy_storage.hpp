// A kind of storage that Forebay does not have, made of nothing but its public headers.
#pragma once

#include "forebay/storage.hpp"

namespace toy {

/// "inverted://NAME": the file NAME, of which every bit is stored inverted.
forebay::Storage inverted_storage();

}  // namespace toy
