// Keeps pthread_cancel() from ending a thread within a call: it would unwind the stack while other
// threads work on what is there, and through functions that are noexcept. It waits for the return.
#pragma once

#include <pthread.h>

namespace octet {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace octet
