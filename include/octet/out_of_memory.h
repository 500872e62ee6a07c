// The Error of too little memory, the host's or a device's: a caller may try something smaller.
#pragma once

#include "octet/error.h"

namespace octet {

class OCTET_API OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace octet
