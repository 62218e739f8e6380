#include "format/lmdb/provenance/infer.hpp"

namespace forebay::lmdb {
}
