// What fork() does to a library: the child has all memory of its parent, but of its threads only
// the one that called fork(). Whatever has threads is useless there, and cannot even be destroyed:
// joining a thread, and destroying a condition variable that one waited for, would take for ever.
// Owners note fork_count() when they start threads, and leave them alone if it has changed.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>

namespace octet {

// Increases in each child.
uint32_t fork_count() noexcept;

// Keeps other threads out of `mutex`, which belongs to the whole process, while this one forks: the
// child would never get it. It must not be held while another mutex is taken. Call it once.
template <std::mutex& mutex>
void hold_during_fork() {
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

}  // namespace octet
