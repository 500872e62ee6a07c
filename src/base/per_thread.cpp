#include "base/per_thread.h"

#include <cstdlib>
#include <exception>

namespace octet {

bool prepare_to_throw() noexcept {
  constexpr size_t kEnough = 16 << 10;  // libstdc++'s 32 bytes, and glibc's table of all modules
  // Both volatile: compilers know malloc() and leave out what seems to have no use.
  void* volatile room = std::malloc(kEnough);
  if (room == nullptr) return false;
  std::free(room);
  [[maybe_unused]] volatile const int used = std::uncaught_exceptions();
  return true;
}

}  // namespace octet
