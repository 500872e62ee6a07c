// Reading back what picture files say of themselves. The files are strangers': every length is
// checked against what is there, and unpacked texts have a limit.
#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "formats/picture_file.h"
#include "formats/text.h"
#include "formats/xmp.h"

namespace octet {
namespace {

constexpr size_t kMostTextBytes = size_t{16} << 20;  // of all texts of a picture
constexpr std::string_view kPngBegin{"\x89PNG\r\n\x1a\n", 8};
constexpr std::string_view kXmpHeader{"http://ns.adobe.com/xap/1.0/\0", 29};

// Bytes from front to back. Throws Error where there are fewer than are asked for.
class PictureBytes {
 public:
  PictureBytes(std::string_view bytes, const std::string& what) : rest_(bytes), what_(what) {}

  bool is_empty() const { return rest_.empty(); }

  std::string_view take(size_t count) {
    check(count <= rest_.size(), "{}: the picture is cut off or damaged", what_);
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  uint32_t take_big(size_t bytes) {
    uint32_t value = 0;
    for (const char c : take(bytes)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }

  uint32_t take_little(size_t bytes) {
    const std::string_view taken = take(bytes);
    uint32_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }

 private:
  std::string_view rest_;
  const std::string& what_;
};

std::string from_latin1(std::string_view text) {
  std::string utf8;
  for (const char c : text) append_character(static_cast<uint8_t>(c), utf8);
  return utf8;
}

std::string inflated(std::string_view packed, size_t most, const std::string& what) {
  std::string text(std::min<size_t>(most, std::max<size_t>(4 * packed.size(), 1024)), '\0');
  for (;;) {
    uLongf size = text.size();
    const int status = uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                  reinterpret_cast<const Bytef*>(packed.data()), packed.size());
    if (status == Z_OK) {
      text.resize(size);
      return text;
    }
    check(status == Z_BUF_ERROR && text.size() < most, "{}: a text of the picture is damaged: {}",
          what, zError(status));
    text.resize(std::min(most, 4 * text.size()));
  }
}

// What stands before the next NUL, which is taken too.
std::string_view take_name(std::string_view& data, const std::string& what) {
  const size_t end = data.find('\0');
  check(end != data.npos, "{}: a text of the picture is damaged", what);
  const std::string_view name = data.substr(0, end);
  data.remove_prefix(end + 1);
  return name;
}

ImageText png_text(std::string_view type, std::string_view data, size_t most,
                   const std::string& what) {
  ImageText made{.key = from_latin1(take_name(data, what)), .text = {}};
  if (type == "tEXt") {
    made.text = from_latin1(data);
    return made;
  }
  PictureBytes head(data, what);
  bool is_packed = true;
  if (type == "iTXt") is_packed = head.take(1)[0] != 0;
  head.take(1);  // deflate, the one method
  data.remove_prefix(type == "iTXt" ? 2 : 1);
  if (type == "iTXt") {
    take_name(data, what);  // its language
    take_name(data, what);  // the key in that language
  }
  const std::string text = is_packed ? inflated(data, most, what) : std::string(data);
  made.text = type == "zTXt" ? from_latin1(text) : with_replacements(text);
  return made;
}

PictureTexts read_png(PictureBytes file, const std::string& what) {
  PictureTexts found;
  size_t left = kMostTextBytes;
  file.take(kPngBegin.size());
  for (bool ends = false; !ends;) {
    const size_t length = file.take_big(4);
    const std::string_view type = file.take(4);
    const std::string_view data = file.take(length);
    file.take(4);  // the sum of its bytes
    ends = type == "IEND";
    if (type == "IHDR") {
      PictureBytes header(data, what);
      found.width = header.take_big(4);
      found.height = header.take_big(4);
    } else if (type == "tEXt" || type == "zTXt" || type == "iTXt") {
      check(length <= left, "{}: the picture has too much text", what);
      found.texts.push_back(png_text(type, data, left, what));
      left -= std::min(left, found.texts.back().text.size());
    }
  }
  return found;
}

PictureTexts read_jpeg(PictureBytes file, const std::string& what) {
  PictureTexts found;
  file.take(2);
  for (;;) {
    while (file.take_big(1) != 0xff) {
    }
    uint32_t marker = 0xff;
    while (marker == 0xff) marker = file.take_big(1);
    if (marker == 0xda || marker == 0xd9) return found;                  // pixels, the end
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;  // without a length
    const uint32_t length = file.take_big(2);
    check(length >= 2, "{}: the picture is cut off or damaged", what);
    std::string_view data = file.take(length - 2);
    const bool is_frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) {
      PictureBytes frame(data, what);
      frame.take(1);
      found.height = frame.take_big(2);
      found.width = frame.take_big(2);
    } else if (marker == 0xe1 && data.starts_with(kXmpHeader)) {
      found.texts = texts_in_xmp(data.substr(kXmpHeader.size()));
    }
  }
}

PictureTexts read_webp(PictureBytes file, const std::string& what) {
  PictureTexts found;
  file.take(12);
  while (!file.is_empty()) {
    const std::string_view type = file.take(4);
    const size_t length = file.take_little(4);
    const std::string_view data = file.take(length);
    if (length % 2 == 1 && !file.is_empty()) file.take(1);
    if (type == "VP8X" && length >= 10) {
      PictureBytes header(data.substr(4), what);
      found.width = header.take_little(3) + 1;
      found.height = header.take_little(3) + 1;
    } else if (type == "XMP ") {
      found.texts = texts_in_xmp(data);
    }
  }
  return found;
}

}  // namespace

PictureTexts read_picture_texts(std::span<const std::byte> file, const std::string& what) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const PictureBytes reader(bytes, what);
  if (bytes.starts_with(kPngBegin)) return read_png(reader, what);
  if (bytes.starts_with("\xff\xd8\xff")) return read_jpeg(reader, what);
  const bool is_webp = bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP");
  if (is_webp) return read_webp(reader, what);
  fail("{}: is not a PNG, JPEG or WebP file, expected a picture that Octet wrote", what);
}

}  // namespace octet
