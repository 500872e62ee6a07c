// The Error thrown when work was stopped on request.
#pragma once

#include "octet/error.h"

namespace octet {

class OCTET_API Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace octet
