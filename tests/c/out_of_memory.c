// Too little memory, at every place where it can run out: OCTET_OUT_OF_MEMORY or success, never
// another status and never the end of the process: out_of_memory MODEL
#define _POSIX_C_SOURCE 200809L

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watcher.h"

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#endif

static size_t mapped_bytes(void) {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%zu", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void leave_room(size_t bytes) {
  const rlim_t all = mapped_bytes() + bytes;
  const struct rlimit limit = {all, all};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

typedef octet_status (*task)(const char* model);

#if defined(OCTET_HAS_UTF8PROC)
static octet_status load_and_render(const char* model) {
  octet_options options = octet_options_init();
  options.model = model;
  options.device = "cpu";
  options.threads = 1;  // a pool is in the linear
  options.convention = OCTET_CONVENTION_DIFFUSERS;
  octet_engine* engine = NULL;
  octet_status status = octet_engine_create(&options, NULL, NULL, &engine);
  if (status != OCTET_OK) return status;
  octet_request request = new_request(64);
  status = octet_engine_render(engine, &request, NULL, NULL);
  octet_engine_free(engine);
  return status;
}
#endif

static octet_status multiply(const char* model) {
  enum { SIDE = 1024 };
  static int8_t codes[SIDE * SIDE];
  static float x[SIDE * SIDE], scales[SIDE], y[SIDE * SIDE];
  (void)model;
  octet_device* device = NULL;
  octet_weight* weight = NULL;
  octet_status status = octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &device);
  octet_weight_rows rows = octet_weight_rows_init();
  rows.codes = codes;
  rows.scales = scales;
  rows.n = rows.k = SIDE;
  if (status == OCTET_OK) status = octet_weight_create(device, &rows, &weight);
  const octet_matrix from = {x, SIDE, SIDE, 0, OCTET_F32, 0}, to = {y, SIDE, SIDE, 0, OCTET_F32, 0};
  if (status == OCTET_OK) status = octet_linear(device, weight, &from, OCTET_FUSION_NONE, &to);
  octet_weight_free(weight);
  octet_device_free(device);
  return status;
}

static octet_picture square(void) {
  enum { SIDE = 1024 };
  static uint8_t rgb[SIDE * SIDE * 3];
  octet_picture picture;
  memset(&picture, 0, sizeof picture);
  picture.struct_size = sizeof picture;
  picture.rgb = rgb;
  picture.width = picture.height = SIDE;
  return picture;
}

static octet_status write_as(const char* name) {
  const octet_picture picture = square();
  const octet_status status = octet_write_picture(name, &picture);
  remove(name);
  return status;
}
static octet_status write_jpeg(const char* model) {
  (void)model;
  return write_as("out_of_memory_test.jpg");
}
static octet_status write_webp(const char* model) {
  (void)model;
  return write_as("out_of_memory_test.webp");
}

static octet_status encode(const char* model) {
  (void)model;
  const octet_picture picture = square();
  octet_bytes png;
  const octet_status status = octet_encode_picture(&picture, 6, &png);
  octet_bytes_free(&png);
  return status;
}

// In a child with this much memory; its status, or -1 if it died.
static int status_with(task of, const char* model, size_t room) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // hanging is a failure, too
    leave_room(room);
    const octet_status status = of(model);
    const int told = (status == OCTET_OK) == (octet_last_error()[0] == '\0');
    if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) printf("%s\n", octet_last_error());
    fflush(stdout);
    _exit(told ? status : 99);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_limits(task of, const char* name, const char* model) {
  int refused = 0;
  for (size_t room = 0; room < (size_t)160 << 20; room += room / 3 + ((size_t)200 << 10)) {
    const int status = status_with(of, model, room);
    refused += status == OCTET_OUT_OF_MEMORY;
    CHECK(status == OCTET_OK || status == OCTET_OUT_OF_MEMORY);
    if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) {
      printf("%s with %zu KB: %d\n", name, room >> 10, status);
    }
  }
  CHECK(refused >= 3);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const char* const model = argv[1];
#if defined(WATCHED)
  return SKIPPED("a sanitizer needs memory of its own");
#endif
  check_limits(multiply, "linear", NULL);
  check_limits(encode, "PNG", NULL);
  // A build may lack their libraries.
  const size_t enough = (size_t)1 << 30;
  if (status_with(write_jpeg, NULL, enough) == OCTET_OK) check_limits(write_jpeg, "JPEG", NULL);
  if (status_with(write_webp, NULL, enough) == OCTET_OK) check_limits(write_webp, "WebP", NULL);
#if defined(OCTET_HAS_UTF8PROC)
  check_limits(load_and_render, "picture", model);
#else
  (void)model;
#endif
  return failures != 0;
}
