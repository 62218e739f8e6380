#include "memory.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <vector>

#include "forebay/error.hpp"

namespace forebay::python {
namespace {

Error refused(const Argument& argument, const std::string& what, const std::string& remedy) {
  return {ErrorKind::usage, fmt::format("{}: {} {}", argument.call, argument.name, what), remedy};
}

constexpr const char* kTypes = "convert it to float16, bfloat16, float32, float64, int32 or int64";

Error refused_type(const Argument& argument, const std::string& type) {
  return refused(argument, fmt::format("has elements of type {}, which ranks do not sum", type),
                 kTypes);
}

std::optional<TensorType> float_type(std::size_t bytes) {
  if (bytes == 2) return TensorType::float16;
  if (bytes == 4) return TensorType::float32;
  if (bytes == 8) return TensorType::float64;
  return {};
}

std::optional<TensorType> integer_type(std::size_t bytes) {
  if (bytes == 4) return TensorType::int32;
  if (bytes == 8) return TensorType::int64;
  return {};
}

/// Of a format of the module struct, without its mark of byte order.
std::optional<TensorType> type_of(std::string_view format, std::size_t bytes) {
  constexpr std::string_view kFloats = "efd";
  constexpr std::string_view kIntegers = "ilqn";
  if (format.size() != 1) return {};
  if (kFloats.find(format.front()) != std::string_view::npos) return float_type(bytes);
  if (kIntegers.find(format.front()) != std::string_view::npos) return integer_type(bytes);
  return {};
}

std::optional<TensorType> type_of(const nb::dlpack::dtype& type) {
  using nb::dlpack::dtype_code;
  if (type.lanes != 1) return {};
  if (type.code == static_cast<std::uint8_t>(dtype_code::Float)) return float_type(type.bits / 8U);
  if (type.code == static_cast<std::uint8_t>(dtype_code::Int)) return integer_type(type.bits / 8U);
  if (type.code == static_cast<std::uint8_t>(dtype_code::Bfloat) && type.bits == 16) {
    return TensorType::bfloat16;
  }
  return {};
}

/// Tells whether bytes of elements are the other way round, and takes the mark off.
bool take_byte_order(std::string_view& format) {
  constexpr std::string_view kMarks = "@=<>!";
  if (format.empty() || kMarks.find(format.front()) == std::string_view::npos) return false;
  const char mark = format.front();
  format.remove_prefix(1);
  const bool little = std::endian::native == std::endian::little;
  return little ? mark == '>' || mark == '!' : mark == '<';
}

/// What the array says of its type, else `otherwise`.
std::string type_name(nb::handle object, const std::string& otherwise) {
  if (!nb::hasattr(object, "dtype")) return otherwise;
  const nb::object dtype = object.attr("dtype");
  return nb::cast<std::string>(nb::str(dtype));
}

std::shared_ptr<Py_buffer> buffer_of(nb::handle object, int flags) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return nullptr;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), flags) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  return {view.release(), [](Py_buffer* held) {
            PyBuffer_Release(held);
            delete held;
          }};
}

/// Also those that say nothing, as ctypes does, of the order of C.
std::vector<std::int64_t> strides_of(const Py_buffer& view) {
  if (view.strides != nullptr) return {view.strides, view.strides + view.ndim};
  std::vector<std::int64_t> strides(static_cast<std::size_t>(view.ndim));
  std::int64_t step = view.itemsize;
  for (std::size_t d = strides.size(); d-- > 0; step *= view.shape[d]) strides[d] = step;
  return strides;
}

/// One dimension of two arrays with equal strides: how many indices each has.
struct Pair {
  std::int64_t stride;
  std::int64_t ours;
  std::int64_t theirs;
};

/// By strides, the longest first; nothing where they are not the same in both.
std::optional<std::vector<Pair>> paired(const Layout& ours, const Layout& theirs) {
  if (ours.strides != theirs.strides) return {};
  std::vector<Pair> pairs;
  for (std::size_t d = 0; d < ours.strides.size(); ++d) {
    if (ours.strides[d] <= 0) return {};
    pairs.push_back({ours.strides[d], static_cast<std::int64_t>(ours.shape[d]),
                     static_cast<std::int64_t>(theirs.shape[d])});
  }
  std::ranges::sort(pairs, std::greater{}, &Pair::stride);
  return pairs;
}

/// Whether some elements are less than `size` bytes apart, where the arrays are `apart`. What the
/// dimensions behind the first reach is less than a stride of that: only three steps come close.
bool close(std::span<const Pair> pairs, std::int64_t apart, std::int64_t size) {
  if (pairs.empty()) return -size < apart && apart < size;
  const auto [stride, ours, theirs] = pairs.front();
  const std::int64_t near = apart / stride;
  for (std::int64_t step = near - 2; step <= near + 2; ++step) {
    if (step <= -ours || step >= theirs) continue;
    if (close(pairs.subspan(1), apart - step * stride, size)) return true;
  }
  return false;
}

}  // namespace

Memory Memory::of(nb::handle object, Access access, const Argument& argument) {
  Memory memory;
  if (!memory.import_buffer(object, access, argument) && !memory.import_dlpack(object, argument)) {
    if (PyObject_CheckBuffer(object.ptr()) != 0 || nb::hasattr(object, "__dlpack__")) {
      throw refused(argument,
                    fmt::format("does not give its memory away: its elements are of type {}",
                                type_name(object, "unknown")),
                    "give a NumPy array or a CPU tensor with memory of its own, of float16, "
                    "bfloat16 (torch), float32, float64, int32 or int64");
    }
    throw refused(argument,
                  fmt::format("is no array, but of type {}", Py_TYPE(object.ptr())->tp_name),
                  "give a NumPy array, a torch tensor, or what has the buffer protocol or DLPack");
  }
  if (memory.first_ == nullptr && memory.layout_.elements() > 0) {
    throw refused(argument, "has no memory", "give an array that was filled");
  }
  if (access == Access::read) return memory;
  if (!memory.writable_) {
    throw refused(argument, "is read-only, and the result goes there",
                  "give an array that can be written to, as a copy of it");
  }
  if (!memory.layout_.distinct()) {
    throw refused(argument, "has elements that share memory, as expanded and broadcast arrays do",
                  "give a copy of it, whose elements have memory of their own");
  }
  return memory;
}

bool Memory::import_buffer(nb::handle object, Access access, const Argument& argument) {
  constexpr int kAnyLayout = PyBUF_STRIDES | PyBUF_FORMAT;
  std::shared_ptr<Py_buffer> view;
  // Some say that they are read-only to those alone who want to write.
  if (access == Access::write) view = buffer_of(object, kAnyLayout | PyBUF_WRITABLE);
  writable_ = view != nullptr && view->readonly == 0;
  if (view == nullptr) view = buffer_of(object, kAnyLayout);
  if (view == nullptr) return false;
  std::string_view format = view->format == nullptr ? "B" : view->format;
  layout_.swapped = take_byte_order(format);
  const auto type = type_of(format, static_cast<std::size_t>(view->itemsize));
  if (!type) throw refused_type(argument, type_name(object, std::string(format)));
  layout_.type = *type;
  for (int d = 0; d < view->ndim; ++d) {
    layout_.shape.push_back(static_cast<std::uint64_t>(view->shape[d]));
  }
  layout_.strides = strides_of(*view);
  first_ = static_cast<std::byte*>(view->buf);
  owner_ = view;
  return true;
}

bool Memory::import_dlpack(nb::handle object, const Argument& argument) {
  nb::ndarray<> writable;
  if (nb::try_cast(object, writable, false)) {
    take(object, nb::ndarray<nb::ro>(writable), true, argument);
    return true;
  }
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array, false)) return false;
  take(object, array, false, argument);
  return true;
}

void Memory::take(nb::handle object, const nb::ndarray<nb::ro>& array, bool writable,
                  const Argument& argument) {
  if (array.device_type() != nb::device::cpu::value) {
    throw refused(argument, "is in the memory of a device", "give a copy of it on the CPU");
  }
  const auto type = type_of(array.dtype());
  if (!type) {
    const std::string code = fmt::format("{} of DLPack", array.dtype().code);
    throw refused_type(argument, type_name(object, code));
  }
  layout_.type = *type;
  for (std::size_t d = 0; d < array.ndim(); ++d) {
    layout_.shape.push_back(array.shape(d));
    layout_.strides.push_back(array.stride(d) * static_cast<std::int64_t>(size_of(*type)));
  }
  first_ = static_cast<std::byte*>(const_cast<void*>(array.data()));
  writable_ = writable;
  owner_ = std::make_shared<const nb::ndarray<nb::ro>>(array);
}

Extent Memory::extent() const {
  if (layout_.elements() == 0) return {};
  auto begin = reinterpret_cast<std::uintptr_t>(first_);
  auto end = begin + size_of(layout_.type);
  for (std::size_t d = 0; d < layout_.shape.size(); ++d) {
    const std::int64_t reach =
        layout_.strides[d] * (static_cast<std::int64_t>(layout_.shape[d]) - 1);
    (reach < 0 ? begin : end) += static_cast<std::uintptr_t>(reach);
  }
  return {begin, end};
}

bool Memory::meets(const Memory& other) const {
  if (!extent().meets(other.extent())) return false;
  if (!layout_.distinct() || !other.layout_.distinct()) return true;
  const auto pairs = paired(layout_, other.layout_);
  const auto size =
      static_cast<std::int64_t>(std::max(size_of(layout_.type), size_of(other.layout_.type)));
  return !pairs || close(*pairs, first_ - other.first_, size);
}

std::span<std::byte> Memory::bytes() const {
  return {first_, layout_.elements() * size_of(layout_.type)};
}

}  // namespace forebay::python
