// The Error of too little memory, the host's or a device's: a caller may try something smaller.
#pragma once

#include "base/error.h"

namespace octet {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace octet
