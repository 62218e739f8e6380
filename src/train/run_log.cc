#include "train/run_log.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

// In the order of writing, not of the alphabet: people read these lines too.
using Json = nlohmann::ordered_json;

}  // namespace

std::string to_json(const IterationRecord& record) {
  return Json{{"event", "iteration"},
              {"iteration", record.iteration},
              {"epoch", record.epoch},
              {"loss", record.loss},
              {"learning_rate", record.learning_rate}}
      .dump();
}

std::string to_json(const EpochRecord& record) {
  Json json{{"event", "epoch"},
            {"epoch", record.epoch},
            {"iteration", record.iteration},
            {"loss", record.loss}};
  if (record.test) {
    if (record.test->accuracy) json["test_accuracy"] = *record.test->accuracy;
    json["test_loss"] = record.test->loss;
    json["test_samples"] = record.test->samples;
  }
  return json.dump();
}

std::string to_json(const GrowthRecord& record) {
  return Json{{"event", "growth"}, {"iteration", record.iteration}, {"batch", record.batch}}.dump();
}

RunLog::RunLog(const std::string& path, bool append) : path_(path) {
  if (path.empty()) return;
  file_.open(path, append ? std::ios::app : std::ios::trunc);
  if (!file_) {
    const int error = errno;
    throw Error(ErrorKind::io, "cannot write the log: " + std::generic_category().message(error),
                remedy_for(error, "choose another --log file"), {.file = path});
  }
}

void RunLog::write(const std::string& json_line) {
  if (path_.empty()) return;
  // Flushed line by line: whoever follows the log of a long run sees it, and a killed run keeps it.
  file_ << json_line << std::endl;
  if (!file_) {
    throw Error(ErrorKind::io, "cannot write the log", "check the free space of its device",
                {.file = path_});
  }
}

}  // namespace forebay
