// forebay::Samples for the Python class forebay.Dataset (forebay/_dataset.py).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "arrays.hpp"
#include "core/permutation.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/options.hpp"
#include "forebay/sample_seed.hpp"
#include "forebay/samples.hpp"
#include "format/byte_stream.hpp"
#include "format/class_names.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Memory for the decoded fields of some samples.
class Decoded {
 public:
  Decoded(const Schema& schema, std::size_t samples) : schema_(&schema), samples_(samples) {
    for (const Field& field : schema.fields) {
      arrays_.push_back(std::make_shared<std::vector<std::byte>>(field.bytes() * samples));
    }
  }

  void decode(const Codec& codec, const SampleView& sample) {
    std::vector<std::span<std::byte>> fields;
    for (std::size_t f = 0; f < arrays_.size(); ++f) {
      const std::uint64_t bytes = schema_->fields[f].bytes();
      fields.push_back(std::span(*arrays_[f]).subspan(sample.position * bytes, bytes));
    }
    try {
      codec.decode(sample.value, fields);
    } catch (const Error& error) {
      throw of_sample(error, sample.id, chars_of(sample.key));
    }
  }

  nb::dict to_python() const {
    nb::dict fields;
    for (std::size_t f = 0; f < arrays_.size(); ++f) {
      const Field& field = schema_->fields[f];
      fields[field.name.c_str()] =
          array_over(*arrays_[f], field.type, batch_shape(field, samples_), arrays_[f]);
    }
    return fields;
  }

 private:
  const Schema* schema_;
  std::size_t samples_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> arrays_;
};

std::vector<std::uint64_t> checked(const Ids& ids, std::uint64_t entries) {
  std::vector<std::uint64_t> numbers(ids.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t id = ids.data()[i];
    if (id < 0 || static_cast<std::uint64_t>(id) >= entries) {
      throw nb::index_error("sample ids go from 0 to the number of samples less one");
    }
    numbers[i] = static_cast<std::uint64_t>(id);
  }
  return numbers;
}

/// What stored values are arrays of: bytes, also where nobody can tell how they are decoded.
std::vector<ElementType> stored_types(const Samples& samples) {
  const Unlocked unlocked;
  try {
    return types_of(samples.parts(), samples.schema());
  } catch (const Error&) {
    return types_of(samples.parts(), {});
  }
}

/// Decoded fields, and the wanted parts as stored, in the order of `ids`.
nb::object read(const Samples& samples, const Ids& ids, bool decode,
                const std::vector<std::size_t>& wanted) {
  const std::vector<std::uint64_t> numbers = checked(ids, samples.entries());
  const WantedParts which{
      .parts = samples.parts(), .wanted = wanted, .types = stored_types(samples)};
  static const Schema nothing;
  std::vector<std::vector<std::byte>> values(wanted.empty() ? 0 : numbers.size());
  std::optional<Columns> columns;
  std::optional<Decoded> decoded;
  {
    const Unlocked unlocked;
    decoded.emplace(decode ? samples.schema() : nothing, numbers.size());
    samples.read(numbers, [&](const SampleView& sample) {
      if (decode) decoded->decode(samples.codec(), sample);
      if (!wanted.empty()) values[sample.position].assign(sample.value.begin(), sample.value.end());
    });
    std::size_t bytes = 0;
    for (const auto& value : values) bytes += value.size();
    columns.emplace(which, numbers.size(), bytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      try {
        columns->add(values[i]);
      } catch (const Error& error) {
        throw of_sample(error.within({.file = samples.path()}), numbers[i],
                        samples.key(numbers[i]));
      }
    }
  }
  return nb::make_tuple(decoded->to_python(), columns->to_python());
}

nb::list keys_of(const Samples& samples) {
  std::vector<std::string> keys;
  {
    const Unlocked unlocked;
    samples.keys([&keys](std::uint64_t, std::span<const std::byte> key) {
      keys.emplace_back(reinterpret_cast<const char*>(key.data()), key.size());
    });
  }
  return list_of_bytes(keys);
}

Samples open_samples(const nb::bytes& path, const LoaderOptions& options) {
  const std::string name = name_of(path);
  const Unlocked unlocked;
  return Samples::open(name, options);
}

std::vector<std::string> names_of(const std::vector<nb::bytes>& names) {
  std::vector<std::string> all;
  for (const nb::bytes& name : names) all.push_back(name_of(name));
  return all;
}

void check_numbers(const nb::bytes& first, const std::vector<nb::bytes>& first_names,
                   const nb::bytes& other, const std::vector<nb::bytes>& other_names,
                   const std::string& remedy) {
  const std::string of = name_of(first), path = name_of(other);
  require_same_numbers({of, names_of(first_names)}, {path, names_of(other_names)}, remedy);
}

}  // namespace

void add_samples(nb::module_& module) {
  nb::class_<Samples>(module, "Samples")
      .def("entries", &Samples::entries)
      .def("parts",
           [](const Samples& samples) {
             return std::vector<std::string>(samples.parts().begin(), samples.parts().end());
           })
      .def(
          "schema",
          [](const Samples& samples) {
            {
              const Unlocked unlocked;
              samples.schema();  // the first call reads
            }
            return fields_of(samples.schema());
          },
          nb::sig("def schema(self) -> list[tuple[str, str, tuple[int, ...]]]"))
      .def(
          "classes", [](const Samples& samples) { return list_of_bytes(samples.classes()); },
          nb::sig("def classes(self) -> list[bytes]"))
      .def("fingerprint", &Samples::fingerprint)
      .def("info", &Samples::info, nb::call_guard<Unlocked>())
      .def("key",
           [](const Samples& samples, std::uint64_t id) {
             std::string key;
             {
               const Unlocked unlocked;
               key = samples.key(id);
             }
             return nb::bytes(key.data(), key.size());
           })
      .def("keys", &keys_of, nb::sig("def keys(self) -> list[bytes]"))
      .def("read", &read, nb::arg("ids"), nb::arg("decode"), nb::arg("wanted"));
  module.def("open_samples", &open_samples, nb::arg("path"), nb::arg("options"));
  module.def(
      "class_names_of",
      [](const nb::bytes& text) {
        const std::string name = name_of(text);
        ClassNames names;
        {
          const Unlocked unlocked;
          names = class_names_of(name);
        }
        return list_of_bytes(names);
      },
      nb::arg("text"), nb::sig("def class_names_of(text: bytes) -> list[bytes]"));
  module.def("require_same_numbers", &check_numbers, nb::arg("first"), nb::arg("first_names"),
             nb::arg("other"), nb::arg("other_names"), nb::arg("remedy"));
}

// Orders as pure functions, for what is mixed or planned in Python.

namespace {

/// Where the numbers [first, first + count) of 0..size-1 go.
nb::object permute(std::uint64_t size, std::uint64_t key, std::uint64_t first,
                   std::uint64_t count) {
  if (size == 0 || size > Permutation::kMostSize || first > size || count > size - first) {
    throw Error(ErrorKind::usage, "the numbers to permute are not all below the size",
                "give 1 <= size <= 2^48 and first + count <= size");
  }
  std::vector<std::uint64_t> images(count);
  {
    const Unlocked unlocked;
    Permutation(size, key).images(first, images);
  }
  return array_of(std::move(images));
}

/// The samples of `rank` in `epoch`, in the order of delivery.
nb::object order_ids(const LoaderOptions& options, std::uint64_t entries, int ranks, int rank,
                     std::uint64_t epoch) {
  std::vector<std::int64_t> ids;
  {
    const Unlocked unlocked;
    OrderOptions wanted = options;
    wanted.entries = entries;
    wanted.ranks = ranks;
    const EpochOrder order(wanted, epoch);
    std::vector<Draw> draws(order.draws(rank));
    order.draws(rank, 0, draws);
    for (const Draw& draw : draws) ids.push_back(static_cast<std::int64_t>(draw.sample));
  }
  return array_of(std::move(ids));
}

}  // namespace

void add_order(nb::module_& module) {
  module.def("permute", &permute, nb::arg("size"), nb::arg("key"), nb::arg("first"),
             nb::arg("count"));
  module.def("order_ids", &order_ids, nb::arg("options"), nb::arg("entries"), nb::arg("ranks"),
             nb::arg("rank"), nb::arg("epoch"));
  module.def("sample_seed", &sample_seed, nb::arg("run_seed"), nb::arg("epoch"), nb::arg("sample"));
}

}  // namespace forebay::python
