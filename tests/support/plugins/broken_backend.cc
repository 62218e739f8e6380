// MPI backends that must be refused: BREAK_BUILD, BREAK_LAYOUT, or nothing of one at all.
#include "comm/mpi_backend.hpp"

#if defined(BREAK_BUILD) || defined(BREAK_LAYOUT)
extern "C" const forebay::MpiBackendTable* forebay_mpi_backend() {
#ifdef BREAK_BUILD
  static constexpr forebay::MpiBackendTable table{forebay::kMpiBackendLayout, "0.0.7", nullptr};
#else
  // What stands behind the number may be anything.
  static const forebay::MpiBackendTable table{4'000'000'000, reinterpret_cast<const char*>(1),
                                              nullptr};
#endif
  return &table;
}
#endif
