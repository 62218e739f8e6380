#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "forebay/log.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

/// What the library has to say, until Python asks: helper threads never wait for the interpreter.
class Messages {
 public:
  void add(LogLevel level, std::string_view text) {
    constexpr std::size_t kMost = 1000;
    const std::lock_guard lock(mutex_);
    if (messages_.size() < kMost) messages_.emplace_back(static_cast<int>(level), text);
  }
  std::vector<std::pair<int, std::string>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(messages_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, std::string>> messages_;
};

void add_log(nanobind::module_& module) {
  static auto* const messages = new Messages();  // helper threads may outlive the module
  set_log_hook([](LogLevel level, std::string_view text) { messages->add(level, text); },
               LogLevel::warning);
  module.def(
      "take_messages",
      [] {
        nanobind::list all;
        for (const auto& [level, text] : messages->take()) {
          all.append(nanobind::make_tuple(level, text_of(text)));
        }
        return all;
      },
      nanobind::sig("def take_messages() -> list[tuple[int, str]]"));
}

}  // namespace
}  // namespace forebay::python

NB_MODULE(_core, module) {
  module.doc() = "The C++ side of the package forebay. Not for direct use.";
  module.attr("version") = FOREBAY_VERSION;
  // Of objects that live to the end of a process, as data sets of workers do.
  nanobind::set_leak_warnings(false);
  module.def("process_ends", [] { forebay::python::process_ends = true; });
  forebay::python::add_log(module);
  forebay::python::add_errors(module);
  forebay::python::add_communicators(module);
  forebay::python::add_rendezvous(module);
  forebay::python::add_loader(module);
  forebay::python::add_samples(module);
  forebay::python::add_order(module);
  forebay::python::add_sync(module);
}
