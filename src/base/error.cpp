#include "base/error.h"

#include <system_error>

namespace octet {

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace octet
