// Values and pointers for each thread.
//
// As thread_local, but for memory: glibc ends the process if it finds none for the thread_locals of
// a library that was loaded by dlopen(), when a thread first uses one, or to note that one has a
// destructor. Here that is std::bad_alloc, as everywhere. So the library has no thread_local.
//
// These are for statics, and last as long as the process (see base/never_destroyed.h). They need no
// code to run before main(): other libraries' code may run before it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

namespace octet {

// A pthread_key_t that is made when it is first needed.
class ThreadKey {
 public:
  constexpr explicit ThreadKey(void (*destroy)(void* value)) : destroy_(destroy) {}
  ThreadKey(const ThreadKey&) = delete;
  ThreadKey& operator=(const ThreadKey&) = delete;

  void* get() const noexcept;
  bool set(const void* value) noexcept;

 private:
  void (*destroy_)(void* value);
  std::atomic<int64_t> key_{-1};  // none yet
};

// A pointer of each thread, null at first; what it points to is the caller's.
template <class T>
class ThreadPointer {
 public:
  // `destroy` gets those that are not null, when their threads end.
  constexpr explicit ThreadPointer(void (*destroy)(void* value) = nullptr) : key_(destroy) {}

  T* get() const noexcept { return static_cast<T*>(key_.get()); }
  // A thread's first call may take memory, of which false says that there was none; later ones, and
  // those with null, do not fail.
  bool set(T* value) noexcept { return key_.set(value); }

 private:
  ThreadKey key_;
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
