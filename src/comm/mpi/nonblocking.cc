// Non-blocking collectives of MPI, asked for their end with MPI_Test.
//
// MPI has no numbers of 16 bits: float16 and bfloat16 move as unsigned numbers and are combined by
// operations of our own, which round every intermediate result.
#include <map>
#include <utility>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "comm/nonblocking.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Calls combine() for MPI.
template <TensorType type, Combination how>
void combine_for_mpi(void* from, void* into, int* elements, MPI_Datatype* /*type*/) {
  const std::size_t bytes = static_cast<std::size_t>(*elements) * size_of(type);
  combine(type, how, {static_cast<std::byte*>(into), bytes},
          {static_cast<const std::byte*>(from), bytes});
}

template <TensorType type>
MPI_User_function* function_of(Combination how) {
  if (how == Combination::min) return &combine_for_mpi<type, Combination::min>;
  if (how == Combination::max) return &combine_for_mpi<type, Combination::max>;
  return &combine_for_mpi<type, Combination::sum>;
}

/// For what MPI does not do, or does as it likes: in MPI_MIN and MPI_MAX, a NaN gets lost. Null:
/// for nothing else.
MPI_User_function* own_function(TensorType type, Combination how) {
  const bool compares = how == Combination::min || how == Combination::max;
  if (type == TensorType::float16) return function_of<TensorType::float16>(how);
  if (type == TensorType::bfloat16) return function_of<TensorType::bfloat16>(how);
  if (type == TensorType::float32 && compares) return function_of<TensorType::float32>(how);
  if (type == TensorType::float64 && compares) return function_of<TensorType::float64>(how);
  return nullptr;
}

MPI_Datatype mpi_type(TensorType type) {
  switch (type) {
    case TensorType::float16:
    case TensorType::bfloat16:
      return MPI_UINT16_T;
    case TensorType::float32:
      return MPI_FLOAT;
    case TensorType::float64:
      return MPI_DOUBLE;
    case TensorType::int32:
      return MPI_INT32_T;
    case TensorType::int64:
      return MPI_INT64_T;
  }
  return MPI_BYTE;
}

MPI_Op mpi_operation(Combination how) {
  switch (how) {
    case Combination::sum:
      return MPI_SUM;
    case Combination::min:
      return MPI_MIN;
    case Combination::max:
      return MPI_MAX;
    case Combination::bit_and:
      return MPI_BAND;
    case Combination::bit_or:
      return MPI_BOR;
  }
  return MPI_OP_NULL;
}

/// The communicator and the operations of our own, for as long as something may use them.
class Common : private NonCopyable {
 public:
  explicit Common(std::shared_ptr<MpiCommunicator> comm) : comm_(std::move(comm)) {}
  ~Common() {
    if (mpi_is_over() || mpi_gave_up()) return;
    for (auto& [what, operation] : own_) MPI_Op_free(&operation);
  }

  const MpiCommunicator& comm() const { return *comm_; }
  MPI_Comm handle() const { return comm_->handle(); }

  MPI_Op operation(TensorType type, Combination how) {
    MPI_User_function* const function = own_function(type, how);
    if (function == nullptr) return mpi_operation(how);
    const auto [place, is_new] = own_.try_emplace({type, how}, MPI_OP_NULL);
    if (is_new) check_mpi(MPI_Op_create(function, 1, &place->second), "MPI_Op_create");
    return place->second;
  }

 private:
  std::shared_ptr<MpiCommunicator> comm_;
  std::map<std::pair<TensorType, Combination>, MPI_Op> own_;
};

using Owners = std::vector<std::shared_ptr<void>>;

class MpiOperation final : public StartedOperation {
 public:
  explicit MpiOperation(Owners owners) : owners_(std::move(owners)) {}
  ~MpiOperation() override {
    if (request_ == MPI_REQUEST_NULL || mpi_is_over()) return;
    // MPI may still be at work on the memory.
    set_mpi_gave_up();
    static_cast<void>(std::make_unique<Owners>(std::move(owners_)).release());
  }

  MPI_Request* request() { return &request_; }

  bool done() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    if (mpi_is_over()) {
      throw Error(ErrorKind::communication, "MPI has ended before an operation of Forebay",
                  "close what synchronizes or loads before MPI_Finalize");
    }
    int done = 0;
    check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) return false;
    owners_.clear();
    return true;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  Owners owners_;
};

class MpiNonblocking final : public NonblockingCollectives {
 public:
  explicit MpiNonblocking(std::shared_ptr<MpiCommunicator> comm)
      : common_(std::make_shared<Common>(std::move(comm))) {}

  int rank() const override { return common_->comm().rank(); }
  int size() const override { return common_->comm().size(); }

  Operation all_reduce(SharedBytes values, TensorType type, Combination how) override {
    const bool bits = how == Combination::bit_and || how == Combination::bit_or;
    const int count = require_countable(values.bytes.size() / (bits ? 1 : size_of(type)));
    return start("MPI_Iallreduce", {values.owner}, [&](MPI_Request* request) {
      return MPI_Iallreduce(
          MPI_IN_PLACE, values.bytes.data(), count, bits ? MPI_BYTE : mpi_type(type),
          bits ? mpi_operation(how) : common_->operation(type, how), common_->handle(), request);
    });
  }

  Operation broadcast(SharedBytes data, int root) override {
    const int count = require_countable(data.bytes.size());
    return start("MPI_Ibcast", {data.owner}, [&](MPI_Request* request) {
      return MPI_Ibcast(data.bytes.data(), count, MPI_BYTE, root, common_->handle(), request);
    });
  }

  Operation all_gather(SharedBytes mine, SharedBytes all) override {
    const std::size_t bytes = mine.bytes.size();
    require_gatherable(bytes, all.bytes.size(), size());
    const int count = require_countable(bytes);
    const bool in_place =
        mine.bytes.data() == all.bytes.data() + static_cast<std::size_t>(rank()) * bytes;
    return start("MPI_Iallgather", {mine.owner, all.owner}, [&](MPI_Request* request) {
      return MPI_Iallgather(in_place ? MPI_IN_PLACE : mine.bytes.data(), count, MPI_BYTE,
                            all.bytes.data(), count, MPI_BYTE, common_->handle(), request);
    });
  }

  Operation all_to_all(SharedBytes mine, SharedBytes theirs) override {
    require_exchangeable(mine.bytes.size(), theirs.bytes.size(), size());
    const int count = require_countable(mine.bytes.size() / static_cast<std::size_t>(size()));
    return start("MPI_Ialltoall", {mine.owner, theirs.owner}, [&](MPI_Request* request) {
      return MPI_Ialltoall(mine.bytes.data(), count, MPI_BYTE, theirs.bytes.data(), count, MPI_BYTE,
                           common_->handle(), request);
    });
  }

  Operation barrier() override {
    return start("MPI_Ibarrier", {},
                 [&](MPI_Request* request) { return MPI_Ibarrier(common_->handle(), request); });
  }

 private:
  template <typename Call>
  Operation start(const char* name, Owners owners, Call call) {
    owners.push_back(common_);
    auto operation = std::make_unique<MpiOperation>(std::move(owners));
    check_mpi(call(operation->request()), name);
    return operation;
  }

  std::shared_ptr<Common> common_;
};

}  // namespace

std::unique_ptr<NonblockingCollectives> mpi_nonblocking(std::shared_ptr<MpiCommunicator> comm) {
  return std::make_unique<MpiNonblocking>(std::move(comm));
}

}  // namespace forebay
