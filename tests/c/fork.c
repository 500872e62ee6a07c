// A child after fork(), which has the handles of its parent but none of their threads: every call
// is a sentence, freeing them ends, and the child can have handles of its own: fork MODEL
#define _POSIX_C_SOURCE 200809L

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watcher.h"

enum { M = 8, N = 32, K = 64, SECONDS = 120 };

typedef struct {
  octet_device* device;
  octet_weight* weight;
  float x[M * K], y[M * N];
} operations;

static void open_device(operations* with) {
  static int8_t codes[N * K];
  static float scales[N];
  for (int i = 0; i < N * K; ++i) codes[i] = (int8_t)(i % 100);
  for (int i = 0; i < N; ++i) scales[i] = 0.01f;
  octet_weight_rows rows = octet_weight_rows_init();
  rows.codes = codes;
  rows.scales = scales;
  rows.n = N;
  rows.k = K;
  CHECK(octet_device_open("cpu", NULL, 2, OCTET_TUNE_OFF, &with->device) == OCTET_OK);
  CHECK(octet_weight_create(with->device, &rows, &with->weight) == OCTET_OK);
  for (int i = 0; i < M * K; ++i) with->x[i] = (float)(i % 7);
}

static octet_status run_linear(operations* with) {
  const octet_matrix x = {with->x, M, K, 0, OCTET_F32, 0}, y = {with->y, M, N, 0, OCTET_F32, 0};
  return octet_linear(with->device, with->weight, &x, OCTET_FUSION_NONE, &y);
}

static void check_device_of_parent(operations* inherited) {
  const char* const words = "forked after the device";
  CHECK_FAILS(run_linear(inherited), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_device_synchronize(inherited->device), OCTET_ERROR, "", words);
  octet_call call = octet_call_init();
  const octet_matrix x = {inherited->x, M, K, 0, OCTET_F32, 0};
  const octet_matrix y = {inherited->y, M, N, 0, OCTET_F32, 0};
  CHECK_FAILS(octet_call_linear(inherited->device, &call, NULL, inherited->weight, &x, &y),
              OCTET_ERROR, "", words);
  CHECK(octet_last_kernel(inherited->device, NULL, 0) == 0);
  CHECK(strstr(octet_last_error(), words) != NULL);
  CHECK(octet_device_describe(inherited->device, NULL, 0) == 0);
  octet_weight_free(inherited->weight);
  octet_device_free(inherited->device);
  operations own;
  open_device(&own);
  CHECK(run_linear(&own) == OCTET_OK && own.y[1] != 0);
  octet_weight_free(own.weight);
  octet_device_free(own.device);
}

static void check_engine_of_parent(octet_engine* inherited, const octet_options* options) {
  const char* const words = "forked after the engine";
  octet_request request = new_request(16);
  CHECK_FAILS(octet_engine_render(inherited, &request, NULL, NULL), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_engine_check(inherited, &request), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_engine_load(inherited, options, NULL, NULL), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_engine_unload(inherited), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_engine_warm_up(inherited, 16, 16, 0, NULL), OCTET_ERROR, "", words);
  CHECK_FAILS(octet_engine_set_loras(inherited, NULL, 0, NULL, NULL), OCTET_ERROR, "", words);
  octet_state state = octet_state_init();
  CHECK_FAILS(octet_engine_state(inherited, &state), OCTET_ERROR, "", words);
  octet_info info = octet_info_init();
  CHECK_FAILS(octet_engine_info(inherited, &info), OCTET_ERROR, "", words);
  octet_engine_cancel(inherited);
  octet_engine_free(inherited);
  octet_engine* own = NULL;
  CHECK(octet_engine_create(options, NULL, NULL, &own) == OCTET_OK);
  CHECK(octet_engine_render(own, &request, NULL, NULL) == OCTET_OK);
  octet_engine_free(own);
}

static void check_child(operations* with, octet_engine* engine, const octet_options* options) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(SECONDS);  // hanging is a failure, too
    check_device_of_parent(with);
    check_engine_of_parent(engine, options);
    fflush(stdout);
    _exit(failures != 0);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

typedef struct {
  operations* with;
  octet_engine* engine;
  const octet_options* options;
  int forked;
} renderer;

// A fork in the middle of a render, whose threads hold what they hold.
static int fork_once(void* user, const octet_progress* progress) {
  renderer* here = user;
  if (progress->stage == OCTET_STAGE_DENOISE && !here->forked++) {
    check_child(here->with, here->engine, here->options);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
#if !defined(OCTET_HAS_UTF8PROC)
  return SKIPPED("this build has no utf8proc");
#endif
  operations with;
  open_device(&with);
  CHECK(run_linear(&with) == OCTET_OK);
  octet_options options = octet_options_init();
  options.model = argv[1];
  options.device = "cpu";
  options.threads = 2;
  options.convention = OCTET_CONVENTION_DIFFUSERS;
  octet_engine* engine = NULL;
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) == OCTET_OK);
  octet_request request = new_request(16);
  CHECK(octet_engine_render(engine, &request, NULL, NULL) == OCTET_OK);
  check_child(&with, engine, &options);
  renderer here = {&with, engine, &options, 0};
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.user = &here;
  callbacks.progress = fork_once;
  CHECK(octet_engine_render(engine, &request, &callbacks, NULL) == OCTET_OK);
  CHECK(here.forked > 0);
  CHECK(run_linear(&with) == OCTET_OK);
  octet_engine_free(engine);
  octet_weight_free(with.weight);
  octet_device_free(with.device);
  return failures != 0;
}
