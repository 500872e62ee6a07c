// What octet/octet.h has for programs that load no model: PNG in memory, captions, devices.
#include "check.h"

static const char* const kCaption =
    "{\"high_level_description\": \"A calm sea at dusk.\", \"compositional_deconstruction\": "
    "{\"background\": \"A calm sea at dusk.\", \"elements\": []}}";

// Previews as large pictures: the same file as one of the large pixels.
static void check_preview_png(void) {
  const uint8_t small[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  uint8_t large[4 * 4 * 3];
  for (int i = 0; i < 4 * 4 * 3; ++i) {
    const int y = i / 12, x = i / 3 % 4;
    large[i] = small[3 * (y / 2 * 2 + x / 2) + i % 3];
  }
  octet_preview preview;
  memset(&preview, 0, sizeof preview);
  preview.struct_size = sizeof preview;
  preview.rgb = small;
  preview.width = preview.height = 2;
  octet_picture picture;
  memset(&picture, 0, sizeof picture);
  picture.struct_size = sizeof picture;
  picture.rgb = large;
  picture.width = picture.height = 4;
  octet_bytes enlarged, expected, plain;
  CHECK(octet_encode_preview(&preview, 2, &enlarged) == OCTET_OK);
  CHECK(octet_encode_picture(&picture, 1, &expected) == OCTET_OK);
  CHECK(enlarged.size == expected.size);
  CHECK(memcmp(enlarged.data, expected.data, expected.size) == 0);
  CHECK(octet_encode_preview(&preview, 0, &plain) == OCTET_OK);
  CHECK(plain.size > 24 && plain.data[19] == 2 && plain.data[23] == 2);
  octet_bytes_free(&enlarged);
  octet_bytes_free(&expected);
  octet_bytes_free(&plain);
  octet_bytes_free(&plain);
  octet_bytes_free(NULL);
  CHECK_FAILS(octet_encode_preview(&preview, -1, &plain), OCTET_INVALID_REQUEST, "scale", "-1");
  CHECK_FAILS(octet_encode_picture(&picture, 10, &plain), OCTET_INVALID_REQUEST, "level", "10");
  CHECK_FAILS(octet_encode_picture(NULL, 1, &plain), OCTET_INVALID_REQUEST, "picture", "NULL");
  CHECK_FAILS(octet_encode_picture(&picture, 1, NULL), OCTET_INVALID_REQUEST, "png", "NULL");
  picture.width = picture.height = INT32_MAX;
  CHECK_FAILS(octet_encode_picture(&picture, 1, &plain), OCTET_INVALID_REQUEST, "width", "2147");
  picture.width = picture.height = 4;
  octet_pair text = {"key", NULL};
  picture.metadata = &text;
  picture.metadata_count = SIZE_MAX;
  CHECK_FAILS(octet_encode_picture(&picture, 1, &plain), OCTET_INVALID_REQUEST, "metadata", "most");
  picture.metadata_count = SIZE_MAX / sizeof text + 2;  // the bytes of one
  CHECK_FAILS(octet_encode_picture(&picture, 1, &plain), OCTET_INVALID_REQUEST, "metadata", "most");
  picture.metadata_count = 1;
  CHECK_FAILS(octet_encode_picture(&picture, 1, &plain), OCTET_INVALID_REQUEST, "metadata", "no");
  picture.metadata_count = 0;
  picture.reserved = preview.reserved = 1;
  CHECK_FAILS(octet_encode_picture(&picture, 1, &plain), OCTET_INVALID_REQUEST, "reserved", "1");
  CHECK_FAILS(octet_encode_preview(&preview, 1, &plain), OCTET_INVALID_REQUEST, "reserved", "1");
  CHECK(plain.data == NULL && plain.size == 0);
}

typedef struct {
  int errors, warnings, fixable;
} findings;

static void on_finding(void* user, const octet_finding* finding) {
  findings* seen = user;
  CHECK(finding->path[0] == '$' && finding->rule[0] != '\0');
  *(finding->is_error ? &seen->errors : &seen->warnings) += 1;
  seen->fixable += finding->fixable;
}

static void check_captions(void) {
  char text[1000], wrapped[1000];
  findings seen = {0, 0, 0};
  const size_t length = octet_check_caption(kCaption, on_finding, &seen, text, sizeof text);
  CHECK(length == strlen(text) && length > 50 && seen.errors == 0);
  CHECK(octet_check_caption(kCaption, NULL, NULL, NULL, 0) == length);
  CHECK(octet_check_caption("{\"elements\": 3}", on_finding, &seen, text, sizeof text) == 0);
  CHECK(seen.errors > 0 && text[0] == '\0' && strcmp(octet_last_error_field(), "caption") == 0);
  CHECK(octet_check_caption(NULL, NULL, NULL, text, sizeof text) == 0);
  CHECK(strstr(octet_last_error(), "NULL") != NULL);
  CHECK(octet_wrap_plain_text("A calm sea.", wrapped, sizeof wrapped) == strlen(wrapped));
  CHECK(strstr(wrapped, "A calm sea.") != NULL);
  CHECK(octet_check_caption(wrapped, NULL, NULL, text, sizeof text) > 0);
  CHECK(octet_wrap_plain_text("", wrapped, sizeof wrapped) == 0);
}

static void on_device(void* user, const octet_device_info* device) {
  CHECK(device->description[0] != '\0' || device->unavailable[0] != '\0');
  if (strcmp(device->name, "cpu") == 0 && device->int8_kernel[0] != '\0') ++*(int*)user;
}

int main(void) {
  check_preview_png();
  check_captions();
  int cpus = 0;
  CHECK(octet_list_devices(on_device, &cpus) == OCTET_OK && cpus == 1);
  CHECK_FAILS(octet_list_devices(NULL, NULL), OCTET_INVALID_REQUEST, "on_device", "NULL");
  return failures != 0;
}
