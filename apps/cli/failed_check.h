// A result that the user asked to be told of by the exit code.
#pragma once

#include "octet/error.h"

namespace octet::cli {

// For main(), which ends with the exit code 3; thrown when everything else is done and printed.
class FailedCheck : public Error {
 public:
  using Error::Error;
};

}  // namespace octet::cli
