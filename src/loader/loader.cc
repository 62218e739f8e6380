#include "forebay/loader.hpp"

#include <utility>

#include "loader/decoded_arrays.hpp"
#include "loader/pipeline.hpp"

namespace forebay {

Batch::Batch(Batch&& other) noexcept
    : pipeline_(std::move(other.pipeline_)),
      samples_(std::exchange(other.samples_, {})),
      copies_(std::exchange(other.copies_, {})),
      arrays_(std::move(other.arrays_)),
      iteration_(other.iteration_),
      epoch_(other.epoch_),
      pass_(other.pass_) {}

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this == &other) return *this;
  release();
  pipeline_ = std::move(other.pipeline_);
  samples_ = std::exchange(other.samples_, {});
  copies_ = std::exchange(other.copies_, {});
  arrays_ = std::move(other.arrays_);
  iteration_ = other.iteration_;
  epoch_ = other.epoch_;
  pass_ = other.pass_;
  return *this;
}

Batch::~Batch() { release(); }

void Batch::release() {
  samples_.clear();
  copies_.clear();
  arrays_.reset();
  if (const auto pipeline = std::exchange(pipeline_, nullptr)) pipeline->release(iteration_);
}

std::span<const std::byte> Batch::field(std::size_t index) const { return arrays().field(index); }

std::span<const std::byte> Batch::field(std::string_view name) const {
  return arrays().field(name);
}

void Batch::check_unchanged() const {
  if (!pipeline_) throw Error(ErrorKind::usage, "the batch was released");
  pipeline_->check_in_place();
}

const DecodedArrays& Batch::arrays() const {
  if (arrays_) return *arrays_;
  throw Error(ErrorKind::usage,
              pipeline_ ? "the batch holds values as stored" : "the batch was released",
              pipeline_ ? "open the loader with decode=on" : "");
}

Loader Loader::open(std::shared_ptr<Communicator> comm, const std::string& dataset,
                    const LoaderOptions& options, Trace* trace) {
  return Loader(Pipeline::open(*comm, dataset, options, trace));
}

Loader::Loader(std::shared_ptr<Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
Loader::Loader(Loader&&) noexcept = default;

Loader& Loader::operator=(Loader&& other) noexcept {
  std::swap(pipeline_, other.pipeline_);
  return *this;
}

Loader::~Loader() {
  if (pipeline_) pipeline_->close();
}

std::optional<Batch> Loader::next() {
  auto delivery = pipeline_->next();
  if (!delivery) return std::nullopt;
  Batch batch;
  batch.iteration_ = delivery->iteration;
  batch.arrays_ = std::move(delivery->arrays);
  batch.samples_ = std::move(delivery->samples);
  batch.copies_ = std::move(delivery->copies);
  batch.epoch_ = delivery->epoch;
  batch.pass_ = delivery->pass;
  batch.pipeline_ = pipeline_;
  return batch;
}

void Loader::decode(const Batch& batch, std::span<const std::span<std::byte>> fields) {
  pipeline_->decode(batch.samples(), fields);
}

void Loader::check() { pipeline_->watch().check(); }
void Loader::fail(const Error& error) { pipeline_->watch().fail(error); }
void Loader::set_interrupt(std::function<void()> interrupt) {
  pipeline_->watch().set_interrupt(std::move(interrupt));
}
std::uint64_t Loader::epoch_iterations() const { return pipeline_->epoch_iterations(); }
std::uint64_t Loader::entries() const { return pipeline_->entries(); }
std::uint64_t Loader::epochs_done() const { return pipeline_->delivered_epochs(); }
const Schema& Loader::schema() const { return pipeline_->schema(); }
std::span<const std::string> Loader::parts() const { return pipeline_->parts(); }
std::span<const std::string> Loader::classes() const { return pipeline_->classes(); }
const StridedOrder& Loader::order() const { return pipeline_->order(); }
std::string Loader::explain() const { return pipeline_->explain(); }
std::string Loader::plan(bool json) const { return pipeline_->plan(json); }
LoaderStatistics Loader::statistics() const { return pipeline_->statistics(); }
LoaderWaits Loader::waits() const { return pipeline_->waits(); }
std::string Loader::state() const { return pipeline_->delivered_state(); }
std::span<const SkippedSample> Loader::skipped() const { return pipeline_->skipped(); }

}  // namespace forebay
