// choose_engine() with the question "is there an io_uring?" answered by the caller: for tests.
#pragma once

#include "storage/bulk_reader.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {

EngineChoice choose_engine(const File& file, bool scattered, const UringProbe& probe);

}  // namespace forebay
