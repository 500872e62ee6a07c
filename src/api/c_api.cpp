// The functions of octet/octet.h that need neither an engine nor a device, and errors.
#include "api/c_api.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "base/never_destroyed.h"
#include "base/out_of_memory.h"
#include "base/per_thread.h"
#include "formats/boundary.h"
#include "formats/image.h"
#include "formats/png.h"
#include "formats/text.h"
#include "octet/caption.h"
#include "octet/devices.h"
#include "octet/error.h"
#include "octet/picture.h"
#include "octet/picture_files.h"
#include "octet/version.h"

namespace octet::c_api {
namespace {

// Has room for every sentence: memory may be what is missing.
struct LastError {
  char sentence[4096] = "";
  char field[64] = "";

  void set(std::string_view what, std::string_view which) noexcept {
    write(sentence, what);
    write(field, which);
  }

 private:
  template <size_t size>
  static void write(char (&into)[size], std::string_view from) noexcept {
    const std::string_view fits = first_bytes(from, size - 1);
    fits.copy(into, fits.size());
    into[fits.size()] = '\0';
  }
};

// That of threads which had no memory for their own.
LastError no_memory = {.sentence = "out of memory; close programs or use a smaller problem"};

constinit ThreadPointer<LastError> last_errors([](void* value) {
  if (value != &no_memory) delete static_cast<LastError*>(value);
});

LastError* new_last_error() noexcept {
  LastError* const made = prepare_to_throw() ? new (std::nothrow) LastError : nullptr;
  if (made != nullptr && last_errors.set(made)) return made;
  delete made;
  last_errors.set(&no_memory);
  return nullptr;
}

void set_last_error(std::string_view what, std::string_view which = "") noexcept {
  last_errors.get()->set(what, which);
}

const LastError& last_error() noexcept {
  static constexpr LastError none;
  const LastError* const of_thread = last_errors.get();
  return of_thread != nullptr ? *of_thread : none;
}

}  // namespace

bool forget_error() noexcept {
  LastError* of_thread = last_errors.get();
  if (of_thread == nullptr || of_thread == &no_memory) of_thread = new_last_error();
  if (of_thread == nullptr) return false;
  of_thread->set("", "");
  return true;
}

octet_status keep_error() noexcept {
  try {
    rethrow_as_error();
  } catch (const InvalidRequest& error) {
    set_last_error(error.what(), error.field());
    return OCTET_INVALID_REQUEST;
  } catch (const Cancelled& error) {
    set_last_error(error.what());
    return OCTET_CANCELLED;
  } catch (const OutOfMemory& error) {
    set_last_error(error.what());
    return OCTET_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_error(error.what());
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
  check_value(width >= 1 && width <= kLargestImageSide, "width", "`width` is {}, expected 1 to {}",
              width, kLargestImageSide);
  check_value(height >= 1 && height <= kLargestImageSide, "height",
              "`height` is {}, expected 1 to {}", height, kLargestImageSide);
  return static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
}

Picture picture_of(const octet_picture& given) {
  check_reserved(given.reserved);
  const size_t bytes = rgb_bytes(given.rgb, given.width, given.height);
  Picture made;
  made.index = given.index;
  made.seed = given.seed;
  made.width = given.width;
  made.height = given.height;
  made.rgb.assign(given.rgb, given.rgb + bytes);
  for (const octet_pair& pair : list_of(given.metadata, given.metadata_count, "metadata")) {
    check_value(pair.key != nullptr && pair.value != nullptr, "metadata",
                "one of the `metadata` has no key or no value");
    made.metadata.emplace_back(pair.key, pair.value);
  }
  return made;
}

Preview preview_of(const octet_preview& given) {
  check_reserved(given.reserved);
  const size_t bytes = rgb_bytes(given.rgb, given.width, given.height);
  Preview made;
  made.width = given.width;
  made.height = given.height;
  made.rgb.assign(given.rgb, given.rgb + bytes);
  return made;
}

// A copy that octet_bytes_free() frees.
octet_bytes bytes_of(const std::vector<uint8_t>& from) {
  octet_bytes made = {new uint8_t[from.size()], from.size()};
  std::ranges::copy(from, made.data);
  return made;
}

// The caption as it is passed to the model.
std::string checked_caption(const char* caption, octet_on_finding on_finding, void* user) {
  const CaptionReport report = check_caption(caption);
  const CaptionFinding* unfixable = nullptr;
  for (const CaptionFinding& finding : report.findings) {
    const bool is_error = finding.severity == CaptionFinding::Severity::error;
    if (is_error && !finding.fixable && unfixable == nullptr) unfixable = &finding;
    const octet_finding given = {.struct_size = sizeof(octet_finding),
                                 .path = finding.path.c_str(),
                                 .rule = finding.rule.text().c_str(),
                                 .is_error = is_error,
                                 .fixable = finding.fixable};
    if (on_finding != nullptr) on_finding(user, &given);
  }
  if (unfixable != nullptr) {
    check_value(false, "caption", "{}: {}", unfixable->path, unfixable->rule);
  }
  return report.canonical;
}

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

int32_t octet_abi_version(void) { return OCTET_ABI_VERSION; }

const char* octet_version(void) {
  static const auto& text = octet::never_destroyed<std::string>(octet::version());
  return text.c_str();
}

const char* octet_commit(void) {
  static const auto& text = octet::never_destroyed<std::string>(octet::commit());
  return text.c_str();
}

const char* octet_last_error(void) { return c_api::last_error().sentence; }

const char* octet_last_error_field(void) { return c_api::last_error().field; }

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
    octet::write_picture(path, c_api::picture_of(c_api::read_struct(picture, "picture")));
  });
}

octet_status octet_encode_picture(const octet_picture* picture, int32_t level, octet_bytes* png) {
  if (png != nullptr) *png = {};
  return c_api::guarded([&] {
    c_api::check_given(png, "png");
    const octet::Picture made = c_api::picture_of(c_api::read_struct(picture, "picture"));
    *png = c_api::bytes_of(octet::encode_png(made, level == 0 ? 1 : level));
  });
}

octet_status octet_encode_preview(const octet_preview* preview, int32_t scale, octet_bytes* png) {
  if (png != nullptr) *png = {};
  return c_api::guarded([&] {
    c_api::check_given(png, "png");
    const octet::Preview made = c_api::preview_of(c_api::read_struct(preview, "preview"));
    *png = c_api::bytes_of(octet::encode_png(made, scale == 0 ? 1 : scale));
  });
}

void octet_bytes_free(octet_bytes* bytes) {
  if (bytes == nullptr) return;
  delete[] bytes->data;
  *bytes = {};
}

size_t octet_check_caption(const char* caption, octet_on_finding on_finding, void* user, char* text,
                           size_t size) {
  return c_api::guarded_text(text, size, [&] {
    c_api::check_given(caption, "caption");
    return c_api::checked_caption(caption, on_finding, user);
  });
}

size_t octet_wrap_plain_text(const char* plain_text, char* text, size_t size) {
  return c_api::guarded_text(text, size, [&] {
    c_api::check_given(plain_text, "plain_text");
    return octet::wrap_plain_text(plain_text);
  });
}

octet_status octet_list_devices(octet_on_device on_device, void* user) {
  return c_api::guarded([&] {
    octet::check_value(on_device != nullptr, "on_device", "`on_device` is NULL");
    for (const octet::DeviceInfo& device : octet::list_devices()) {
      const octet_device_info given = {.struct_size = sizeof(octet_device_info),
                                       .name = device.name.c_str(),
                                       .description = device.description.c_str(),
                                       .int8_kernel = device.int8_kernel.c_str(),
                                       .unavailable = device.unavailable.c_str()};
      on_device(user, &given);
    }
  });
}
