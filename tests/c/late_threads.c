// Threads that first call a library which was loaded by dlopen() when no memory is left: a status
// and a sentence, as ever: late_threads LIBRARY
//
// This program is not linked with the library, nor with C++'s.
#define _GNU_SOURCE

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "octet/octet.h"

static int failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

static struct {
  octet_status (*device_open)(const char*, const char*, int32_t, int32_t, octet_device**);
  void (*device_free)(octet_device*);
  octet_status (*engine_create)(const octet_options*, octet_on_progress, void*, octet_engine**);
  size_t (*wrap_plain_text)(const char*, char*, size_t);
  const char* (*last_error)(void);
} lib;

static void* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) abort();
  return found;
}

static void* open_library(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    abort();
  }
  // ISO C has no conversion from objects to functions.
  *(void**)&lib.device_open = symbol(library, "octet_device_open");
  *(void**)&lib.device_free = symbol(library, "octet_device_free");
  *(void**)&lib.engine_create = symbol(library, "octet_engine_create");
  *(void**)&lib.wrap_plain_text = symbol(library, "octet_wrap_plain_text");
  *(void**)&lib.last_error = symbol(library, "octet_last_error");
  return library;
}

typedef octet_status (*task)(void);

static octet_status open_device(void) {
  octet_device* device = NULL;
  const octet_status status = lib.device_open("cpu", NULL, 1, OCTET_TUNE_OFF, &device);
  lib.device_free(device);
  return status;
}

// An error with fields, whatever the memory.
static octet_status create_engine(void) {
  octet_options options = octet_options_init();
  options.model = "/nowhere";
  options.lazy = 2;
  octet_engine* engine = NULL;
  const octet_status status = lib.engine_create(&options, NULL, NULL, &engine);
  return status == OCTET_INVALID_REQUEST ? OCTET_OK : status;
}

static octet_status wrap_text(void) {
  if (lib.wrap_plain_text("a cat", NULL, 0) > 0) return OCTET_OK;
  return strstr(lib.last_error(), "out of memory") != NULL ? OCTET_OUT_OF_MEMORY : OCTET_ERROR;
}

// All that is left but `room` bytes.
static void eat_memory(size_t room) {
  static void* volatile eaten;
  void* const kept = malloc(room);
  struct rlimit none = {0, 0};
  CHECK(setrlimit(RLIMIT_AS, &none) == 0);
  for (size_t bytes = (size_t)1 << 20; bytes >= 16; bytes /= 2) {
    while ((eaten = malloc(bytes)) != NULL) {
    }
  }
  free(kept);
}

static pthread_barrier_t ready, go;
static task to_run;
static int result = -1;

static void* call_late(void* unused) {
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&go);
  const octet_status first = to_run();
  const int is_said = first == OCTET_OK || strstr(lib.last_error(), "memory") != NULL;
  result = is_said ? first : 99;
  return unused;
}

// In a child, whose thread begins while there is memory; its status, or -1 if it died.
static int status_with(const char* path, task of, size_t room) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    void* const library = open_library(path);
    to_run = of;
    pthread_t thread;
    CHECK(pthread_barrier_init(&ready, NULL, 2) == 0 && pthread_barrier_init(&go, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, call_late, NULL) == 0);
    pthread_barrier_wait(&ready);
    eat_memory(room);
    pthread_barrier_wait(&go);
    dlclose(library);  // before the thread ends
    CHECK(pthread_join(thread, NULL) == 0);
    _exit(failures != 0 ? 98 : result);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
#if defined(__SANITIZE_ADDRESS__)
  printf("%s:%d: Skipped\na sanitizer needs memory of its own\n", __FILE__, __LINE__);
  return 77;
#endif
  const task tasks[] = {open_device, create_engine, wrap_text};
  int refused = 0;
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; ++i) {
    for (size_t room = 0; room < (size_t)100 << 10; room = room * 3 + 1000) {
      const int status = status_with(argv[1], tasks[i], room);
      if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) {
        ++failures;
        printf("task %zu with %zu bytes: %d\n", i, room, status);
      }
      refused += status == OCTET_OUT_OF_MEMORY;
    }
  }
  CHECK(refused >= 3);
  return failures != 0;
}
