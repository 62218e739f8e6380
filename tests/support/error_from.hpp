// What a call fails with.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "forebay/error.hpp"

namespace forebay::test {

/// The Error that `call` throws. The test fails when it throws none.
template <typename Call>
Error error_from(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ErrorKind::usage, "no error was thrown"};
}

}  // namespace forebay::test
