// forebay::Loader for the Python class forebay.Loader (forebay/_loader.py), which owns epochs,
// states and conversions.
//
//   decoded fields   arrays over the loader's own memory, which they keep: the batch itself is
//                    released at once, so arrays may be kept, and dropped, in any order and thread
//   stored values    copied together into arrays with offsets, for the same reason
#include "forebay/loader.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "arrays.hpp"
#include "core/non_copyable.hpp"
#include "ending.hpp"
#include "format/byte_stream.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

void ask_python() {
  const Locked locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// What next() gives, besides the fields.
struct TakenBatch {
  std::uint64_t epoch = 0;
  std::uint64_t iteration = 0;
  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> repeats;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> keys;
  Columns stored;
  std::shared_ptr<const void> decoded;  ///< keeps `fields`
  std::vector<std::span<const std::byte>> fields;
  LoaderWaits waited;  ///< for this batch
};

struct Wanted {
  WantedParts parts;
  bool keys = false;
  bool seeds = false;
};

void add_stored(const Sample& sample, Columns& stored) {
  try {
    stored.add(sample.value);
  } catch (const Error& error) {
    throw of_sample(error, sample.id, chars_of(sample.key));
  }
}

TakenBatch take_apart(const Batch& batch, const Schema& schema, bool decoded,
                      const Wanted& wanted) {
  std::size_t bytes = 0;
  for (const Sample& sample : batch.samples()) bytes += sample.value.size();
  TakenBatch taken{.epoch = batch.epoch(),
                   .iteration = batch.iteration(),
                   .stored = Columns(wanted.parts, batch.samples().size(), bytes)};
  for (const Sample& sample : batch.samples()) {
    taken.ids.push_back(static_cast<std::int64_t>(sample.id));
    taken.repeats.push_back(sample.repeat ? 1 : 0);
    add_stored(sample, taken.stored);
    if (wanted.seeds) taken.seeds.push_back(sample.seed());
    if (wanted.keys) {
      taken.keys.emplace_back(reinterpret_cast<const char*>(sample.key.data()), sample.key.size());
    }
  }
  // What was copied just now.
  if (!decoded || wanted.keys || !wanted.parts.wanted.empty()) batch.check_unchanged();
  if (decoded) {
    taken.decoded = batch.share_fields();
    for (std::size_t f = 0; f < schema.fields.size(); ++f) taken.fields.push_back(batch.field(f));
  }
  return taken;
}

/// Belongs to the process that opened it: its threads and MPI do not survive a fork. close() may be
/// called while another thread is inside of next(), which then throws cancelled.
class PythonLoader : private NonCopyable {
 public:
  PythonLoader(const std::shared_ptr<Communicator>& comm, const nb::bytes& path,
               LoaderOptions options)
      : process_(getpid()),
        ends_behind_(comm->size() > 1 && comm->concurrent()),
        decode_(options.decode || !options.transform.empty()) {
    const std::string name = name_of(path);
    const Unlocked unlocked;
    wait_for_ends();
    options.one_at_a_time = true;
    loader_.emplace(Loader::open(comm, name, options));
    loader_->set_interrupt(ask_python);
    schema_ = loader_->schema();
    types_ = types_of(loader_->parts(), schema_);
    parts_.assign(loader_->parts().begin(), loader_->parts().end());
  }
  ~PythonLoader() { close(); }

  void close() {
    if (getpid() != process_) {
      // A child of fork() has the object, but none of the threads that its end would wait for.
      if (loader_) new std::optional<Loader>(std::move(loader_));  // left behind on purpose
      loader_.reset();
      return;
    }
    const Unlocked unlocked;
    std::unique_lock lock(use_, std::try_to_lock);
    if (!lock) {
      loader_->fail(Error(ErrorKind::cancelled, "the loader was closed by another thread"));
      lock.lock();
    }
    loader_.reset();
  }

  /// As close(), but does not wait for the others, whom this rank may have to serve for a while: an
  /// exception that is on its way through the caller should not have to either.
  void close_behind() {
    const auto loader = ends_behind_ ? take() : nullptr;
    if (loader == nullptr) return close();
    end_behind([loader] { loader->reset(); });
  }

  /// Ends it when the process does (ending.hpp).
  void leave_to_exit() {
    const auto loader = take();
    if (loader == nullptr) return close();
    python::leave_to_exit({.fail = [loader](const Error& error) { (*loader)->fail(error); },
                           .end = [loader] { loader->reset(); }});
  }

  /// None at the end; else epoch, iteration, ids, repeats, fields, the wanted parts as stored,
  /// keys, seeds, and the seconds waited for data, decoding, other ranks.
  nb::object next(const std::vector<std::size_t>& parts, bool keys, bool seeds) {
    std::optional<TakenBatch> taken;
    const Wanted wanted{
        .parts = {.parts = parts_, .wanted = parts, .types = types_}, .keys = keys, .seeds = seeds};
    {
      const Unlocked unlocked;
      const std::lock_guard lock(use_);
      Loader& loader = alive();
      const LoaderWaits before = loader.waits();
      if (const auto batch = loader.next()) {
        taken = take_apart(*batch, schema_, decode_, wanted);
        const LoaderWaits after = loader.waits();
        taken->waited = {.data = after.data - before.data,
                         .decoding = after.decoding - before.decoding,
                         .ranks = after.ranks - before.ranks};
      }
    }
    if (!taken) return nb::none();
    return to_python(*taken);
  }

  /// Makes every rank's next call throw this.
  void fail(const std::string& message, std::optional<std::uint64_t> sample,
            const std::string& key) {
    alive().fail(Error(ErrorKind::cancelled, message, {}, {.sample = sample, .key = key}));
  }

  /// What `question` says of the loader, when no other thread uses or closes it.
  template <typename Question>
  auto ask(Question question) {
    const Unlocked unlocked;
    const std::lock_guard lock(use_);
    return question(alive());
  }

 private:
  /// The loader, which this object has no more; null where it is another thread's or process's.
  std::shared_ptr<std::optional<Loader>> take() {
    const std::unique_lock lock(use_, std::try_to_lock);
    if (getpid() != process_ || !lock || !loader_) return nullptr;
    loader_->set_interrupt({});
    auto taken = std::make_shared<std::optional<Loader>>(std::move(loader_));
    loader_.reset();
    return taken;
  }

  Loader& alive() {
    if (getpid() != process_) {
      throw Error(ErrorKind::usage, "the loader was opened before this process was forked",
                  "open loaders in the process that uses them");
    }
    if (!loader_) throw Error(ErrorKind::usage, "the loader is closed", "open another one");
    return *loader_;
  }

  nb::object to_python(TakenBatch& taken) const {
    const std::size_t samples = taken.ids.size();
    nb::dict fields;
    for (std::size_t f = 0; f < taken.fields.size(); ++f) {
      const Field& field = schema_.fields[f];
      fields[field.name.c_str()] =
          array_over(taken.fields[f], field.type, batch_shape(field, samples), taken.decoded);
    }
    return nb::make_tuple(
        taken.epoch, taken.iteration, array_of(std::move(taken.ids)),
        array_of(std::move(taken.repeats)), fields, taken.stored.to_python(),
        list_of_bytes(taken.keys), array_of(std::move(taken.seeds)),
        nb::make_tuple(taken.waited.data, taken.waited.decoding, taken.waited.ranks));
  }

  std::mutex use_;  ///< of the loader, by next()
  std::optional<Loader> loader_;
  pid_t process_;
  bool ends_behind_;
  bool decode_;
  Schema schema_;
  std::vector<std::string> parts_;
  std::vector<ElementType> types_;  ///< of parts that come as they are stored
};

template <typename Question>
auto asks(Question question) {
  return [question](PythonLoader& self) { return self.ask(question); };
}

nb::list skipped_of(PythonLoader& self) {
  const auto skipped = self.ask([](Loader& loader) {
    return std::vector<SkippedSample>(loader.skipped().begin(), loader.skipped().end());
  });
  nb::list all;
  for (const SkippedSample& sample : skipped) {
    all.append(nb::make_tuple(sample.id, sample.key, sample.message));
  }
  return all;
}

void set_ids(
    LoaderOptions& options,
    const nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& ids) {
  std::vector<std::uint64_t> numbers(ids.size());
  std::transform(ids.data(), ids.data() + ids.size(), numbers.begin(),
                 [](std::int64_t id) { return static_cast<std::uint64_t>(id); });
  options.ids = std::make_shared<const std::vector<std::uint64_t>>(std::move(numbers));
}

void add_options(nb::module_& module) {
  nb::class_<LoaderOptions>(module, "LoaderOptions")
      .def(nb::init<>())
      .def(
          "set",
          [](LoaderOptions& options, const std::string& name, const nb::bytes& value) {
            options.set(name, name_of(value));
          },
          nb::arg("name"), nb::arg("value"))
      .def("set_ids", &set_ids, nb::arg("ids"))
      .def_rw("stage_bytes", &LoaderOptions::stage_bytes)
      .def_rw("decode_threads", &LoaderOptions::decode_threads)
      .def_ro("iterations", &LoaderOptions::iterations)
      .def_ro("epochs", &LoaderOptions::epochs)
      .def_rw("first_epoch", &LoaderOptions::first_epoch)
      .def_rw("first_iteration", &LoaderOptions::first_iteration)
      .def("copy", [](const LoaderOptions& options) { return LoaderOptions(options); })
      .def("to_text", &LoaderOptions::to_text);
  module.def("resume_options", &resume_options, nb::arg("state"), nb::arg("options"),
             nb::arg("ranks"));
  module.def(
      "option_names",
      [] {
        nb::list names;
        for (const auto infos :
             {loader_option_infos(), format_option_infos(), order_option_infos()}) {
          for (const OptionInfo& info : infos) {
            names.append(nb::make_tuple(std::string(info.name), std::string(info.value),
                                        std::string(info.help)));
          }
        }
        return names;
      },
      nb::sig("def option_names() -> list[tuple[str, str, str]]"));
}

}  // namespace

void add_loader(nb::module_& module) {
  add_options(module);
  nb::class_<PythonLoader>(module, "Loader")
      .def(nb::init<const std::shared_ptr<Communicator>&, const nb::bytes&, const LoaderOptions&>(),
           nb::arg("comm"), nb::arg("path"), nb::arg("options"))
      .def("next", &PythonLoader::next, nb::arg("parts"), nb::arg("keys"), nb::arg("seeds"))
      .def("close", &PythonLoader::close)
      .def("close_behind", &PythonLoader::close_behind)
      .def("leave_to_exit", &PythonLoader::leave_to_exit)
      .def("fail", &PythonLoader::fail, nb::arg("message"), nb::arg("sample").none(),
           nb::arg("key"))
      .def("entries", asks([](Loader& loader) { return loader.entries(); }))
      .def("epoch_iterations", asks([](Loader& loader) { return loader.epoch_iterations(); }))
      .def("epochs_done", asks([](Loader& loader) { return loader.epochs_done(); }))
      .def(
          "schema",
          [](PythonLoader& self) {
            return fields_of(self.ask([](Loader& loader) { return loader.schema(); }));
          },
          nb::sig("def schema(self) -> list[tuple[str, str, tuple[int, ...]]]"))
      .def("parts", asks([](Loader& loader) {
             return std::vector<std::string>(loader.parts().begin(), loader.parts().end());
           }))
      .def(
          "classes",
          [](PythonLoader& self) {
            return list_of_bytes(self.ask([](Loader& loader) {
              return std::vector<std::string>(loader.classes().begin(), loader.classes().end());
            }));
          },
          nb::sig("def classes(self) -> list[bytes]"))
      .def(
          "explain",
          [](PythonLoader& self) {
            return text_of(self.ask([](Loader& loader) { return loader.explain(); }));
          },
          nb::sig("def explain(self) -> str"))
      .def("statistics", asks([](Loader& loader) { return to_json(loader.statistics()); }))
      .def("state", asks([](Loader& loader) { return loader.state(); }))
      .def("skipped", &skipped_of, nb::sig("def skipped(self) -> list[tuple[int, str, str]]"));
}

}  // namespace forebay::python
