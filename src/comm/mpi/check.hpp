// Every code that MPI returns is looked at.
#pragma once

#include <array>
#include <string>

#include "forebay/error.hpp"
#include "forebay/mpi.hpp"

namespace forebay {

/// Throws communication, with MPI's own text, unless `code` is MPI_SUCCESS. For every call of MPI.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ErrorKind::communication, std::string(call) + " failed: " + text.data(),
              "look at the launcher's output for the first rank that failed");
}

}  // namespace forebay
