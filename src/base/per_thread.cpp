#include "base/per_thread.h"

#include <cstdlib>
#include <exception>

namespace octet {

void* ThreadKey::get() const noexcept {
  const int64_t key = key_.load(std::memory_order_acquire);
  return key >= 0 ? pthread_getspecific(static_cast<pthread_key_t>(key)) : nullptr;
}

bool ThreadKey::set(const void* value) noexcept {
  int64_t key = key_.load(std::memory_order_acquire);
  if (key < 0) {
    if (value == nullptr) return true;
    pthread_key_t made;
    if (pthread_key_create(&made, destroy_) != 0) return false;
    if (key_.compare_exchange_strong(key, made, std::memory_order_acq_rel)) {
      key = made;
    } else {
      pthread_key_delete(made);  // another thread was first
    }
  }
  return pthread_setspecific(static_cast<pthread_key_t>(key), value) == 0;
}

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
