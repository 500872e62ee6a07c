// Calls while the process exits, after everything static was destroyed: as a thread may make them
// that still runs, or a destructor. On a host they work as ever: exiting MODEL
//
// No device is opened here: CUDA's runtime, which is asked for GPUs, has ended by then.
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <unistd.h>

#include "watcher.h"

enum { M = 8, N = 32, K = 64 };

static octet_device* device;
static octet_weight* weight;
static octet_engine* engine;
static int is_engine_tested;
static float x[M * K], y[M * N], expected[M * N];

static octet_status run_linear(float* into) {
  const octet_matrix from = {x, M, K, 0, OCTET_F32, 0}, to = {into, M, N, 0, OCTET_F32, 0};
  return octet_linear(device, weight, &from, OCTET_FUSION_NONE, &to);
}

static void open_device(void) {
  static int8_t codes[N * K];
  static float scales[N];
  for (int i = 0; i < N * K; ++i) codes[i] = (int8_t)(i % 100);
  for (int i = 0; i < N; ++i) scales[i] = 0.01f;
  for (int i = 0; i < M * K; ++i) x[i] = (float)(i % 7);
  octet_weight_rows rows = octet_weight_rows_init();
  rows.codes = codes;
  rows.scales = scales;
  rows.n = N;
  rows.k = K;
  CHECK(octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &device) == OCTET_OK);
  CHECK(octet_weight_create(device, &rows, &weight) == OCTET_OK);
}

static void load_engine(const char* model) {
  octet_options options = octet_options_init();
  options.model = model;
  options.device = "cpu";
  options.threads = 2;
  options.convention = OCTET_CONVENTION_DIFFUSERS;
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) == OCTET_OK);
}

static void render_once(void) {
  octet_request request = new_request(16);
  CHECK(octet_engine_render(engine, &request, NULL, NULL) == OCTET_OK);
}

static void call_late(void) {
  if (device == NULL) return;  // main() ended early
  CHECK(run_linear(y) == OCTET_OK);
  CHECK(memcmp(y, expected, sizeof y) == 0);
  const octet_matrix none = {NULL, M, K, 0, OCTET_F32, 0};
  CHECK_FAILS(octet_linear(device, weight, &none, OCTET_FUSION_NONE, &none), OCTET_INVALID_REQUEST,
              "x", "`x`");
  octet_weight_free(weight);
  octet_device_free(device);
  CHECK(strlen(octet_version()) > 0 && strlen(octet_commit()) > 0);
  if (is_engine_tested) {
    render_once();
    octet_engine_free(engine);
  }
  fflush(stdout);
  if (failures != 0) _exit(1);
}

// What is registered first is called last; the library's own statics come after this.
__attribute__((constructor(101))) static void register_first(void) {
  if (atexit(call_late) != 0) abort();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  open_device();
  CHECK(run_linear(expected) == OCTET_OK && expected[1] != 0);
#if defined(OCTET_HAS_UTF8PROC)
  load_engine(argv[1]);
  render_once();
  is_engine_tested = 1;
#else
  (void)load_engine;
  (void)argv;
#endif
  return failures != 0;
}
