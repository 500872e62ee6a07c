#include "formats/png.h"

#include <zlib.h>

#include <new>
#include <optional>
#include <string_view>

#include "base/atomic_file.h"
#include "base/invalid_request.h"
#include "formats/png_rows.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr size_t kCompressedTextBytes = 1024;  // from here on, text is worth compressing
constexpr size_t kDataChunkBytes = 1 << 18;

using Bytes = std::vector<uint8_t>;

void append(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

void append_number(Bytes& out, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<uint8_t>(value >> shift));
}

void append_chunk(Bytes& out, std::string_view type, std::span<const uint8_t> data) {
  append_number(out, static_cast<uint32_t>(data.size()));
  const size_t begin = out.size();
  append(out, type);
  out.insert(out.end(), data.begin(), data.end());
  append_number(out, static_cast<uint32_t>(crc32_z(0, out.data() + begin, out.size() - begin)));
}

// Compresses rows into chunks of data.
class PngData {
 public:
  PngData(Bytes& out, int level) : out_(out) {
    // Noise is what is left of a picture's smooth parts: short matches in it cost more bits and
    // time than they save. Runs alone make smaller files of pictures than zlib's level 6, in a
    // tenth of its time; only drawings and letters gain by a search for more.
    const int strategy = level == kFastPngLevel ? Z_RLE : Z_FILTERED;
    const int status = deflateInit2(&stream_, level, Z_DEFLATED, 15, 8, strategy);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    check(status == Z_OK, "PNG: zlib cannot be set up: {}", zError(status));
    start_buffer();
  }
  ~PngData() { deflateEnd(&stream_); }
  PngData(const PngData&) = delete;
  PngData& operator=(const PngData&) = delete;

  void add(std::span<const uint8_t> row) {
    stream_.next_in = const_cast<Bytef*>(row.data());  // only read
    stream_.avail_in = static_cast<uInt>(row.size());
    while (stream_.avail_in > 0) run(Z_NO_FLUSH);
  }

  void finish() {
    while (run(Z_FINISH) != Z_STREAM_END) {
    }
    write_chunk();
  }

 private:
  void start_buffer() {
    stream_.next_out = buffer_.data();
    stream_.avail_out = static_cast<uInt>(buffer_.size());
  }

  int run(int flush) {
    const int status = deflate(&stream_, flush);
    check(status == Z_OK || status == Z_STREAM_END, "PNG: zlib failed: {}", zError(status));
    if (stream_.avail_out == 0) write_chunk();
    return status;
  }

  void write_chunk() {
    const size_t bytes = buffer_.size() - stream_.avail_out;
    if (bytes > 0) append_chunk(out_, "IDAT", std::span(buffer_).first(bytes));
    start_buffer();
  }

  Bytes& out_;
  Bytes buffer_ = Bytes(kDataChunkBytes);
  z_stream stream_ = {};
};

// Latin-1 without control characters, except for the line feed; nothing when a character is not.
std::optional<std::string> to_latin1(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const bool printable = point.value == '\n' || (point.value >= 0x20 && point.value < 0x7f) ||
                           (point.value >= 0xa0 && point.value <= 0xff);
    if (point.length == 0 || !printable) return std::nullopt;
    result += static_cast<char>(point.value);
    text.remove_prefix(point.length);
  }
  return result;
}

std::string checked_key(const std::string& key) {
  const auto latin1 = to_latin1(key);
  const bool usable = latin1 && !latin1->empty() && latin1->size() <= 79 &&
                      latin1->find_first_of("\n\xa0") == std::string::npos &&
                      latin1->front() != ' ' && latin1->back() != ' ' &&
                      latin1->find("  ") == std::string::npos;
  check(usable,
        "PNG: the text key {} is not allowed; expected 1 to 79 printable Latin-1 characters "
        "without leading, trailing or double spaces",
        Quoted{key});
  return *latin1;
}

void append_deflated(Bytes& out, std::string_view text) {
  const size_t begin = out.size();
  uLongf bytes = compressBound(text.size());
  out.resize(begin + bytes);
  const int status = compress(out.data() + begin, &bytes,
                              reinterpret_cast<const Bytef*>(text.data()), text.size());
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  check(status == Z_OK, "PNG: zlib cannot compress a text: {}", zError(status));
  out.resize(begin + bytes);
}

void append_text(Bytes& out, const ImageText& text) {
  using namespace std::string_view_literals;
  Bytes data;
  append(data, checked_key(text.key));
  check(text.text.find('\0') == std::string::npos && is_utf8(text.text),
        "PNG: the text of {} has a NUL byte or is not UTF-8", Quoted{text.key});
  const auto latin1 = to_latin1(text.text);
  const std::string& stored = latin1 ? *latin1 : text.text;
  const bool is_long = text.text.size() >= kCompressedTextBytes;
  std::string_view type = "tEXt";
  if (!latin1) {
    type = "iTXt";  // whether it is compressed, with deflate; no language, no translated key
    append(data, is_long ? "\0\1\0\0\0"sv : "\0\0\0\0\0"sv);
  } else if (is_long) {
    type = "zTXt";
    append(data, "\0\0"sv);  // with deflate
  } else {
    append(data, "\0"sv);
  }
  if (is_long) {
    append_deflated(data, stored);
  } else {
    append(data, stored);
  }
  check(data.size() <= INT32_MAX, "PNG: the text of {} has {} bytes, expected at most {}",
        in_quotes(text.key), text.text.size(), INT32_MAX);
  append_chunk(out, type, data);
}

}  // namespace

std::vector<uint8_t> encode_png(const ImageView& image, const std::vector<ImageText>& texts,
                                int level) {
  check_image(image);
  check_value(level >= kFastPngLevel && level <= kSmallPngLevel, "level",
              "PNG: `level` is {}, expected {} to {}", level, kFastPngLevel, kSmallPngLevel);
  using namespace std::string_view_literals;
  Bytes out;
  append(out, "\x89PNG\r\n\x1a\n"sv);

  Bytes header;
  append_number(header, static_cast<uint32_t>(image.width));
  append_number(header, static_cast<uint32_t>(image.height));
  append(header, image.channels == 1 ? "\x8\0"sv : image.channels == 3 ? "\x8\2"sv : "\x8\6"sv);
  append(header, "\0\0\0"sv);  // deflate, the five filters, rows in their order
  append_chunk(out, "IHDR", header);
  append_chunk(out, "sRGB", Bytes{0});  // perceptual
  for (const ImageText& text : texts) append_text(out, text);

  const auto row_bytes = static_cast<size_t>(image.width * image.channels);
  PngRows rows(row_bytes, static_cast<size_t>(image.channels));
  PngData data(out, level);
  for (size_t at = 0; at < image.pixels.size(); at += row_bytes) {
    data.add(rows.filtered(image.pixels.subspan(at, row_bytes)));
  }
  data.finish();
  append_chunk(out, "IEND", {});
  return out;
}

void write_png(const std::string& path, const ImageView& image,
               const std::vector<ImageText>& texts) {
  AtomicFile file(path);
  const std::vector<uint8_t> png = encode_png(image, texts);
  file.write(std::as_bytes(std::span(png)));
  file.commit();
}

}  // namespace octet
