// MPI return codes become Errors; every call of ours goes through check_mpi.
#pragma once

#include "forebay/mpi.hpp"

namespace forebay {

/// Throws communication, with MPI's own text, unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace forebay
