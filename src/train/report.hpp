// What a run ends with, as people and as programs read it.
#pragma once

#include <string>

#include "train/trainer.hpp"

namespace forebay {

/// One line, without its end.
std::string to_line(const EpochRecord& record, std::uint64_t epochs);

/// The table of where the time went, and the results.
std::string to_text(const TrainReport& report);

/// One JSON object:
/// {"event":"summary",...,"ranks":[{"read":...},...],"sync":{...,"ranks":[...]},"loader":{...}}.
std::string to_json(const TrainReport& report);

}  // namespace forebay
