// The engine of octet/octet.h from plain C, with a small model: engine MODEL FOLDER
#include "watcher.h"

// The file has these bytes, which are a PNG, and no longer exists.
static void check_png(const char* path, octet_bytes png) {
  CHECK(png.size > 8 && memcmp(png.data, "\x89PNG\r\n\x1a\n", 8) == 0);
  uint8_t* found = malloc(png.size + 1);
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL && found != NULL);
  if (file == NULL || found == NULL) abort();
  CHECK(fread(found, 1, png.size + 1, file) == png.size);
  CHECK(memcmp(found, png.data, png.size) == 0);
  fclose(file);
  free(found);
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
  check_png(file, seen.png);
  octet_bytes_free(&seen.png);
  CHECK(seen.png.data == NULL && seen.png.size == 0);

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
  octet_picture bare;
  memset(&bare, 0, sizeof bare);
  bare.struct_size = sizeof bare;
  bare.rgb = again.last;
  bare.width = bare.height = side;
  CHECK(octet_encode_picture(&bare, 1, &again.png) == OCTET_OK);
  check_png(file, again.png);
  octet_bytes_free(&again.png);
  free(seen.last);
  free(again.last);
}

static void check_jobs(octet_engine* engine, int32_t side) {
  octet_request request = new_request(side);
  octet_job* job = NULL;
  CHECK(octet_job_create(engine, &request, &job) == OCTET_OK);
  octet_job_info info = octet_job_info_init();
  CHECK(octet_job_describe(job, &info) == OCTET_OK);
  CHECK(info.width == side && info.height == side && info.steps == STEPS);
  CHECK(info.tokens == 16 && info.channels > 0 && info.text_tokens > 0);
  CHECK(octet_engine_warm_up(engine, side, side, 1, NULL) == OCTET_OK);

  watcher seen = new_watcher(side);
  seen.ask = engine;
  seen.job = job;
  seen.preview_every = STEPS;
  const octet_callbacks callbacks = callbacks_of(&seen);
  octet_report report = octet_report_init();
  CHECK(octet_engine_render_job(engine, job, &callbacks, &report) == OCTET_OK);
  CHECK(seen.ask == NULL && seen.pictures == IMAGES && seen.previews == IMAGES);
  CHECK(report.warnings == 0 && seen.warnings == 0);
  octet_estimate estimate = octet_estimate_init();
  CHECK(octet_engine_estimate(engine, job, &estimate) == OCTET_OK && estimate.seconds > 0);
  octet_state state = octet_state_init();
  CHECK(octet_engine_state(engine, &state) == OCTET_OK && state.loaded == 1 && state.busy == 0);
  octet_job_free(job);
  octet_job_free(NULL);

  request.caption = "no caption at all";
  CHECK_FAILS(octet_job_create(engine, &request, &job), OCTET_INVALID_REQUEST, "caption", "");
  CHECK(job == NULL);
  request.any_caption = 1;
  CHECK(render(engine, &request, &seen, &report) == OCTET_OK);
  CHECK(seen.warnings > 0 && report.warnings == seen.warnings);
  free(seen.last);

  const int32_t invalid = OCTET_INVALID_REQUEST;
  octet_engine_text(engine, OCTET_TEXT_BRANCHES, NULL, 0);
  request = new_request(side);
  request.negative = "rain";
  CHECK_FAILS(octet_engine_check(engine, &request), invalid, "negative", "");
  const octet_lora lora = {"no_such_file.safetensors", NULL, 0, 1};
  request = new_request(side);
  request.loras = &lora;
  request.lora_count = request.no_loras = 1;
  CHECK_FAILS(octet_engine_check(engine, &request), invalid, "no_loras", "1");
  request.lora_count = 0;
  CHECK(octet_engine_render(engine, &request, NULL, NULL) == OCTET_OK);
  CHECK_FAILS(octet_engine_render_job(engine, NULL, NULL, NULL), invalid, "job", "NULL");
  CHECK_FAILS(octet_engine_warm_up(engine, side, side, 2, NULL), invalid, "previews", "2");
  CHECK_FAILS(octet_engine_warm_up(engine, side + 1, side, 0, NULL), invalid, "size", "");
}

// One value of one linear: enough to change every pixel.
static void write_lora(const char* path, int32_t width) {
  char header[400];
  const int length =
      snprintf(header, sizeof header,
               "{\"transformer.layers.0.attention.o.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":"
               "[1,%d],\"data_offsets\":[0,%d]},"
               "\"transformer.layers.0.attention.o.lora_B.weight\":{\"dtype\":\"F32\",\"shape\":"
               "[%d,1],\"data_offsets\":[%d,%d]}}",
               width, 4 * width, width, 4 * width, 8 * width);
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL);
  if (file == NULL) abort();
  const uint64_t size = (uint64_t)length;
  fwrite(&size, sizeof size, 1, file);
  fwrite(header, 1, (size_t)length, file);
  for (int32_t i = 0; i < 2 * width; ++i) {
    const float value = 1;
    fwrite(&value, sizeof value, 1, file);
  }
  CHECK(fclose(file) == 0);
}

// Chosen by a request, a LoRA changes its pictures and those of no other request.
static void check_loras(octet_engine* engine, int32_t side, const char* path) {
  write_lora(path, 32);  // as wide as the model
  const octet_lora lora = {path, NULL, 0, 1};
  uint8_t* pictures[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    octet_request request = new_request(side);
    watcher seen = new_watcher(side);
    if (i == 1) {
      request.loras = &lora;
      request.lora_count = 1;
    }
    CHECK(render(engine, &request, &seen, NULL) == OCTET_OK);
    pictures[i] = seen.last;
  }
  const size_t bytes = (size_t)(3 * side * side);
  CHECK(memcmp(pictures[0], pictures[1], bytes) != 0);
  CHECK(memcmp(pictures[0], pictures[2], bytes) == 0);
  for (int i = 0; i < 3; ++i) free(pictures[i]);
  CHECK(remove(path) == 0);
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
  CHECK(octet_stop_create(&seen.stop) == OCTET_OK);
  octet_request stoppable = request;
  stoppable.stop = seen.stop;
  seen.steps = 0;
  CHECK_FAILS(render(engine, &stoppable, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.steps == 1 && seen.pictures == 0);
  // Requested before the call, it is not lost.
  CHECK_FAILS(render(engine, &stoppable, &seen, NULL), OCTET_CANCELLED, "", "");
  CHECK(seen.steps == 1);
  octet_stop_free(seen.stop);
  seen.stop = NULL;
  CHECK(render(engine, &request, &seen, NULL) == OCTET_OK);
  octet_engine_cancel(engine);  // nothing is under way
  CHECK(render(engine, &request, &seen, NULL) == OCTET_OK);
  free(seen.last);
}

static void on_preset(void* user, const octet_preset* preset) {
  CHECK(preset->name[0] != '\0' && preset->steps > 0);
  ++*(int*)user;
}

// A model that is released and loaded again, and loading that is stopped from outside.
static void check_loading(const octet_options* options, octet_engine* engine, int32_t side) {
  const octet_request request = new_request(side);
  CHECK(octet_engine_unload(engine) == OCTET_OK);
  CHECK_FAILS(octet_engine_render(engine, &request, NULL, NULL), OCTET_ERROR, "", "load");
  octet_info info = octet_info_init();
  CHECK_FAILS(octet_engine_info(engine, &info), OCTET_ERROR, "", "load");
  octet_state state = octet_state_init();
  CHECK(octet_engine_state(engine, &state) == OCTET_OK && state.loaded == 0 && state.busy == 0);
  octet_options stopped = *options;
  CHECK(octet_stop_create(&stopped.stop) == OCTET_OK);
  octet_stop_request(stopped.stop);
  CHECK_FAILS(octet_engine_load(engine, &stopped, NULL, NULL), OCTET_CANCELLED, "", "");
  octet_engine* another = NULL;
  CHECK_FAILS(octet_engine_create(&stopped, NULL, NULL, &another), OCTET_CANCELLED, "", "");
  CHECK(another == NULL);
  octet_stop_free(stopped.stop);
  octet_stop_free(NULL);
  octet_stop_request(NULL);
  CHECK_FAILS(octet_stop_create(NULL), OCTET_INVALID_REQUEST, "stop", "NULL");
  CHECK(octet_engine_load(engine, options, NULL, NULL) == OCTET_OK);
  CHECK(octet_engine_render(engine, &request, NULL, NULL) == OCTET_OK);
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
#if !OCTET_HAS_UTF8PROC
  return SKIPPED("this build has no utf8proc");
#endif
  const octet_options options = new_options(arguments[1]);
  octet_engine* engine = NULL;
  watcher seen = new_watcher(1);
  CHECK(octet_engine_create(&options, on_progress, &seen, &engine) == OCTET_OK);
  CHECK(seen.loads > 0);
  free(seen.last);
  if (engine == NULL) return 1;

  octet_info info = octet_info_init();
  CHECK(octet_engine_info(engine, &info) == OCTET_OK);
  CHECK(info.token_side > 0 && info.width > 0 && info.width % info.token_side == 0);
  CHECK(info.height > 0 && info.height % info.token_side == 0);
  int presets = 0;
  CHECK(octet_engine_presets(engine, on_preset, &presets) == OCTET_OK && presets == 3);
  CHECK_FAILS(octet_engine_presets(engine, NULL, NULL), OCTET_INVALID_REQUEST, "on_preset", "NULL");
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
  check_jobs(engine, side);
  snprintf(file, sizeof file, "%s/c_engine_lora.safetensors", arguments[2]);
  check_loras(engine, side, file);
  check_cancelling(engine, side);
  check_loading(&options, engine, side);
  octet_engine_free(engine);
  check_text_encoder(&options, side);
  return failures != 0;
}
