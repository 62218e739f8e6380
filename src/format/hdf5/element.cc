#include "format/hdf5/dataset.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace forebay::hdf5 {
namespace {

// Arrays of arrays of arrays: nobody needs more, and hostile files would like to.
constexpr int kMaxNesting = 8;

struct KnownNumber {
  hid_t little;
  hid_t big;
  ElementType type;
};

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::unsupported, "its elements are " + what + ", which Forebay does not read",
              remedy);
}

/// A copy of `wide` that is shaped as IEEE half precision; the library has no constant for it.
Id half_precision(hid_t wide) {
  Id type(H5Tcopy(wide), H5Tclose);
  H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 15);
  return type;
}

bool equal(hid_t a, hid_t b) { return H5Tequal(a, b) > 0; }

/// Width in bytes when the numbers lie in the other byte order, else 0.
std::uint32_t swap_width(bool little, ElementType type) {
  const bool native = little == (std::endian::native == std::endian::little);
  return native || size_of(type) == 1 ? 0 : static_cast<std::uint32_t>(size_of(type));
}

ElementLayout number_layout(hid_t type) {
  const Id half_little = half_precision(H5T_IEEE_F32LE);
  const Id half_big = half_precision(H5T_IEEE_F32BE);
  const std::array<KnownNumber, 11> known{{
      {H5T_STD_U8LE, H5T_STD_U8BE, ElementType::u8},
      {H5T_STD_I8LE, H5T_STD_I8BE, ElementType::i8},
      {H5T_STD_U16LE, H5T_STD_U16BE, ElementType::u16},
      {H5T_STD_I16LE, H5T_STD_I16BE, ElementType::i16},
      {H5T_STD_U32LE, H5T_STD_U32BE, ElementType::u32},
      {H5T_STD_I32LE, H5T_STD_I32BE, ElementType::i32},
      {H5T_STD_U64LE, H5T_STD_U64BE, ElementType::u64},
      {H5T_STD_I64LE, H5T_STD_I64BE, ElementType::i64},
      {half_little.get(), half_big.get(), ElementType::f16},
      {H5T_IEEE_F32LE, H5T_IEEE_F32BE, ElementType::f32},
      {H5T_IEEE_F64LE, H5T_IEEE_F64BE, ElementType::f64},
  }};
  for (const KnownNumber& number : known) {
    const bool little = equal(type, number.little);
    if (!little && !equal(type, number.big)) continue;
    return {.type = number.type, .shape = {}, .swap = swap_width(little, number.type)};
  }
  refuse(fmt::format("numbers of {} bytes in an unusual form", H5Tget_size(type)),
         "store them as integers or IEEE floats of 1, 2, 4 or 8 bytes");
}

/// h5py's bool: an enumeration over i8 of exactly FALSE = 0 and TRUE = 1.
bool is_bool(hid_t type) {
  if (H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 1) return false;
  signed char value = -1;
  return H5Tenum_valueof(type, "FALSE", &value) >= 0 && value == 0 &&
         H5Tenum_valueof(type, "TRUE", &value) >= 0 && value == 1;
}

ElementLayout enumeration_layout(hid_t type) {
  if (is_bool(type)) return {.type = ElementType::u8, .shape = {}, .swap = 0};
  const Id base(H5Tget_super(type), H5Tclose);
  return number_layout(base.get());
}

ElementLayout bytes_layout(hid_t type) {
  return {.type = ElementType::u8, .shape = {H5Tget_size(type)}, .swap = 0};
}

ElementLayout layout_at(hid_t type, int depth);

ElementLayout array_layout(hid_t type, int depth) {
  std::array<hsize_t, H5S_MAX_RANK> dimensions{};
  const int rank = H5Tget_array_ndims(type);
  if (rank < 0 || rank > H5S_MAX_RANK || H5Tget_array_dims2(type, dimensions.data()) < 0) {
    refuse("arrays whose shape libhdf5 cannot tell", "leave the data set out with '#NAME,...'");
  }
  const Id base(H5Tget_super(type), H5Tclose);
  ElementLayout layout = layout_at(base.get(), depth + 1);
  layout.shape.insert(layout.shape.begin(), dimensions.begin(), dimensions.begin() + rank);
  return layout;
}

ElementLayout layout_at(hid_t type, int depth) {
  if (depth > kMaxNesting) refuse("arrays nested too deeply", "store plain arrays");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return number_layout(type);
    case H5T_ENUM:
      return enumeration_layout(type);
    case H5T_ARRAY:
      return array_layout(type, depth);
    case H5T_OPAQUE:
      return bytes_layout(type);
    case H5T_STRING:
      if (H5Tis_variable_str(type) == 0) return bytes_layout(type);
      refuse("strings of variable length",
             "store strings of fixed length, or leave the data set out with '#NAME,...'");
    case H5T_VLEN:
      refuse("lists of variable length (ragged data)",
             "pad them to one length, or leave the data set out with '#NAME,...'");
    case H5T_COMPOUND:
      refuse("compound records (complex numbers are such, too)",
             "store each member as a data set of its own, or leave this one out with '#NAME,...'");
    case H5T_REFERENCE:
      refuse("references", "leave the data set out with '#NAME,...'");
    default:
      refuse("of a class that is neither number nor string",
             "leave the data set out with '#NAME,...'");
  }
}

}  // namespace

ElementLayout element_layout(hid_t type) {
  ElementLayout layout = layout_at(type, 0);
  // What was understood must be what is stored, or rows would shift.
  const Field field{.name = "element", .type = layout.type, .shape = layout.shape};
  if (field.bytes() != H5Tget_size(type)) {
    refuse(fmt::format("of {} bytes where {} were expected", H5Tget_size(type), field.bytes()),
           "leave the data set out with '#NAME,...'");
  }
  return layout;
}

}  // namespace forebay::hdf5
