// The functions of octet/octet.h that need neither an engine nor a device, and errors.
#include "api/c_api.h"

#include <algorithm>

#include "base/out_of_memory.h"
#include "formats/boundary.h"
#include "formats/png.h"
#include "octet/cancelled.h"
#include "octet/picture.h"
#include "octet/picture_files.h"
#include "octet/version.h"

namespace octet::c_api {
namespace {

struct LastError {
  const char* sentence = "";
  const char* field = "";
  std::string sentence_text, field_text;  // what they point to, unless there was no memory for it

  void set(const char* what, const char* which) noexcept {
    sentence = field = "";
    try {
      sentence_text = what;
      field_text = which;
      sentence = sentence_text.c_str();
      field = field_text.c_str();
    } catch (...) {
      sentence = "out of memory, even for the sentence that says what went wrong";
    }
  }
};

thread_local LastError last_error;

}  // namespace

void forget_error() noexcept { last_error.sentence = last_error.field = ""; }

octet_status keep_error() noexcept {
  try {
    rethrow_as_error();
  } catch (const InvalidRequest& error) {
    last_error.set(error.what(), error.field().c_str());
    return OCTET_INVALID_REQUEST;
  } catch (const Cancelled& error) {
    last_error.set(error.what(), "");
    return OCTET_CANCELLED;
  } catch (const OutOfMemory& error) {
    last_error.set(error.what(), "");
    return OCTET_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error.set(error.what(), "");
  } catch (...) {  // rethrow_as_error() itself found no memory
    last_error.set("an exception of another kind", "");
  }
  return OCTET_ERROR;
}

size_t write_text(const std::string& from, char* text, size_t size) {
  if (size > 0) {
    const size_t copied = std::min(from.size(), size - 1);
    std::memcpy(text, from.data(), copied);
    text[copied] = '\0';
  }
  return from.size();
}

namespace {

// Bytes of an RGB picture.
size_t rgb_bytes(const uint8_t* rgb, int32_t width, int32_t height) {
  check_given(rgb, "rgb");
  check_value(width >= 1, "width", "`width` is {}, expected at least 1", width);
  check_value(height >= 1, "height", "`height` is {}, expected at least 1", height);
  return static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
}

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

int32_t octet_abi_version(void) { return OCTET_ABI_VERSION; }

const char* octet_version(void) {
  static const std::string text = octet::version();
  return text.c_str();
}

const char* octet_commit(void) {
  static const std::string text = octet::commit();
  return text.c_str();
}

const char* octet_last_error(void) { return c_api::last_error.sentence; }

const char* octet_last_error_field(void) { return c_api::last_error.field; }

octet_status octet_write_png(const char* path, const uint8_t* rgb, int32_t width, int32_t height) {
  return c_api::guarded([&] {
    c_api::check_given(path, "path");
    const size_t bytes = c_api::rgb_bytes(rgb, width, height);
    octet::write_png(path, {.pixels = {rgb, bytes}, .width = width, .height = height});
  });
}

octet_status octet_write_picture(const char* path, const octet_picture* picture) {
  return c_api::guarded([&] {
    c_api::check_given(path, "path");
    const octet_picture given = c_api::read_struct(picture, "picture");
    const size_t bytes = c_api::rgb_bytes(given.rgb, given.width, given.height);
    octet::Picture made;
    made.index = given.index;
    made.seed = given.seed;
    made.width = given.width;
    made.height = given.height;
    made.rgb.assign(given.rgb, given.rgb + bytes);
    for (const octet_pair& pair :
         c_api::list_of(given.metadata, given.metadata_count, "metadata")) {
      made.metadata.emplace_back(c_api::text_or(pair.key), c_api::text_or(pair.value));
    }
    octet::write_picture(path, made);
  });
}
