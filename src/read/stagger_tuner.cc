#include "read/stagger_tuner.hpp"

namespace forebay {
namespace {

// Holding roots back has to pay: what is not clearly faster is noise.
constexpr double kClearlyFaster = 1.03;

}  // namespace

StaggerTuner::StaggerTuner(int roots, int turns_per_trial)
    : turns_per_trial_(turns_per_trial), best_(roots) {
  if (roots <= 1) return;
  for (int group = roots; group >= 1; group /= 2) groups_.push_back(group);
}

void StaggerTuner::add_turn(std::uint64_t bytes, double seconds) {
  if (settled()) return;
  if (!warmed_up_) {
    warmed_up_ = true;
    return;
  }
  bytes_ += bytes;
  seconds_ += seconds;
  if (++turns_ == turns_per_trial_) end_trial();
}

void StaggerTuner::end_trial() {
  const double rate = seconds_ > 0 ? static_cast<double>(bytes_) / seconds_ : 0;
  if (rate > best_rate_ * kClearlyFaster) {
    best_rate_ = rate;
    best_ = groups_[trial_];
  }
  ++trial_;
  turns_ = 0;
  bytes_ = 0;
  seconds_ = 0;
}

void StaggerTuner::stop() {
  if (settled()) return;
  best_ = groups_.front();
  trial_ = groups_.size();
}

}  // namespace forebay
