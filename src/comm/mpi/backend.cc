// The entry of a backend: MPI as comm/mpi_backend.hpp wants it, over the mpi.h that this is
// compiled with.
#include "comm/mpi_backend.hpp"

#include <dlfcn.h>

#include <array>

#include "comm/mpi/check.hpp"
#include "comm/mpi/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

bool initialized() {
  int yes = 0;
  check_mpi(MPI_Initialized(&yes), "MPI_Initialized");
  return yes != 0;
}

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
/// Plug-ins of Open MPI 4 may look for its library among what is global, and this backend was
/// loaded for itself alone, as Python loads modules.
void make_global() {
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &where) == 0) return;
  ::dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}
#else
void make_global() {}
#endif

class Backend final : public MpiBackend {
 public:
  MpiFlavour flavour() const override { return kMpiFlavour; }

  std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return {};
    const std::string whole(text.data(), static_cast<std::size_t>(length));
    return whole.substr(0, whole.find_first_of(",\n"));
  }

  std::string thread_level() const override {
    if (!initialized()) return "not initialised";
    int level = MPI_THREAD_SINGLE;
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    if (level == MPI_THREAD_MULTIPLE) return "MPI_THREAD_MULTIPLE";
    if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
    return level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE";
  }

  bool begin() override {
    if (initialized()) return false;
    int granted = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
    return true;
  }
  void end() override {
    if (!mpi_gave_up()) MPI_Finalize();
  }
  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }
  bool gave_up() const override { return mpi_gave_up(); }

  std::shared_ptr<Communicator> world() override { return duplicate_of(MPI_COMM_WORLD); }
  std::shared_ptr<Communicator> duplicate(const void* comm) override {
    if (comm == nullptr || !initialized()) {
      throw Error(ErrorKind::usage, "the communicator is not one of this process's MPI",
                  "initialise MPI first, and give a communicator of it");
    }
    return duplicate_of(*static_cast<const MPI_Comm*>(comm));
  }
  std::size_t handle_bytes() const override { return sizeof(MPI_Comm); }

 private:
  static std::shared_ptr<Communicator> duplicate_of(MPI_Comm comm) {
    MPI_Comm duplicate = MPI_COMM_NULL;
    check_mpi(MPI_Comm_dup(comm, &duplicate), "MPI_Comm_dup");
    return std::make_shared<MpiCommunicator>(duplicate, WaitPolicy{});
  }
};

}  // namespace
}  // namespace forebay

/// See comm/mpi_backend.hpp. Neither is ever destroyed: MPI may be used by what ends last.
extern "C" __attribute__((visibility("default"))) const forebay::MpiBackendTable*
forebay_mpi_backend() {
  static const auto* const table = [] {
    forebay::make_global();
    return new forebay::MpiBackendTable{.layout = forebay::kMpiBackendLayout,
                                        .version = FOREBAY_VERSION,
                                        .mpi = new forebay::Backend};
  }();
  return table;
}
