// The Error of work that was stopped on request.
#pragma once

#include "octet/error.h"

namespace octet {

class OCTET_API Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace octet
