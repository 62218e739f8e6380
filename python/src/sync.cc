// Gradient synchronization: SyncEngine on arrays of any framework that speaks DLPack. Python keeps
// arrays alive until their handle is done (forebay/_sync.py).
#include "forebay/sync.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "ending.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace forebay::python {
namespace {

using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;

TensorType type_of(const Array& array, const std::string& name) {
  const nb::dlpack::dtype type = array.dtype();
  const auto is = [&type](nb::dlpack::dtype_code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits && type.lanes == 1;
  };
  using nb::dlpack::dtype_code;
  if (is(dtype_code::Float, 32)) return TensorType::float32;
  if (is(dtype_code::Float, 16)) return TensorType::float16;
  if (is(dtype_code::Bfloat, 16)) return TensorType::bfloat16;
  if (is(dtype_code::Float, 64)) return TensorType::float64;
  if (is(dtype_code::Int, 32)) return TensorType::int32;
  if (is(dtype_code::Int, 64)) return TensorType::int64;
  throw Error(ErrorKind::unsupported,
              fmt::format("tensor '{}' has a type that is not summed over ranks", name),
              "convert it to float16, bfloat16, float32, float64, int32 or int64");
}

TensorSpec spec_of(const std::string& name, const Array& array) {
  TensorSpec spec{.name = name, .type = type_of(array, name)};
  for (std::size_t d = 0; d < array.ndim(); ++d) spec.shape.push_back(array.shape(d));
  return spec;
}

std::span<std::byte> bytes_of(const Array& array) {
  return {static_cast<std::byte*>(array.data()), array.nbytes()};
}

Reduction parse_reduction(const std::string& text) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max}) {
    if (to_string(reduction) == text) return reduction;
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a reduction", text),
              "use one of sum, mean, min, max");
}

WireFormat parse_wire(const std::string& text) {
  if (text == "as_is") return WireFormat::as_is;
  if (text == "float16") return WireFormat::float16;
  if (text == "bfloat16") return WireFormat::bfloat16;
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a wire format", text),
              "use one of as_is, float16, bfloat16");
}

/// Those that live, beside Python's own hold on them.
std::vector<std::weak_ptr<SyncEngine>>& engines() {
  static auto& all = *new std::vector<std::weak_ptr<SyncEngine>>;
  return all;
}

/// Ends the engine when the process does (ending.hpp). `arrays` are what it may still work on.
void leave_engine_to_exit(const SyncEngine& engine, nb::object arrays) {
  arrays.release();  // never given back
  for (const auto& one : engines()) {
    auto living = one.lock();
    if (living.get() != &engine) continue;
    leave_to_exit({.fail = [living](const Error& error) { living->fail(error); },
                   .end = [living] { living->close(); }});
  }
}

std::shared_ptr<SyncEngine> make_engine(const std::shared_ptr<Communicator>& comm,
                                        const std::string& strategy, double cycle_ms,
                                        std::optional<std::uint64_t> fusion_bytes,
                                        const std::string& wire, bool deterministic,
                                        double stall_warning, double stall_limit,
                                        const std::string& placement) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
  };
  const SyncOptions options{
      .strategy = parse_sync_strategy(strategy),
      .cycle = std::chrono::microseconds(static_cast<std::int64_t>(cycle_ms * 1e3)),
      .fusion_bytes = fusion_bytes,
      .wire = parse_wire(wire),
      .deterministic = deterministic,
      .stall_warning = milliseconds(stall_warning),
      .stall_limit = milliseconds(stall_limit),
      .placement = placement};
  const Unlocked unlocked;
  // Its end waits for its thread, and perhaps for other ranks.
  const std::shared_ptr<SyncEngine> made(new SyncEngine(comm, options), [](SyncEngine* engine) {
    const Unlocked meanwhile;
    delete engine;
  });
  std::erase_if(engines(), [](const auto& one) { return one.expired(); });
  engines().push_back(made);
  return made;
}

/// Waits, looking for signals now and then.
void wait(const SyncHandle& handle) {
  for (;;) {
    {
      const Unlocked unlocked;
      if (handle.wait_for(std::chrono::milliseconds(100))) break;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  handle.wait();  // throws what has failed
}

nb::dict figures_of(const SyncEngine& engine) {
  const SyncStatistics figures = engine.statistics();
  nb::dict all;
  all["tensors"] = figures.tensors;
  all["transfers"] = figures.transfers;
  all["bytes"] = figures.bytes;
  all["wire_bytes"] = figures.wire_bytes;
  all["cycles"] = figures.cycles;
  all["negotiations"] = figures.negotiations;
  all["plans"] = figures.plans;
  all["fallbacks"] = figures.fallbacks;
  all["stalls"] = figures.stalls;
  all["wait_seconds"] = figures.wait_seconds;
  all["copy_seconds"] = figures.copy_seconds;
  all["transfer_seconds"] = figures.transfer_seconds;
  all["thread_user_seconds"] = figures.thread_user_seconds;
  all["thread_system_seconds"] = figures.thread_system_seconds;
  return all;
}

}  // namespace

void add_sync(nb::module_& module) {
  nb::class_<SyncHandle>(module, "SyncHandle")
      .def("done", &SyncHandle::done)
      .def(
          "wait_for",
          [](const SyncHandle& handle, double seconds) {
            const Unlocked unlocked;
            return handle.wait_for(
                std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
          },
          nb::arg("seconds"))
      .def("wait", &wait);
  nb::class_<SyncEngine>(module, "SyncEngine")
      .def(
          "allreduce",
          [](SyncEngine& engine, const std::string& name, const Array& in, const Array& out,
             const std::string& reduction) {
            return engine.allreduce(spec_of(name, in), bytes_of(in), bytes_of(out),
                                    parse_reduction(reduction));
          },
          nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("reduction"),
          nb::sig("def allreduce(self, name: str, input: object, output: object, reduction: str) "
                  "-> SyncHandle"))
      .def(
          "broadcast",
          [](SyncEngine& engine, const std::string& name, const Array& array, int root) {
            return engine.broadcast(spec_of(name, array), bytes_of(array), root);
          },
          nb::arg("name"), nb::arg("array"), nb::arg("root"),
          nb::sig("def broadcast(self, name: str, array: object, root: int) -> SyncHandle"))
      .def("barrier", &SyncEngine::barrier, nb::arg("name"))
      .def("join", &SyncEngine::join)
      .def("end_step", &SyncEngine::end_step)
      .def("close", &SyncEngine::close, nb::call_guard<Unlocked>())
      .def(
          "fail",
          [](SyncEngine& engine, const std::string& message) {
            engine.fail(Error(ErrorKind::cancelled, message));
          },
          nb::arg("message"))
      .def("leave_to_exit", &leave_engine_to_exit, nb::arg("arrays"))
      .def("check", &SyncEngine::check)
      .def("explain", &SyncEngine::explain)
      .def("statistics", &figures_of, nb::sig("def statistics(self) -> dict[str, float]"));
  module.def("make_sync_engine", &make_engine, nb::arg("comm"), nb::arg("strategy"),
             nb::arg("cycle_ms"), nb::arg("fusion_bytes").none(), nb::arg("wire"),
             nb::arg("deterministic"), nb::arg("stall_warning"), nb::arg("stall_limit"),
             nb::arg("placement"));
}

}  // namespace forebay::python
