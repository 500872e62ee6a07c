// Functions of a newer glibc in terms of glibc 2.28, so that a wheel runs with every later one.
//
// The linker binds a function to its newest version at hand, although older ones do the same: in
// 2.34 all threads moved into libc.so.6, and 2.29 gave the functions of libm a version without old
// ways to report errors. A line FORWARD(name) takes the oldest version instead: for each,
// cmake/portable.cmake passes --wrap=name, so that calls of name arrive at __wrap_name, a jump.
// What glibc 2.28 lacks is written out.
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define JUMP(name) "jmp *" name "@GOTPCREL(%rip)"
#define STAT_FORM 1
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define JUMP(name) "b " name
#define STAT_FORM 0
#else
#error "expected x86-64 or aarch64"
#endif

#define OLD_VERSION(name) ".symver old_" #name "," #name "@" OLDEST "\n"
#define FORWARD(name)                                                               \
  __asm__(OLD_VERSION(name) ".text\n.globl __wrap_" #name "\n.hidden __wrap_" #name \
                            "\n.type __wrap_" #name ", %function\n__wrap_" #name    \
                            ":\n" JUMP("old_" #name) "\n");

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
