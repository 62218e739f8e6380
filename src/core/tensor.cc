#include "forebay/tensor.hpp"

#include "core/names.hpp"

namespace forebay {
namespace {

constexpr Name<TensorType> kTypes[] = {
    {"float16", TensorType::float16}, {"bfloat16", TensorType::bfloat16},
    {"float32", TensorType::float32}, {"float64", TensorType::float64},
    {"int32", TensorType::int32},     {"int64", TensorType::int64},
};
constexpr Name<Reduction> kReductions[] = {
    {"sum", Reduction::sum},
    {"mean", Reduction::mean},
    {"min", Reduction::min},
    {"max", Reduction::max},
};

}  // namespace

std::size_t size_of(TensorType type) {
  switch (type) {
    case TensorType::float16:
    case TensorType::bfloat16:
      return 2;
    case TensorType::float32:
    case TensorType::int32:
      return 4;
    case TensorType::float64:
    case TensorType::int64:
      return 8;
  }
  return 1;
}

std::string_view to_string(TensorType type) { return name_of(type, kTypes); }

TensorType parse_tensor_type(std::string_view text) {
  return parse_name("tensor type", text, kTypes);
}

std::string_view to_string(Reduction reduction) { return name_of(reduction, kReductions); }

}  // namespace forebay
