// Shapes as users write them.
#include "octet/tools/shapes.h"

#include <charconv>

#include "backend/gemm.h"
#include "base/error.h"
#include "formats/boundary.h"
#include "formats/text.h"
#include "models/block_shape.h"

namespace octet {
namespace {

constexpr int64_t kLargest = int64_t{1} << 24;  // m and n

// The large linears of one block of its first network, for a square image and its text.
std::vector<GemmShape> shapes_of(const models::Family& family, int64_t pixels,
                                 int64_t text_tokens) {
  const int64_t side = family.sizes.token_side;
  check(pixels > 0 && pixels <= models::kLongestSide && pixels % side == 0,
        "shapes: {}@{}: expected pixels as a multiple of {} up to {}", family.name, pixels, side,
        models::kLongestSide);
  std::vector<GemmShape> shapes;
  for (const nn::LinearSpec& spec : models::block_shape(family).linears) {
    shapes.push_back(models::shape_of(spec, models::image_tokens(family, pixels) + text_tokens));
  }
  return shapes;
}

// The family whose name precedes "@", or none.
const models::Family* family_in(const std::string& item) {
  const size_t at = item.find('@');
  for (const models::Family* family : models::families()) {
    if (at != item.npos && item.substr(0, at) == family->name) return family;
  }
  return nullptr;
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

std::string model_shapes(const std::string& pixels) try {
  return fmt::format("{}@{}", models::families().front()->name, pixels);
} catch (...) {
  rethrow_as_error();
}

std::vector<GemmShape> parse_shapes(const std::string& text) try {
  const std::string model = model_shapes("<pixels>");
  std::vector<GemmShape> shapes;
  const std::vector<std::string> items = split(text, ';');
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string& item = items[i];
    check(!item.empty() || items.size() == 1,
          "shapes: item {} of '{}' is empty, expected m,n,k or {}; leave out the ';' that is too "
          "many",
          i + 1, one_line(text), model);
    if (const models::Family* family = family_in(item)) {
      for (const std::string& size : split(item.substr(item.find('@') + 1), ',')) {
        const auto parts = split(size, '+');
        check(parts.size() <= 2,
              "shapes: '{}' in '{}' is neither a size nor one with '+' and text tokens",
              one_line(size), one_line(item));
        const int64_t text_tokens = parts.size() == 2 ? number(parts[1], item) : 0;
        check(text_tokens <= kLargest, "shapes: '{}' in '{}' is too large; m goes up to {}",
              one_line(size), one_line(item), kLargest);
        const auto more = shapes_of(*family, number(parts[0], item), text_tokens);
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
      continue;
    }
    const auto parts = split(item, ',');
    check(parts.size() == 3, "shapes: '{}' is neither m,n,k nor {}", one_line(item), model);
    const GemmShape shape{number(parts[0], item), number(parts[1], item), number(parts[2], item)};
    check(shape.m <= kLargest && shape.n <= kLargest && shape.k <= kMaxK,
          "shapes: '{}' is too large; m and n go up to {}, k up to {}", one_line(item), kLargest,
          kMaxK);
    shapes.push_back(shape);
  }
  return shapes;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
