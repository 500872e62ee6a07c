#include "formats/jpeg.h"

#include "base/error.h"
#include "formats/xmp.h"

#if OCTET_HAS_JPEG
// clang-format off
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
#include <new>
#include <string_view>

namespace octet {
namespace {

constexpr int64_t kLargestJpegSide = JPEG_MAX_DIMENSION;
constexpr size_t kJpegBlockBytes = 1 << 18;
constexpr size_t kMarkerBytes = 65'533;  // a marker's length has 16 bits and counts itself
constexpr std::string_view kXmpMarker{"http://ns.adobe.com/xap/1.0/\0", 29};

// libjpeg reports errors by a function that must not return, and whose caller is C: a jump it is.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char sentence[JMSG_LENGTH_MAX];
};

void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->sentence);
  std::longjmp(errors->jump, 1);
}

void say_nothing(j_common_ptr) {}

struct JpegOutput {
  jpeg_destination_mgr base;
  std::vector<uint8_t>* bytes;
};

// Makes room for another block behind `used` bytes.
void add_block(j_compress_ptr info, size_t used) {
  auto* output = reinterpret_cast<JpegOutput*>(info->dest);
  bool has_room = true;
  try {
    output->bytes->resize(used + kJpegBlockBytes);
  } catch (const std::bad_alloc&) {
    has_room = false;  // no exception may pass through C
  }
  if (!has_room) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
  output->base.next_output_byte = output->bytes->data() + used;
  output->base.free_in_buffer = kJpegBlockBytes;
}

void begin_output(j_compress_ptr info) { add_block(info, 0); }

boolean continue_output(j_compress_ptr info) {
  add_block(info, reinterpret_cast<JpegOutput*>(info->dest)->bytes->size());
  return TRUE;
}

void end_output(j_compress_ptr info) {
  auto* output = reinterpret_cast<JpegOutput*>(info->dest);
  output->bytes->resize(output->bytes->size() - output->base.free_in_buffer);
}

struct JpegJob {
  const ImageView& image;
  const std::string& marker;
  int quality;
};

// False after an error. Only plain data lives here: a jump calls no destructor.
bool compress(const JpegJob& job, std::vector<uint8_t>& out, JpegErrors& errors) {
  jpeg_compress_struct info = {};
  JpegOutput output = {};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.output_message = say_nothing;
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  output.bytes = &out;
  output.base.init_destination = begin_output;
  output.base.empty_output_buffer = continue_output;
  output.base.term_destination = end_output;
  info.dest = &output.base;
  info.image_width = static_cast<JDIMENSION>(job.image.width);
  info.image_height = static_cast<JDIMENSION>(job.image.height);
  info.input_components = job.image.channels;
  info.in_color_space = job.image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, job.quality, TRUE);
  info.optimize_coding = TRUE;
  // Colours at half the resolution, libjpeg's default, blur the edges of coloured letters.
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  if (!job.marker.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(job.marker.data()),
                      static_cast<unsigned>(job.marker.size()));
  }
  while (info.next_scanline < info.image_height) {
    const size_t row_bytes = static_cast<size_t>(info.image_width) * job.image.channels;
    auto* row = const_cast<JSAMPLE*>(job.image.pixels.data() + info.next_scanline * row_bytes);
    jpeg_write_scanlines(&info, &row, 1);  // only read
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const ImageView& image, const std::vector<ImageText>& texts,
                                 int quality) {
  check_image(image, "JPEG", kLargestJpegSide);
  check(image.channels != 4, "JPEG: the image has 4 channels, expected 1 or 3");
  std::string marker;
  if (!texts.empty()) marker = std::string(kXmpMarker) + xmp_packet(texts);
  check(marker.size() <= kMarkerBytes,
        "JPEG: the picture's texts have {} bytes, expected at most {}; write a PNG", marker.size(),
        kMarkerBytes);
  std::vector<uint8_t> bytes;
  JpegErrors errors = {};
  if (compress({image, marker, quality}, bytes, errors)) return bytes;
  if (errors.base.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
  fail("JPEG: libjpeg failed: {}", errors.sentence);
}

}  // namespace octet

#else

namespace octet {

std::vector<uint8_t> encode_jpeg(const ImageView&, const std::vector<ImageText>&, int) {
  fail(
      "this build has no libjpeg; write a .png, or build again with libjpeg-dev installed and "
      "OCTET_PICTURE_FORMATS on");
}

}  // namespace octet

#endif
