// Ranks that MPI does not connect: where they meet, and the communicator that comes of it
// (forebay/_connect.py says which place is taken when).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>

#include "forebay/connect.hpp"
#include "forebay/error.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

using std::chrono::milliseconds;

milliseconds milliseconds_of(double seconds) {
  constexpr double kLongest = 86400;
  return milliseconds(std::llround(std::clamp(seconds, 0.0, kLongest) * 1000));
}

/// A store that Python has, with set(key, bytes) and get(key, seconds) -> bytes or None.
class StoreOfPython final : public Rendezvous {
 public:
  /// Used, and destroyed, without Python's lock.
  StoreOfPython(nb::object store, std::string host)
      : store_(std::move(store)), host_(std::move(host)) {}
  ~StoreOfPython() override {
    const Locked locked;
    store_.reset();
  }

  void set(const std::string& key, std::span<const std::byte> value) override {
    const Locked locked;
    call([&] {
      store_.attr("set")(key, nb::bytes(reinterpret_cast<const char*>(value.data()), value.size()));
    });
  }

  std::optional<std::vector<std::byte>> get(const std::string& key, milliseconds limit) override {
    const Locked locked;
    std::optional<std::vector<std::byte>> value;
    call([&] {
      const double seconds = std::chrono::duration<double>(limit).count();
      const nb::object found = store_.attr("get")(key, seconds);
      if (found.is_none()) return;
      const auto bytes = nb::cast<nb::bytes>(found);
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes.c_str());
      value.emplace(begin, begin + bytes.size());
    });
    return value;
  }

  std::string host() const override { return host_; }

 private:
  /// What a store raises crosses our own code as an Error: it belongs to one rank, and is told to
  /// the others.
  template <typename Step>
  static void call(const Step& step) {
    try {
      step();
    } catch (const nb::python_error& error) {
      throw Error(ErrorKind::communication,
                  std::string("the store of the job fails: ") + error.what(),
                  "look at the process that keeps it, which is often that of rank 0");
    }
  }

  nb::object store_;
  std::string host_;
};

std::shared_ptr<Communicator> connect(Rendezvous& rendezvous, int rank, int size,
                                      const std::string& job, const std::string& listen_on,
                                      double seconds) {
  const Unlocked unlocked;
  return connect_ranks(rendezvous, {.rank = rank,
                                    .size = size,
                                    .job = job,
                                    .listen_on = listen_on,
                                    .timeout = milliseconds_of(seconds)});
}

}  // namespace

void add_rendezvous(nb::module_& module) {
  nb::class_<Rendezvous>(module, "Rendezvous").def_prop_ro("host", &Rendezvous::host);
  module.def(
      "store_rendezvous",
      [](nb::object store, std::string host) -> std::unique_ptr<Rendezvous> {
        return std::make_unique<StoreOfPython>(std::move(store), std::move(host));
      },
      nb::arg("store"), nb::arg("host"));
  module.def("file_rendezvous", &file_rendezvous, nb::arg("folder"));
  module.def(
      "serve_rendezvous",
      [](const std::string& host, std::uint16_t port) { return serve_rendezvous(host, port); },
      nb::arg("host"), nb::arg("port"));
  module.def("join_rendezvous", &join_rendezvous, nb::arg("host"), nb::arg("port"));
  module.def("connect_ranks", &connect, nb::arg("rendezvous"), nb::arg("rank"), nb::arg("size"),
             nb::arg("job"), nb::arg("listen_on"), nb::arg("seconds"));
}

}  // namespace forebay::python
