// Memory that runs out at each allocation in turn, once and for good: OCTET_OUT_OF_MEMORY or
// success, never another status and never the end of the process: failing_allocations MODEL
//
// Each call is tried from its first allocation on, so that what is made once is made under want.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "watcher.h"

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#endif

#if !defined(WATCHED) && defined(__GLIBC__)
#define FAILS 1

static atomic_long left = -1;  // allocations until one fails; -1: none does
static atomic_int lasting;     // all that follow fail, too
static atomic_long refused;

static int fails(void) {
  long now = atomic_load(&left);
  if (now < 0) return 0;
  if (now > 0) {
    atomic_fetch_sub(&left, 1);
    return 0;
  }
  if (!atomic_load(&lasting)) atomic_store(&left, -1);
  atomic_fetch_add(&refused, 1);
  errno = ENOMEM;
  return 1;
}

// In place of those of the C library, for everything in this process.
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** made, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *made = __libc_memalign(alignment, size);
  return *made != NULL ? 0 : ENOMEM;
}

typedef octet_status (*call)(void);

static octet_status status_of_text(size_t length) {
  if (length > 0) return OCTET_OK;
  return strstr(octet_last_error(), "out of memory") != NULL ? OCTET_OUT_OF_MEMORY : OCTET_ERROR;
}

static char text[4096];

static octet_status wrap(void) {
  return status_of_text(octet_wrap_plain_text("a calm sea at dusk, and a ship", text, sizeof text));
}

static void on_finding(void* user, const octet_finding* finding) {
  (void)user;
  (void)finding;
}

static octet_status check_text(void) {
  static const char* const elements =
      "{\"high_level_description\": \"A heart.\", \"compositional_deconstruction\": "
      "{\"background\": \"Blue.\", \"elements\": [{\"type\": \"obj\", \"desc\": \"A heart.\"}]}}";
  return status_of_text(octet_check_caption(elements, on_finding, NULL, text, sizeof text));
}

static void on_device(void* user, const octet_device_info* device) {
  (void)user;
  (void)device;
}

static octet_status list_devices(void) { return octet_list_devices(on_device, NULL); }

static octet_status open_device(void) {
  octet_device* device = NULL;
  const octet_status status = octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &device);
  octet_device_free(device);
  return status;
}

#if defined(OCTET_HAS_UTF8PROC)
static octet_options options;
static octet_engine* engine;

static octet_status create(void) {
  octet_engine* made = NULL;
  const octet_status status = octet_engine_create(&options, NULL, NULL, &made);
  CHECK((status == OCTET_OK) == (made != NULL));
  octet_engine_free(made);
  return status;
}

static octet_status load(void) { return octet_engine_load(engine, &options, NULL, NULL); }

static octet_status create_job(void) {
  const octet_request request = new_request(64);
  octet_job* job = NULL;
  const octet_status status = octet_job_create(engine, &request, &job);
  octet_job_free(job);
  return status;
}

static octet_status render_one(void) {
  octet_request request = new_request(64);
  request.images = 1;
  return octet_engine_render(engine, &request, NULL, NULL);
}
#endif

// Each of the first allocations, and some of those that follow.
static void check_call(call of, const char* name) {
  for (int lasts = 0; lasts < 2; ++lasts) {
    long times = 0;
    for (long nth = 0;; nth += nth < 150 ? 1 : nth / 10) {
      atomic_store(&refused, 0);
      atomic_store(&lasting, lasts);
      atomic_store(&left, nth);
      const octet_status status = of();
      atomic_store(&left, -1);
      if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) {
        printf("%s, allocation %ld: status %d\n", name, nth, status);
      }
      CHECK(status == OCTET_OK || status == OCTET_OUT_OF_MEMORY);
      if (atomic_load(&refused) == 0) break;
      times += status == OCTET_OUT_OF_MEMORY;
    }
    CHECK(times > 0);
    CHECK(of() == OCTET_OK);
  }
}
#endif

int main(int count, char** arguments) {
  (void)arguments;  // unused in a build without utf8proc
  if (count != 2) return 2;
#if !defined(FAILS)
  (void)arguments;
  return SKIPPED("needs glibc's allocator");
#else
  CHECK(octet_last_error()[0] == '\0');
  check_call(list_devices, "octet_list_devices");
  check_call(open_device, "octet_device_open");
  check_call(wrap, "octet_wrap_plain_text");
  check_call(check_text, "octet_check_caption");
#if defined(OCTET_HAS_UTF8PROC)
  options = new_options(arguments[1]);
  options.threads = 1;
  check_call(create, "octet_engine_create");
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) == OCTET_OK);
  if (engine == NULL) return 1;
  check_call(create_job, "octet_job_create");
  check_call(render_one, "octet_engine_render");
  check_call(load, "octet_engine_load");
  octet_engine_free(engine);
#endif
  return failures != 0;
#endif
}
