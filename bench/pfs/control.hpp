// Commands to the running file system, over a Unix socket: a line in, a line of JSON out.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "core/placement.hpp"
#include "pfs/mount.hpp"

namespace forebay::pfs {

class Control {
 public:
  /// Gets a line without its end, gives the answer. Called on the control's own thread.
  using Handler = std::function<std::string(const std::string& line)>;

  /// Listens at `path`, which must not exist and is removed at destruction. Throws io.
  Control(std::string path, Handler handler);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  void serve(const std::stop_token& stop);
  void converse(int connection);

  std::string path_;
  Handler handler_;
  Descriptor socket_;
  HelperThread thread_;  // last: it uses all of the above
};

}  // namespace forebay::pfs
