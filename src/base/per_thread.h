// Values and pointers for each thread.
//
// As thread_local, but for memory: glibc ends the process if it finds none for the thread_locals of
// a library that was loaded by dlopen(), when a thread first uses one, or to note that one has a
// destructor. Here that is std::bad_alloc, as everywhere. So the library has no thread_local.
//
// These are for statics, and last as long as the process (see base/never_destroyed.h).
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace octet {

// A pointer of each thread, null at first; what it points to is the caller's.
template <class T>
class ThreadPointer {
 public:
  // `destroy` gets those that are not null, when their threads end.
  explicit ThreadPointer(void (*destroy)(void* value) = nullptr) {
    if (pthread_key_create(&key_, destroy) != 0) throw std::bad_alloc();
  }
  ThreadPointer(const ThreadPointer&) = delete;
  ThreadPointer& operator=(const ThreadPointer&) = delete;

  T* get() const noexcept { return static_cast<T*>(pthread_getspecific(key_)); }
  // A thread's first call may take memory, of which false says that there was none; later ones, and
  // those with null, do not fail.
  bool set(T* value) noexcept { return pthread_setspecific(key_, value) == 0; }

 private:
  pthread_key_t key_;
};

// A value, made when the thread first asks for it.
template <class T>
class PerThread {
 public:
  T& get() {
    if (T* value = pointer_.get()) return *value;
    auto made = std::make_unique<T>();
    if (!pointer_.set(made.get())) throw std::bad_alloc();
    return *made.release();
  }

 private:
  ThreadPointer<T> pointer_{[](void* value) { delete static_cast<T*>(value); }};
};

// Makes what a thread needs to throw, and libstdc++ keeps in a thread_local, while there is memory;
// false: there is none. For threads that may be the first to find that out.
bool prepare_to_throw() noexcept;

}  // namespace octet
