// What fork() does to a library: the child has all memory of its parent, but of its threads only
// the one that called fork(). Whatever has threads is useless there, and cannot even be destroyed:
// joining a thread, and destroying a condition variable that one waited for, would take for ever.
// Owners note fork_count() when they start threads, and leave them alone if it has changed.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>

namespace octet {

// Increases in each child. Only the first call of a process may take memory.
uint32_t fork_count();

// pthread_atfork(), whose only failure is std::bad_alloc.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Keeps other threads out of `mutex`, which belongs to the whole process, while this one forks: the
// child would never get it. It must not be held while another mutex is taken. Call it once.
template <std::mutex& mutex>
void hold_during_fork() {
  at_fork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

}  // namespace octet
