// Functions of a newer glibc in terms of glibc 2.28, so that a wheel runs with every later one.
//
// The linker binds a function to its newest version at hand, although older ones do the same: in
// 2.34 threads and dlopen() moved into libc.so.6, and 2.29 gave the functions of libm a version
// without old ways to report errors. A line FORWARD(name) takes the oldest version instead: for
// each, cmake/portable.cmake passes --wrap=name, so that calls of name arrive at __wrap_name, a
// jump. What glibc 2.28 lacks is written out.
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define JUMP(name) "jmp *" name "@GOTPCREL(%rip)"
#define DLMOPEN "GLIBC_2.3.4"
#define STAT_FORM 1
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define JUMP(name) "b " name
#define DLMOPEN OLDEST
#define STAT_FORM 0
#else
#error "expected x86-64 or aarch64"
#endif

#define VERSION_OF(name, version) ".symver old_" #name "," #name "@" version "\n"
#define OLD_VERSION(name) VERSION_OF(name, OLDEST)
// Each jump has a section of its own, so that the linker drops those that nothing calls.
#define JUMP_FROM(name, target)                                                  \
  ".pushsection .text.__wrap_" #name ",\"ax\",%progbits\n.globl __wrap_" #name   \
  "\n.hidden __wrap_" #name "\n.type __wrap_" #name ", %function\n__wrap_" #name \
  ":\n" JUMP("old_" #target) "\n.popsection\n"
#define FORWARD(name) __asm__(OLD_VERSION(name) JUMP_FROM(name, name));

FORWARD(exp)
FORWARD(exp2)
FORWARD(log)
FORWARD(log2)
FORWARD(pow)
FORWARD(__pthread_key_create)
FORWARD(pthread_create)
FORWARD(pthread_detach)
FORWARD(pthread_getspecific)
FORWARD(pthread_join)
FORWARD(pthread_key_create)
FORWARD(pthread_key_delete)
FORWARD(pthread_once)
FORWARD(pthread_setspecific)

// CUDA's runtime.
FORWARD(dlclose)
FORWARD(dlerror)
FORWARD(dlopen)
FORWARD(dlsym)
FORWARD(dlvsym)
FORWARD(pthread_attr_getstacksize)
FORWARD(pthread_condattr_setpshared)
FORWARD(pthread_kill)
FORWARD(pthread_mutex_trylock)
FORWARD(pthread_mutexattr_destroy)
FORWARD(pthread_mutexattr_init)
FORWARD(pthread_mutexattr_setpshared)
FORWARD(pthread_mutexattr_settype)
FORWARD(pthread_rwlock_destroy)
FORWARD(pthread_rwlock_init)
FORWARD(pthread_rwlock_rdlock)
FORWARD(pthread_rwlock_timedrdlock)
FORWARD(pthread_rwlock_timedwrlock)
FORWARD(pthread_rwlock_tryrdlock)
FORWARD(pthread_rwlock_trywrlock)
FORWARD(pthread_rwlock_unlock)
FORWARD(pthread_rwlock_wrlock)
FORWARD(pthread_rwlockattr_destroy)
FORWARD(pthread_rwlockattr_init)
FORWARD(pthread_rwlockattr_setpshared)
FORWARD(pthread_sigmask)
FORWARD(pthread_spin_destroy)
FORWARD(pthread_spin_init)
FORWARD(pthread_spin_lock)
FORWARD(pthread_spin_trylock)
FORWARD(pthread_spin_unlock)
FORWARD(sem_destroy)
FORWARD(sem_init)
FORWARD(sem_post)
FORWARD(sem_timedwait)
FORWARD(sem_trywait)
FORWARD(sem_wait)
FORWARD(shm_open)
FORWARD(shm_unlink)
// WRAP(dlmopen)
__asm__(VERSION_OF(dlmopen, DLMOPEN) JUMP_FROM(dlmopen, dlmopen));

// From glibc 2.38 on its headers turn strtol() into one that knows binary numbers, too.
// WRAP(__isoc23_strtol)
__asm__(OLD_VERSION(strtol) JUMP_FROM(__isoc23_strtol, strtol));
// WRAP(__isoc23_strtoll)
__asm__(OLD_VERSION(strtoll) JUMP_FROM(__isoc23_strtoll, strtoll));
// WRAP(__isoc23_strtoul)
__asm__(OLD_VERSION(strtoul) JUMP_FROM(__isoc23_strtoul, strtoul));
// WRAP(__isoc23_strtoull)
__asm__(OLD_VERSION(strtoull) JUMP_FROM(__isoc23_strtoull, strtoull));

extern "C" {

__asm__(OLD_VERSION(__xstat));
__asm__(OLD_VERSION(__lxstat));
__asm__(OLD_VERSION(__fxstat));
int old___xstat(int form, const char* path, struct stat* found);
int old___lxstat(int form, const char* path, struct stat* found);
int old___fxstat(int form, int file, struct stat* found);

// WRAP(stat)
int __wrap_stat(const char* path, struct stat* found) {
  return old___xstat(STAT_FORM, path, found);
}
// WRAP(fstat64)
int __wrap_fstat64(int file, struct stat64* found) {
  return old___fxstat(STAT_FORM, file, reinterpret_cast<struct stat*>(found));  // they are the same
}
// WRAP(lstat)
int __wrap_lstat(const char* path, struct stat* found) {
  return old___lxstat(STAT_FORM, path, found);
}
// WRAP(fstat)
int __wrap_fstat(int file, struct stat* found) { return old___fxstat(STAT_FORM, file, found); }

// Whether atomic counters may be skipped; they never are.
// WRAP(__libc_single_threaded)
char __wrap___libc_single_threaded = 0;

// Of std::random_device.
// WRAP(arc4random)
std::uint32_t __wrap_arc4random() {
  std::uint32_t bits = 0;
  while (getentropy(&bits, sizeof bits) != 0) {
  }
  return bits;
}

// The time left by one clock, waited for by the other: a clock that is set meanwhile ends the wait
// early or late, and callers look at their own clock again.
// WRAP(pthread_cond_clockwait)
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const timespec* until) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec theirs{}, ours{};
  clock_gettime(clock, &theirs);
  clock_gettime(CLOCK_REALTIME, &ours);
  const std::int64_t nanoseconds =
      std::int64_t{ours.tv_nsec} + until->tv_nsec - theirs.tv_nsec;  // -1 to 2 seconds
  const std::int64_t carry = nanoseconds >= kSecond ? 1 : nanoseconds < 0 ? -1 : 0;
  ours.tv_sec += until->tv_sec - theirs.tv_sec + carry;
  ours.tv_nsec = nanoseconds - carry * kSecond;
  return pthread_cond_timedwait(condition, mutex, &ours);
}

}  // extern "C"
