// The Error of a request that is wrong by itself, whatever the files hold: a size, a preset, a
// guidance. Programs report it as wrong usage.
#pragma once

#include "octet/error.h"

namespace octet {

class OCTET_API InvalidRequest : public Error {
 public:
  using Error::Error;
};

}  // namespace octet
