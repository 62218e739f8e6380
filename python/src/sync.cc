// Gradient synchronization: SyncEngine on arrays of any framework. Which memory they have is found
// out in memory.hpp, who keeps it until an operation has ended in on_the_way.hpp.
#include "forebay/sync.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "ending.hpp"
#include "memory.hpp"
#include "module.hpp"
#include "on_the_way.hpp"
#include "sync/gradient_sum.hpp"

namespace forebay::python {
namespace {

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

/// The ways that an engine can sum by.
std::vector<SyncWay> engine_ways() {
  std::vector<SyncWay> ways = sync_ways();
  std::erase_if(ways, [](const SyncWay& way) { return !way.agree; });
  return ways;
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

void require_alike(const Memory& read, const Memory& written, const Argument& argument) {
  const Layout& in = read.layout();
  const Layout& out = written.layout();
  if (in.type == out.type && in.shape == out.shape) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: {} is {} [{}], array {} [{}]", argument.call, argument.name,
                          to_string(out.type), fmt::join(out.shape, ", "), to_string(in.type),
                          fmt::join(in.shape, ", ")),
              "give an output of the array's own type and shape");
}

std::string call_of(const char* what, const std::string& name) {
  return fmt::format("{} of '{}'", what, printable_key(std::as_const(name)));
}

/// A started operation; null: without memory of Python's.
class PythonHandle {
 public:
  explicit PythonHandle(SyncHandle handle, std::shared_ptr<Operation> operation = nullptr)
      : handle_(std::move(handle)), operation_(std::move(operation)) {}

  bool done() {
    if (!handle_.done()) return false;
    release();
    return true;
  }

  bool wait_for(double seconds) {
    const Unlocked unlocked;
    const double longest = 1e9;  // also for what is no number
    const double limit = seconds < longest ? std::max(0.0, seconds) : longest;
    return handle_.wait_for(std::chrono::milliseconds(static_cast<std::int64_t>(limit * 1e3)));
  }

  void wait() {
    try {
      python::wait(handle_);
    } catch (...) {
      release();  // where it has ended
      throw;
    }
    release();
  }

 private:
  void release() {
    if (operation_ != nullptr) operation_->release();
  }

  SyncHandle handle_;
  std::shared_ptr<Operation> operation_;
};

/// An engine, and what it works on.
class PythonSync {
 public:
  explicit PythonSync(std::shared_ptr<SyncEngine> engine) : engine_(std::move(engine)) {}

  SyncEngine& engine() { return *engine_; }

  /// `output` may be None: into `array`.
  PythonHandle allreduce(const std::string& name, nb::handle array, nb::handle output,
                         const std::string& reduction) {
    const Reduction how = parse_reduction(reduction);
    const bool in_place = output.is_none();
    const Argument reads{.call = call_of("allreduce", name), .name = "array"};
    const Argument writes{.call = reads.call, .name = in_place ? "array" : "output"};
    const Memory read = Memory::of(array, in_place ? Access::write : Access::read, reads);
    const Memory written = in_place ? read : Memory::of(output, Access::write, writes);
    require_alike(read, written, writes);
    const auto operation = on_the_way_.add(name, read, written, reads, writes);
    return start(operation, [&](SyncEnd end) {
      return engine_->allreduce(spec_of(name, read), operation->in(), operation->out(), how,
                                std::move(end));
    });
  }

  PythonHandle broadcast(const std::string& name, nb::handle array, int root) {
    const Argument argument{.call = call_of("broadcast", name), .name = "array"};
    const Memory memory = Memory::of(array, Access::write, argument);
    const auto operation = on_the_way_.add(name, memory, memory, argument, argument);
    return start(operation, [&](SyncEnd end) {
      return engine_->broadcast(spec_of(name, memory), operation->out(), root, std::move(end));
    });
  }

  void close() {
    try {
      const Unlocked unlocked;
      engine_->close();
    } catch (...) {
      on_the_way_.forget_ended();
      throw;
    }
    on_the_way_.forget_ended();
  }

  /// Ends the engine when the process does (ending.hpp), which is after Python: arrays that it may
  /// still work on are never given back.
  void leave_to_exit() {
    new OnTheWay(std::move(on_the_way_));
    python::leave_to_exit({.fail = [engine = engine_](const Error& error) { engine->fail(error); },
                           .end = [engine = engine_] { engine->close(); }});
  }

 private:
  static TensorSpec spec_of(const std::string& name, const Memory& memory) {
    return {.name = name, .type = memory.layout().type, .shape = memory.layout().shape};
  }

  template <typename Start>
  static PythonHandle start(const std::shared_ptr<Operation>& operation, Start start) {
    const std::shared_ptr<Work> work = operation->work();
    try {
      operation->fill();
      return PythonHandle(start([work](bool good) { work->end(good); }), operation);
    } catch (...) {
      work->end(false);  // nobody has begun with it
      operation->release();
      throw;
    }
  }

  OnTheWay on_the_way_;  // ends after the engine, which works on it
  std::shared_ptr<SyncEngine> engine_;
};

std::shared_ptr<PythonSync> make_engine(const std::shared_ptr<Communicator>& comm,
                                        const std::string& strategy, double cycle_ms,
                                        std::optional<std::uint64_t> fusion_bytes,
                                        const std::string& wire, bool deterministic,
                                        double stall_warning, double stall_limit,
                                        const std::string& placement) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
  };
  const SyncOptions options{
      .strategy = find_sync_way(strategy, engine_ways()),
      .cycle = std::chrono::microseconds(static_cast<std::int64_t>(cycle_ms * 1e3)),
      .fusion_bytes = fusion_bytes,
      .wire = parse_wire(wire),
      .deterministic = deterministic,
      .stall_warning = milliseconds(stall_warning),
      .stall_limit = milliseconds(stall_limit),
      .placement = placement};
  std::shared_ptr<SyncEngine> engine;
  {
    const Unlocked unlocked;
    // Its end waits for its thread, and perhaps for other ranks.
    engine = {new SyncEngine(comm, options), [](SyncEngine* ended) {
                const Unlocked meanwhile;
                delete ended;
              }};
  }
  // Ctrl-C meanwhile: nobody will ever close it, which others would wait for.
  if (PyErr_CheckSignals() != 0) {
    engine->fail(Error(ErrorKind::cancelled, "making the synchronizer was interrupted"));
    throw nb::python_error();
  }
  return std::make_shared<PythonSync>(std::move(engine));
}

nb::dict figures_of(const SyncEngine& engine) {
  nb::dict all;
  const auto add = [&all](const char* name, const auto& figure) {
    if constexpr (!std::is_array_v<std::remove_reference_t<decltype(figure)>>) all[name] = figure;
  };
  for_each_figure(add, engine.statistics());
  return all;
}

}  // namespace

void add_sync(nb::module_& module) {
  nb::class_<PythonHandle>(module, "SyncHandle")
      .def("done", &PythonHandle::done)
      .def("wait_for", &PythonHandle::wait_for, nb::arg("seconds"))
      .def("wait", &PythonHandle::wait);
  nb::class_<PythonSync>(module, "SyncEngine")
      .def("allreduce", &PythonSync::allreduce, nb::arg("name"), nb::arg("array").none(),
           nb::arg("output").none(), nb::arg("reduction"),
           nb::sig("def allreduce(self, name: str, array: object, output: object, reduction: str) "
                   "-> SyncHandle"))
      .def("broadcast", &PythonSync::broadcast, nb::arg("name"), nb::arg("array").none(),
           nb::arg("root"),
           nb::sig("def broadcast(self, name: str, array: object, root: int) -> SyncHandle"))
      .def(
          "barrier",
          [](PythonSync& sync, const std::string& name) {
            return PythonHandle(sync.engine().barrier(name));
          },
          nb::arg("name"))
      .def("join", [](PythonSync& sync) { return PythonHandle(sync.engine().join()); })
      .def("end_step", [](PythonSync& sync) { sync.engine().end_step(); })
      .def("close", &PythonSync::close)
      .def(
          "fail",
          [](PythonSync& sync, const std::string& message) {
            sync.engine().fail(Error(ErrorKind::cancelled, message));
          },
          nb::arg("message"))
      .def("leave_to_exit", &PythonSync::leave_to_exit)
      .def("check", [](PythonSync& sync) { sync.engine().check(); })
      .def("explain", [](PythonSync& sync) { return sync.engine().explain(); })
      .def(
          "statistics", [](PythonSync& sync) { return figures_of(sync.engine()); },
          nb::sig("def statistics(self) -> dict[str, float]"));
  module.def(
      "sync_strategies",
      [] {
        nb::dict all;
        for (const SyncWay& way : engine_ways()) all[way.name.c_str()] = way.help;
        return all;
      },
      nb::sig("def sync_strategies() -> dict[str, str]"));
  module.def("make_sync_engine", &make_engine, nb::arg("comm"), nb::arg("strategy"),
             nb::arg("cycle_ms"), nb::arg("fusion_bytes").none(), nb::arg("wire"),
             nb::arg("deterministic"), nb::arg("stall_warning"), nb::arg("stall_limit"),
             nb::arg("placement"));
}

}  // namespace forebay::python
