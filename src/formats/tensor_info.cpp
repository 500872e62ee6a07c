#include "formats/tensor_info.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet {

uint64_t elements_of(const FileShape& shape) {
  uint64_t product = 1;
  for (const int64_t extent : shape) product *= static_cast<uint64_t>(extent);
  return product;
}

std::string to_string(const FileShape& shape) {
  // A hostile file can have a shape of a million extents; a message shows the first few.
  constexpr size_t kShown = 16;
  const auto shown = shape.begin() + static_cast<ptrdiff_t>(std::min(kShown, shape.size()));
  return fmt::format("[{}{}]", fmt::join(shape.begin(), shown, ", "),
                     shape.size() > kShown ? ", ..." : "");
}

uint64_t storage_bytes(const std::string& path, const std::string& tensor, DType dtype,
                       const FileShape& shape) {
  uint64_t bits = static_cast<uint64_t>(bits_of(dtype));
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      fail("{}: tensor {}: the shape {} has a negative extent", path, in_quotes(tensor),
           to_string(shape));
    }
    empty = empty || extent == 0;
    const auto product = checked_mul(bits, static_cast<uint64_t>(std::max<int64_t>(extent, 1)));
    if (!product || *product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail("{}: tensor {}: the size of {} {} overflows 64 bits", path, in_quotes(tensor),
           name_of(dtype), to_string(shape));
    }
    bits = *product;
  }
  if (empty) return 0;
  if (bits % 8 != 0) {
    fail("{}: tensor {}: {} {} takes {} bits, which do not fill whole bytes", path,
         in_quotes(tensor), name_of(dtype), to_string(shape), bits);
  }
  return bits / 8;
}

uint64_t alignment_of(DType dtype) {
  if (dtype == DType::c64) return 4;  // two floats
  const auto bytes = static_cast<uint64_t>(bits_of(dtype)) / 8;
  return std::max<uint64_t>(1, std::bit_floor(bytes));
}

}  // namespace octet
