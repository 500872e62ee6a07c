// Renders a picture: picture MODEL OUT.png
#include <stdio.h>

#include "octet/octet.h"

static int on_progress(void* path, const octet_progress* progress) {
  static const char* const stages[] = {"text", "load", "denoise", "decode"};
  (void)path;
  fprintf(stderr, "%s %lld of %lld\n", stages[progress->stage], (long long)progress->done,
          (long long)progress->total);
  return 0;  // anything else ends the work
}

static int on_picture(void* path, const octet_picture* picture) {
  if (octet_write_picture(path, picture) == OCTET_OK) return 0;
  fprintf(stderr, "picture: %s\n", octet_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: picture MODEL OUT.png\n");
    return 2;
  }
  octet_options options = octet_options_init();
  options.model = argv[1];

  octet_request request = octet_request_init();
  request.caption =
      "{\"high_level_description\": \"A calm sea at dusk.\","
      " \"compositional_deconstruction\": {\"background\": \"A calm sea.\", \"elements\": []}}";
  request.width = request.height = 512;
  request.preset = "turbo";
  request.seed = 7;

  octet_callbacks callbacks = octet_callbacks_init();
  callbacks.user = argv[2];
  callbacks.progress = on_progress;
  callbacks.picture = on_picture;

  octet_engine* engine = NULL;
  octet_status status = octet_engine_create(&options, on_progress, NULL, &engine);
  if (status == OCTET_OK) status = octet_engine_render(engine, &request, &callbacks, NULL);
  if (status != OCTET_OK) fprintf(stderr, "picture: %s\n", octet_last_error());
  octet_engine_free(engine);
  return status != OCTET_OK;
}
