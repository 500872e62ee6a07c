// The message of the octet::Error that a call throws, for tests about what users get to read.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "octet/error.h"

namespace octet::test {

// Fails the test and returns nothing when the call does not throw, or throws something else.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw something other than octet::Error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "expected an octet::Error, but nothing was thrown";
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace octet::test

#define EXPECT_ERROR_WITH(call, part)                                                  \
  do {                                                                                 \
    const std::string message = ::octet::test::error_of([&] { (void)(call); });        \
    EXPECT_TRUE(::octet::test::contains(message, part)) << "the message: " << message; \
  } while (false)
