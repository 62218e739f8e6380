// The log of a run: one JSON object a line, written by rank 0.
//
//   {"event":"iteration","iteration":1,"epoch":0,"loss":2.30,"learning_rate":0.01}
//   {"event":"growth","iteration":938,"batch":128}
//   {"event":"epoch","epoch":1,"iteration":938,"loss":0.61,"test_accuracy":0.84,"test_loss":0.45}
//
// Lines hold nothing that depends on timing, and numbers in full precision: two runs that should
// compute the same can be compared byte by byte. One thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace forebay {

struct IterationRecord {
  std::uint64_t iteration = 0;  ///< counted from 1
  std::uint64_t epoch = 0;
  float loss = 0;  ///< mean over the global batch
  double learning_rate = 0;
};

struct TestScore {
  std::optional<double> accuracy;  ///< of networks that classify
  double loss = 0;
  std::uint64_t samples = 0;
};

struct EpochRecord {
  std::uint64_t epoch = 0;      ///< epochs done
  std::uint64_t iteration = 0;  ///< iterations done
  double loss = 0;              ///< mean over the samples of the epoch
  std::optional<TestScore> test;
};

/// The batch has grown, after so many iterations.
struct GrowthRecord {
  std::uint64_t iteration = 0;
  std::uint64_t batch = 0;  ///< samples of an iteration, over all ranks
};

std::string to_json(const IterationRecord& record);
std::string to_json(const EpochRecord& record);
std::string to_json(const GrowthRecord& record);

class RunLog {
 public:
  /// An empty path: no log. `append` continues the log of a resumed run. Throws io.
  RunLog(const std::string& path, bool append);

  /// Throws io, for instance when the device is full.
  void write(const std::string& json_line);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace forebay
