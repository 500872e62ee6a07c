// Wrong use of the engine of octet/octet.h, as sentences: engine_errors MODEL
#include <math.h>

#include "watcher.h"

// Counts whose bytes pass 64 bits, or that no program means.
static const size_t kTooMany[] = {SIZE_MAX,         SIZE_MAX / 2 + 1,  SIZE_MAX / 4 + 1,
                                  SIZE_MAX / 8 + 1, SIZE_MAX / 16 + 2, SIZE_MAX / 32 + 2,
                                  (size_t)1 << 31};
enum { COUNTS = sizeof kTooMany / sizeof *kTooMany };

static void check_counts(octet_engine* engine, const octet_options* right, int32_t side) {
  const int32_t invalid = OCTET_INVALID_REQUEST;
  const float number = 1;
  const char* const network = "all";
  octet_lora lora = {"a", &network, 0, 1};
  const octet_pair part = {"vae", right->model};
  const octet_keep rule = {NULL, 0};
  for (int i = 0; i < COUNTS; ++i) {
    octet_request request = new_request(side);
    request.noise = &number;
    request.noise_count = kTooMany[i];
    CHECK_FAILS(octet_engine_check(engine, &request), invalid, "noise", "at most");
    request = new_request(side);
    request.guidance = &number;
    request.guidance_count = kTooMany[i];
    CHECK_FAILS(octet_engine_check(engine, &request), invalid, "guidance", "at most");
    request = new_request(side);
    request.loras = &lora;
    request.lora_count = kTooMany[i];
    CHECK_FAILS(octet_engine_check(engine, &request), invalid, "loras", "at most");
    CHECK_FAILS(octet_engine_set_loras(engine, &lora, kTooMany[i], NULL, NULL), invalid, "loras",
                "at most");
    lora.network_count = kTooMany[i];
    CHECK_FAILS(octet_engine_set_loras(engine, &lora, 1, NULL, NULL), invalid, "networks",
                "at most");
    lora.network_count = 0;
    octet_engine* made = NULL;
    octet_options options = *right;
    options.parts = &part;
    options.part_count = kTooMany[i];
    CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &made), invalid, "parts", "at most");
    options = *right;
    options.keep = &rule;
    options.keep_count = kTooMany[i];
    CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &made), invalid, "keep", "at most");
    CHECK(made == NULL);
  }
}

static void check_noise(octet_engine* engine, int32_t side) {
  const float noise[2] = {0, 0};
  octet_request request = new_request(side);
  request.images = 1;
  request.noise = noise;
  request.noise_count = 2;
  CHECK_FAILS(octet_engine_check(engine, &request), OCTET_INVALID_REQUEST, "noise", "2 numbers");
  request.noise = NULL;
  request.noise_count = 0;
  request.noise_name = "noise.safetensors";
  CHECK_FAILS(octet_engine_check(engine, &request), OCTET_INVALID_REQUEST, "noise", "0 numbers");
}

// A job of one engine says nothing about another.
static void check_others_job(octet_engine* engine, const octet_options* options, int32_t side) {
  octet_engine* other = NULL;
  CHECK(octet_engine_create(options, NULL, NULL, &other) == OCTET_OK);
  const octet_request request = new_request(side);
  octet_job* job = NULL;
  CHECK(octet_job_create(other, &request, &job) == OCTET_OK);
  octet_estimate estimate = octet_estimate_init();
  CHECK(octet_engine_estimate(other, job, &estimate) == OCTET_OK);
  CHECK_FAILS(octet_engine_estimate(engine, job, &estimate), OCTET_ERROR, "", "another model");
  octet_job_free(job);
  octet_engine_free(other);
}

static void check_wrong_requests(octet_engine* engine, int32_t side) {
  const int32_t invalid = OCTET_INVALID_REQUEST;
  octet_request request = new_request(side);
  CHECK(octet_engine_check(engine, &request) == OCTET_OK);
  CHECK_FAILS(octet_engine_render(NULL, &request, NULL, NULL), invalid, "engine", "NULL");
  CHECK_FAILS(octet_engine_render(engine, NULL, NULL, NULL), invalid, "request", "NULL");
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.struct_size = 0;
  CHECK_FAILS(octet_engine_render(engine, &request, &callbacks, NULL), invalid, "struct_size", "0");
  octet_report report = octet_report_init();
  report.struct_size = 4096;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, &report), invalid, "struct_size", "4096");
  request.width = side + 1;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "size", "");
  CHECK_FAILS(octet_engine_check(engine, &request), invalid, "size", "");
  request = new_request(side);
  request.height = 0;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "size", "");
  request = new_request(side);
  request.preset = "slow";
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "preset", "slow");
  request = new_request(side);
  request.guidance_count = STEPS + 1;
  request.guidance = NULL;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "guidance", "NULL");
  request = new_request(side);
  request.caption = NULL;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "caption", "NULL");
  request = new_request(side);
  request.caption = "{";
  request.caption_name = "poster";
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "caption", "poster");
  request = new_request(side);
  request.images = -1;
  CHECK(octet_engine_render(engine, &request, NULL, NULL) != OCTET_OK);
  request = new_request(side);
  request.reserved = 1;
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), invalid, "reserved", "1");

  check_noise(engine, side);

  octet_lora lora = {NULL, NULL, 0, 1};
  request = new_request(side);
  request.loras = &lora;
  request.lora_count = 1;
  const char* const networks[] = {"third"};
  const octet_lora wrong[] = {{"", NULL, 0, 1}, {"a", NULL, 0, INFINITY}, {"a", networks, 1, 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {  // a check opens no file
    lora = wrong[i];
    CHECK_FAILS(octet_engine_check(engine, &request), invalid, "loras", "expected");
  }
  lora = (octet_lora){"a", NULL, 0, 1};
  CHECK(octet_engine_check(engine, &request) == OCTET_OK);
  lora.file = NULL;
  CHECK_FAILS(octet_engine_set_loras(engine, &lora, 1, NULL, NULL), invalid, "loras", "NULL");
  CHECK_FAILS(octet_engine_set_loras(engine, NULL, 1, NULL, NULL), invalid, "loras", "NULL");
  lora.file = "no_such_file.safetensors";
  lora.strength = NAN;
  CHECK_FAILS(octet_engine_set_loras(engine, &lora, 1, NULL, NULL), invalid, "loras", "nan");
  lora.strength = 1;
  CHECK(octet_engine_set_loras(engine, &lora, 1, NULL, NULL) != OCTET_OK);
  CHECK(strstr(octet_last_error(), lora.file) != NULL);
  CHECK(octet_engine_set_loras(engine, NULL, 0, NULL, NULL) == OCTET_OK);

  CHECK_FAILS(octet_engine_info(engine, NULL), invalid, "info", "NULL");
  CHECK(octet_engine_text(engine, 9, NULL, 0) == 0);
  CHECK(strcmp(octet_last_error_field(), "what") == 0);

  const uint8_t pixel[3] = {1, 2, 3};
  CHECK_FAILS(octet_write_png(NULL, pixel, 1, 1), invalid, "path", "NULL");
  CHECK_FAILS(octet_write_png("no_file.png", NULL, 1, 1), invalid, "rgb", "NULL");
  CHECK_FAILS(octet_write_png("no_file.png", pixel, 0, 1), invalid, "width", "0");
  CHECK_FAILS(octet_write_png("no/such/folder.png", pixel, 1, 1), OCTET_ERROR, "", "no/such");
  CHECK_FAILS(octet_write_picture("no_file.png", NULL), invalid, "picture", "NULL");
}

static int stop_at_once(void* user, const octet_progress* progress) {
  (void)progress;
  ++*(int*)user;
  return 1;
}

static void check_wrong_options(const octet_options* right) {
  const int32_t invalid = OCTET_INVALID_REQUEST;
  octet_engine* engine = NULL;
  CHECK_FAILS(octet_engine_create(NULL, NULL, NULL, &engine), invalid, "options", "NULL");
  CHECK_FAILS(octet_engine_create(right, NULL, NULL, NULL), invalid, "engine", "NULL");
  octet_options options = octet_options_init();
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "model", "NULL");
  options = *right;
  options.struct_size = 1;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "struct_size", "_init");
  options = *right;
  options.activations = OCTET_I8;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "activations", "BF16");
  options = *right;
  options.convention = 7;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "convention", "7");
  options = *right;
  options.text_encoder_linears = 2;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "text_encoder_linears",
              "2");
  options = *right;
  options.reserved = 1;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "reserved", "1");
  options = *right;
  options.part_count = 1;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "parts", "NULL");
  const octet_pair part = {"vea\x1b[2J", right->model};
  options.parts = &part;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "parts", "vea");
  CHECK(strstr(octet_last_error(), "text_encoder, vae or tokenizer") != NULL);
  CHECK(strchr(octet_last_error(), '\x1b') == NULL);
  const octet_pair no_path = {"vae", ""};
  options.parts = &no_path;
  CHECK_FAILS(octet_engine_create(&options, NULL, NULL, &engine), invalid, "parts", "empty");
  options = *right;
  options.device = "tpu";
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) != OCTET_OK);
  CHECK(strstr(octet_last_error(), "tpu") != NULL);
  options = *right;
  options.model = "no/such/\x1b[31mmodel\xff";
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) != OCTET_OK);
  CHECK(strstr(octet_last_error(), "no/such/\\u001b[31mmodel\\xff") != NULL);
  options.model = "no/such/model";
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) != OCTET_OK);
  CHECK(strstr(octet_last_error(), "no/such/model") != NULL);
  int calls = 0;
  CHECK_FAILS(octet_engine_create(right, stop_at_once, &calls, &engine), OCTET_CANCELLED, "", "");
  CHECK(calls == 1 && engine == NULL);

  octet_engine_free(NULL);
  octet_engine_cancel(NULL);
}

// What is freed, or never was an engine, is none: nothing is read there, and nothing is loaded.
static void check_no_engine(octet_engine* none, const octet_options* options) {
  const octet_request request = new_request(64);
  octet_state state = octet_state_init();
  octet_info info = octet_info_init();
  octet_job* job = NULL;
  const char* const said = "no engine";
  CHECK_FAILS(octet_engine_load(none, options, NULL, NULL), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_unload(none), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_render(none, &request, NULL, NULL), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_check(none, &request), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_warm_up(none, 0, 0, 0, NULL), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_set_loras(none, NULL, 0, NULL, NULL), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_state(none, &state), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_engine_info(none, &info), OCTET_ERROR, "", said);
  CHECK_FAILS(octet_job_create(none, &request, &job), OCTET_ERROR, "", said);
  octet_engine_cancel(none);
  octet_engine_free(none);
}

static int free_twice(void* engine, const octet_progress* progress) {
  (void)progress;
  octet_engine_free(engine);
  octet_engine_free(engine);
  return 0;
}

static void check_freed_engines(const octet_options* options) {
  octet_engine* engine = NULL;
  CHECK(octet_engine_create(options, NULL, NULL, &engine) == OCTET_OK);
  octet_engine* const kept = engine;
  octet_engine_free(engine);
  check_no_engine(kept, options);
  void* foreign[4] = {NULL, NULL, NULL, NULL};
  check_no_engine((octet_engine*)foreign, options);

  CHECK(octet_engine_create(options, NULL, NULL, &engine) == OCTET_OK);
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.user = engine;
  callbacks.progress = free_twice;
  const octet_request request = new_request(64);
  CHECK(octet_engine_render(engine, &request, &callbacks, NULL) == OCTET_CANCELLED);
}

static int cancel_thread(void* user, const octet_progress* progress) {
  (void)user;
  (void)progress;
  return pthread_cancel(pthread_self());
}

static int rendered = 0;

static void* render_cancelled(void* engine) {
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.progress = cancel_thread;
  const octet_request request = new_request(64);
  rendered = octet_engine_render(engine, &request, &callbacks, NULL) == OCTET_OK;
  pthread_testcancel();
  return NULL;
}

// Not before the call returns.
static void check_cancelled_thread(octet_engine* engine) {
  pthread_t thread;
  void* result = NULL;
  CHECK(pthread_create(&thread, NULL, render_cancelled, engine) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(rendered && result == PTHREAD_CANCELED);
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: engine_errors MODEL\n");
    return 2;
  }
#if !OCTET_HAS_UTF8PROC
  return SKIPPED("this build has no utf8proc");
#endif
  const octet_options options = new_options(arguments[1]);
  octet_engine* engine = NULL;
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) == OCTET_OK);
  if (engine == NULL) return 1;
  octet_info info = octet_info_init();
  CHECK(octet_engine_info(engine, &info) == OCTET_OK);
  check_wrong_requests(engine, 4 * info.token_side);
  check_counts(engine, &options, 4 * info.token_side);
  check_others_job(engine, &options, 4 * info.token_side);
  check_cancelled_thread(engine);
  octet_engine_free(engine);
  check_wrong_options(&options);
  check_freed_engines(&options);
  return failures != 0;
}
