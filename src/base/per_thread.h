// A value for each thread, made when the thread first asks for it.
//
// As thread_local is, but for memory: glibc ends the process if it finds none to note that a
// thread_local has a destructor. Here that is std::bad_alloc, as everywhere.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace octet {

template <class T>
class PerThread {
 public:
  PerThread() {
    if (pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) != 0) {
      throw std::bad_alloc();
    }
  }
  ~PerThread() {
    // Of this thread: exit() ends it without calling what keys have. Those of others stay.
    delete static_cast<T*>(pthread_getspecific(key_));
    pthread_key_delete(key_);
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& get() {
    if (void* value = pthread_getspecific(key_)) return *static_cast<T*>(value);
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_;
};

}  // namespace octet
