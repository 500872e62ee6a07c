// Shapes as users write them.
#include "octet/shapes.h"

#include <charconv>

#include "api/boundary.h"
#include "backend/gemm.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr int64_t kLargest = int64_t{1} << 24;  // m and n

// qkv, o, w1 and w3 side by side, w2 of one DiT block, for a square image without text tokens.
std::vector<GemmShape> ideogram4_shapes(int64_t pixels) {
  constexpr int64_t kTokenPixels = 16;  // 8 of the VAE times a patch of 2
  constexpr int64_t kHidden = 4608;
  constexpr int64_t kFeedForward = 12288;
  check(pixels > 0 && pixels <= 8192 && pixels % kTokenPixels == 0,
        "shapes: ideogram4@{}: expected pixels as a multiple of {} up to 8192", pixels,
        kTokenPixels);
  const int64_t tokens = (pixels / kTokenPixels) * (pixels / kTokenPixels);
  return {
      {tokens, 3 * kHidden, kHidden},
      {tokens, kHidden, kHidden},
      {tokens, 2 * kFeedForward, kHidden, /*gate_up=*/true},
      {tokens, kHidden, kFeedForward},
  };
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string::npos;
       begin = end + 1, end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

int64_t number(const std::string& text, const std::string& item) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool positive = !text.empty() && text[0] != '-';
  check(error != std::errc::result_out_of_range || !positive,
        "shapes: '{}' in '{}' is too large; m and n go up to {}, k up to {}", one_line(text),
        one_line(item), kLargest, kMaxK);
  check(error == std::errc() && end == text.data() + text.size() && value > 0,
        "shapes: '{}' in '{}' is not a positive whole number", one_line(text), one_line(item));
  return value;
}

}  // namespace

std::vector<GemmShape> parse_shapes(const std::string& text) try {
  constexpr const char* kModel = "ideogram4@";
  std::vector<GemmShape> shapes;
  const std::vector<std::string> items = split(text, ';');
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string& item = items[i];
    check(!item.empty() || items.size() == 1,
          "shapes: item {} of '{}' is empty, expected m,n,k or ideogram4@<pixels>; leave out the "
          "';' that is too many",
          i + 1, one_line(text));
    if (item.rfind(kModel, 0) == 0) {
      for (const std::string& pixels : split(item.substr(std::string(kModel).size()), ',')) {
        const auto more = ideogram4_shapes(number(pixels, item));
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
      continue;
    }
    const auto parts = split(item, ',');
    check(parts.size() == 3, "shapes: '{}' is neither m,n,k nor ideogram4@<pixels>",
          one_line(item));
    const GemmShape shape{number(parts[0], item), number(parts[1], item), number(parts[2], item)};
    check(shape.m <= kLargest && shape.n <= kLargest && shape.k <= kMaxK,
          "shapes: '{}' is too large; m and n go up to {}, k up to {}", one_line(item), kLargest,
          kMaxK);
    shapes.push_back(shape);
  }
  return shapes;
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
