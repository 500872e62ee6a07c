// The engine of octet/octet.h from plain C, with a small model: engine MODEL FOLDER
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

static const char* const kCaption =
    "{\"high_level_description\": \"A calm sea at dusk.\", \"compositional_deconstruction\": "
    "{\"background\": \"A calm sea at dusk.\", \"elements\": []}}";
static const float kGuidance = 3;

enum { STEPS = 2, IMAGES = 2 };

// What the callbacks saw, and when they end the work; a count of 0: never.
typedef struct {
  int texts, loads, steps, decodes, previews, pictures;
  int stop_at_step, stop_at_preview, stop_at_picture;
  int32_t side;          // of the pictures that are asked for
  octet_engine* cancel;  // from another thread, at the first step
  uint8_t* last;         // the last picture
  const char* file;      // for it, or NULL
  uint64_t seeds[IMAGES];
} watcher;

static void* cancel_it(void* engine) {
  octet_engine_cancel(engine);
  return NULL;
}

static int on_progress(void* user, const octet_progress* progress) {
  watcher* seen = user;
  CHECK(progress->struct_size == sizeof *progress);
  CHECK(progress->done >= 0 && progress->done <= progress->total);
  if (progress->stage == OCTET_STAGE_TEXT) ++seen->texts;
  if (progress->stage == OCTET_STAGE_LOAD) ++seen->loads;
  if (progress->stage == OCTET_STAGE_DECODE) ++seen->decodes;
  if (progress->stage != OCTET_STAGE_DENOISE) return 0;
  ++seen->steps;
  if (seen->cancel != NULL) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_it, seen->cancel) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  return seen->steps == seen->stop_at_step;
}

static int on_preview(void* user, const octet_preview* preview) {
  watcher* seen = user;
  CHECK(preview->rgb != NULL && preview->width > 0 && preview->height > 0);
  CHECK(preview->step >= 1 && preview->step <= preview->steps && preview->steps == STEPS);
  return ++seen->previews == seen->stop_at_preview;
}

static int on_picture(void* user, const octet_picture* picture) {
  watcher* seen = user;
  CHECK(picture->width == seen->side && picture->height == seen->side);
  CHECK(picture->index >= 0 && picture->index < IMAGES && picture->metadata_count > 3);
  seen->seeds[picture->index] = picture->seed;
  memcpy(seen->last, picture->rgb, (size_t)(3 * seen->side * seen->side));
  if (seen->file != NULL) CHECK(octet_write_picture(seen->file, picture) == OCTET_OK);
  return ++seen->pictures == seen->stop_at_picture;
}

static watcher new_watcher(int32_t side) {
  watcher made;
  memset(&made, 0, sizeof made);
  made.side = side;
  made.last = calloc((size_t)(3 * side * side), 1);
  if (made.last == NULL) abort();
  return made;
}

static octet_request new_request(int32_t side) {
  octet_request request = octet_request_init();
  request.caption = kCaption;
  request.width = request.height = side;
  request.steps = STEPS;
  request.guidance = &kGuidance;
  request.guidance_count = 1;
  request.images = IMAGES;
  request.seed = 40;
  return request;
}

static octet_status render(octet_engine* engine, const octet_request* request, watcher* seen,
                           octet_report* report) {
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.user = seen;
  callbacks.progress = on_progress;
  callbacks.preview = on_preview;
  callbacks.picture = on_picture;
  return octet_engine_render(engine, request, &callbacks, report);
}

static void check_png(const char* path) {
  unsigned char start[8] = {0};
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL);
  if (file == NULL) return;
  CHECK(fread(start, 1, 8, file) == 8 && memcmp(start, "\x89PNG\r\n\x1a\n", 8) == 0);
  fclose(file);
  CHECK(remove(path) == 0);
}

static void check_pictures(octet_engine* engine, int32_t side, const char* file) {
  octet_request request = new_request(side);
  watcher seen = new_watcher(side);
  seen.file = file;
  octet_report report = octet_report_init();
  CHECK(render(engine, &request, &seen, &report) == OCTET_OK);
  CHECK(seen.texts > 0 && seen.steps >= STEPS * IMAGES && seen.decodes >= IMAGES);
  CHECK(seen.previews == STEPS * IMAGES && seen.pictures == IMAGES);
  CHECK(seen.seeds[0] == 40 && seen.seeds[1] == 41);
  CHECK(report.struct_size == sizeof report && report.width == side && report.height == side);
  CHECK(report.steps == STEPS && report.text_tokens > 0 && report.denoise_s > 0);
  CHECK(report.linears_int8 + report.linears_protected + report.linears_kept > 0);
  check_png(file);

  // The second picture alone, from its own seed; nobody asks how far it is.
  watcher again = new_watcher(side);
  octet_callbacks picture_alone = octet_callbacks_init();
  picture_alone.user = &again;
  picture_alone.picture = on_picture;
  request.seed = seen.seeds[1];
  request.images = 0;
  CHECK(octet_engine_render(engine, &request, &picture_alone, NULL) == OCTET_OK);
  CHECK(again.pictures == 1);
  CHECK(memcmp(seen.last, again.last, (size_t)(3 * side * side)) == 0);
  CHECK(octet_engine_render(engine, &request, NULL, NULL) == OCTET_OK);
  CHECK(octet_write_png(file, again.last, side, side) == OCTET_OK);
  check_png(file);
  free(seen.last);
  free(again.last);
}

static void check_cancelling(octet_engine* engine, int32_t side) {
  const octet_request request = new_request(side);
  watcher seen = new_watcher(side);
  seen.stop_at_step = 1;
  CHECK_FAILS(render(engine, &request, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.steps == 1 && seen.pictures == 0 && octet_last_error()[0] != '\0');
  seen.stop_at_step = seen.steps = 0;
  seen.stop_at_preview = seen.previews + 1;
  CHECK_FAILS(render(engine, &request, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.steps < STEPS * IMAGES);
  // Also when there was nothing left to do.
  seen.stop_at_preview = 0;
  seen.pictures = 0;
  seen.stop_at_picture = IMAGES;
  CHECK_FAILS(render(engine, &request, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.pictures == IMAGES);
  seen.stop_at_picture = seen.steps = seen.pictures = 0;
  seen.cancel = engine;
  CHECK_FAILS(render(engine, &request, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.steps == 1 && seen.pictures == 0);
  seen.cancel = NULL;
  CHECK(render(engine, &request, &seen, NULL) == OCTET_OK);
  octet_engine_cancel(engine);  // nothing is under way
  CHECK(render(engine, &request, &seen, NULL) == OCTET_OK);
  free(seen.last);
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

  octet_lora lora = {NULL, NULL, 0, 1};
  CHECK_FAILS(octet_engine_set_loras(engine, &lora, 1, NULL, NULL), invalid, "loras", "NULL");
  CHECK_FAILS(octet_engine_set_loras(engine, NULL, 1, NULL, NULL), invalid, "loras", "NULL");
  lora.file = "no_such_file.safetensors";
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
  options = *right;
  options.device = "tpu";
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) != OCTET_OK);
  CHECK(strstr(octet_last_error(), "tpu") != NULL);
  options = *right;
  options.model = "no/such/model";
  CHECK(octet_engine_create(&options, NULL, NULL, &engine) != OCTET_OK);
  CHECK(strstr(octet_last_error(), "no/such/model") != NULL);
  int calls = 0;
  CHECK_FAILS(octet_engine_create(right, stop_at_once, &calls, &engine), OCTET_CANCELLED, "", "");
  CHECK(calls == 1 && engine == NULL);

  octet_engine_free(NULL);
  octet_engine_cancel(NULL);
}

// Also of a program that was compiled before there was such a field: its struct ends there.
static void check_text_encoder(const octet_options* right, int32_t side) {
  for (int32_t old = 0; old < 2; ++old) {
    octet_options options = *right;
    options.text_encoder_linears = OCTET_TEXT_LINEARS_INT8;
    if (old) options.struct_size = offsetof(octet_options, text_encoder_linears);
    octet_engine* engine = NULL;
    CHECK(octet_engine_create(&options, NULL, NULL, &engine) == OCTET_OK);
    octet_request request = new_request(side);
    octet_report report = octet_report_init();
    CHECK(octet_engine_render(engine, &request, NULL, &report) == OCTET_OK);
    CHECK((report.text_linears_int8 > 0) == !old);
    octet_engine_free(engine);
  }
}

int main(int count, char** arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: engine MODEL FOLDER\n");
    return 2;
  }
  octet_options options = octet_options_init();
  options.model = arguments[1];
  options.device = "cpu";
  options.threads = 2;
  options.convention = OCTET_CONVENTION_DIFFUSERS;
  octet_engine* engine = NULL;
  watcher seen = new_watcher(1);
  CHECK(octet_engine_create(&options, on_progress, &seen, &engine) == OCTET_OK);
  CHECK(seen.loads > 0);
  free(seen.last);
  if (engine == NULL) return 1;

  octet_info info = octet_info_init();
  CHECK(octet_engine_info(engine, &info) == OCTET_OK);
  CHECK(info.token_side > 0);
  char text[2000];
  CHECK(octet_engine_text(engine, OCTET_TEXT_FAMILY, text, sizeof text) == strlen("ideogram4"));
  CHECK(strcmp(text, "ideogram4") == 0);
  CHECK(octet_engine_text(engine, OCTET_TEXT_DEVICE, text, sizeof text) > 0);
  CHECK(octet_engine_text(engine, OCTET_TEXT_PLAN, text, sizeof text) > 0);
  CHECK(strstr(text, "transformer") != NULL);
  CHECK(octet_engine_text(engine, OCTET_TEXT_NETWORKS, text, sizeof text) > 0);
  CHECK(strchr(text, '\n') != NULL);
  CHECK(octet_engine_text(engine, OCTET_TEXT_PRESETS, text, sizeof text) > 0);
  CHECK(strcmp(text, "quality\ndefault\nturbo") == 0);

  char file[4096];
  snprintf(file, sizeof file, "%s/c_engine.png", arguments[2]);
  const int32_t side = 4 * info.token_side;
  check_pictures(engine, side, file);
  check_cancelling(engine, side);
  check_wrong_requests(engine, side);
  octet_engine_free(engine);
  check_text_encoder(&options, side);
  check_wrong_options(&options);
  return failures != 0;
}
