// Expects an error and returns its message.
#pragma once

#include <functional>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "kernels/error.h"

namespace kernels::test {

/// Returns the message of the Error that `action` must throw. Fails the test if no error is thrown, if
/// its code differs, or if the message contains control characters.
inline std::string refusal(const std::function<void()>& action,
                           ErrorCode code = ErrorCode::BadInput) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const char c : std::string(error.what()))
      EXPECT_GE(static_cast<unsigned char>(c), 0x20) << "a control character in a message";
    return error.what();
  }
  ADD_FAILURE() << "expected an error, got none";
  return "";
}

/// Returns a message without offsets in the file: " (byte 442)".
inline std::string without_offset(const std::string& message) {
  static const std::regex offset(R"( \(byte \d+\))");
  return std::regex_replace(message, offset, "");
}

}  // namespace kernels::test

namespace engine::test {

using kernels::test::refusal;
using kernels::test::without_offset;

}  // namespace engine::test
