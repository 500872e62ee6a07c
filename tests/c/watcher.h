// What tests of the engine share: a caption, callbacks that count, and requests for a small model.
#ifndef OCTET_TESTS_C_WATCHER_H
#define OCTET_TESTS_C_WATCHER_H

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
  octet_stop* stop;      // requested there
  octet_engine* ask;     // from another thread, at the first step: what never waits
  const octet_job* job;  // to ask about
  int preview_every, warnings;
  uint8_t* last;     // the last picture
  const char* file;  // for it, or NULL
  octet_bytes png;   // the same
  uint64_t seeds[IMAGES];
} watcher;

static inline void* cancel_it(void* watching) {
  watcher* seen = watching;
  octet_engine_cancel(seen->cancel);
  octet_stop_request(seen->stop);
  return NULL;
}

// While the engine renders: none of this waits for it.
static inline void* ask_it(void* watching) {
  watcher* seen = watching;
  octet_request request = octet_request_init();
  request.caption = kCaption;
  CHECK(octet_engine_check(seen->ask, &request) == OCTET_OK);
  octet_estimate estimate = octet_estimate_init();
  CHECK(octet_engine_estimate(seen->ask, seen->job, &estimate) == OCTET_OK);
  CHECK(estimate.device_bytes + estimate.host_bytes > 0);
  octet_state state = octet_state_init();
  CHECK(octet_engine_state(seen->ask, &state) == OCTET_OK);
  CHECK(state.loaded == 1 && state.busy == 1 && state.total > 0);
  return NULL;
}

static inline void on_warning(void* user, const char* sentence) {
  watcher* seen = user;
  CHECK(sentence[0] != '\0');
  ++seen->warnings;
}

static inline int on_progress(void* user, const octet_progress* progress) {
  watcher* seen = user;
  CHECK(progress->struct_size == sizeof *progress);
  CHECK(progress->done >= 0 && progress->done <= progress->total);
  if (progress->stage == OCTET_STAGE_TEXT) ++seen->texts;
  if (progress->stage == OCTET_STAGE_LOAD) ++seen->loads;
  if (progress->stage == OCTET_STAGE_DECODE) ++seen->decodes;
  if (progress->stage != OCTET_STAGE_DENOISE) return 0;
  ++seen->steps;
  if (seen->cancel != NULL || seen->stop != NULL) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_it, seen) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  if (seen->ask != NULL) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ask_it, seen) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    seen->ask = NULL;
  }
  return seen->steps == seen->stop_at_step;
}

static inline int on_preview(void* user, const octet_preview* preview) {
  watcher* seen = user;
  CHECK(preview->rgb != NULL && preview->width > 0 && preview->height > 0);
  CHECK(preview->step >= 1 && preview->step <= preview->steps && preview->steps == STEPS);
  return ++seen->previews == seen->stop_at_preview;
}

static inline int on_picture(void* user, const octet_picture* picture) {
  watcher* seen = user;
  CHECK(picture->width == seen->side && picture->height == seen->side);
  CHECK(picture->index >= 0 && picture->index < IMAGES && picture->metadata_count > 3);
  seen->seeds[picture->index] = picture->seed;
  memcpy(seen->last, picture->rgb, (size_t)(3 * seen->side * seen->side));
  if (seen->file != NULL) {
    CHECK(octet_write_picture(seen->file, picture) == OCTET_OK);
    octet_bytes_free(&seen->png);
    CHECK(octet_encode_picture(picture, 0, &seen->png) == OCTET_OK);
  }
  return ++seen->pictures == seen->stop_at_picture;
}

static inline watcher new_watcher(int32_t side) {
  watcher made;
  memset(&made, 0, sizeof made);
  made.side = side;
  made.last = calloc((size_t)(3 * side * side), 1);
  if (made.last == NULL) abort();
  return made;
}

static inline octet_request new_request(int32_t side) {
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

static inline octet_callbacks callbacks_of(watcher* seen) {
  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.user = seen;
  callbacks.progress = on_progress;
  callbacks.preview = on_preview;
  callbacks.picture = on_picture;
  callbacks.warning = on_warning;
  callbacks.preview_every = seen->preview_every;
  return callbacks;
}

static inline octet_status render(octet_engine* engine, const octet_request* request, watcher* seen,
                                  octet_report* report) {
  const octet_callbacks callbacks = callbacks_of(seen);
  return octet_engine_render(engine, request, &callbacks, report);
}

static inline octet_options new_options(const char* model) {
  octet_options options = octet_options_init();
  options.model = model;
  options.device = "cpu";
  options.threads = 2;
  options.convention = OCTET_CONVENTION_DIFFUSERS;
  return options;
}

#endif
