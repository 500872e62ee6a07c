// int8_mm on hosts: int32 products of int8 matrices with any strides and values.
//
// The kernels read rows of k codes, and activations without -128, so both operands may have to be
// copied. A -128 is -127 - 1: the remainders need a second product, which is rare.
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "python/bindings.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;

constexpr int8_t kLowest = -128;
constexpr int64_t kLargestExtent = int64_t{1} << 30;

// A matrix of codes; strides in elements.
struct Codes {
  const int8_t* data;
  int64_t rows, columns;
  int64_t row_stride, column_stride;

  bool has_plain_rows() const { return column_stride == 1 && row_stride >= columns; }
};

// A copy with contiguous rows. In blocks, so that a transposition reads whole cache lines.
std::vector<int8_t> copied(const Codes& from) {
  constexpr int64_t kBlock = 64;
  std::vector<int8_t> copy(static_cast<size_t>(from.rows * from.columns));
  for (int64_t row = 0; row < from.rows; row += kBlock) {
    const int64_t last_row = std::min(from.rows, row + kBlock);
    for (int64_t column = 0; column < from.columns; column += kBlock) {
      const int64_t last_column = std::min(from.columns, column + kBlock);
      for (int64_t i = row; i < last_row; ++i) {
        for (int64_t j = column; j < last_column; ++j) {
          copy[i * from.columns + j] = from.data[i * from.row_stride + j * from.column_stride];
        }
      }
    }
  }
  return copy;
}

class Operand {
 public:
  explicit Operand(const Codes& from) : codes_(from) {
    if (!from.has_plain_rows()) keep(copied(from));
  }
  const Codes& codes() const { return codes_; }

  bool has_lowest() const {
    for (int64_t i = 0; i < codes_.rows; ++i) {
      const int8_t* row = codes_.data + i * codes_.row_stride;
      if (std::find(row, row + codes_.columns, kLowest) != row + codes_.columns) return true;
    }
    return false;
  }

  // Turns every -128 into -127, and returns the missing -1s.
  Operand split() {
    std::vector<int8_t> most = copied(codes_), rest(most.size());
    for (size_t i = 0; i < most.size(); ++i) {
      rest[i] = most[i] == kLowest ? -1 : 0;
      most[i] = std::max(most[i], static_cast<int8_t>(kLowest + 1));
    }
    Operand missing(codes_);
    missing.keep(std::move(rest));
    keep(std::move(most));
    return missing;
  }

 private:
  void keep(std::vector<int8_t> copy) {
    copy_ = std::move(copy);
    codes_ = {copy_.data(), codes_.rows, codes_.columns, codes_.columns, 1};
  }

  Codes codes_;
  std::vector<int8_t> copy_;
};

octet_status product(octet_device* device, const Codes& a, const Codes& rows_of_b, int32_t* y,
                     int64_t y_stride) {
  // Raw sums do not use scales.
  const float one = 1;
  const std::vector<float> ones(static_cast<size_t>(a.rows), one);
  octet_plain_weight weight = octet_plain_weight_init();
  weight.codes = rows_of_b.data;
  weight.n = rows_of_b.rows;
  weight.k = rows_of_b.columns;
  weight.row_stride = rows_of_b.row_stride;
  weight.scales = &one;
  weight.scale_count = 1;
  const octet_matrix codes = {
      const_cast<int8_t*>(a.data), a.rows, a.columns, a.row_stride, OCTET_I8, 0};
  const octet_matrix sums = {y, a.rows, rows_of_b.rows, y_stride, OCTET_I32, 0};
  octet_call call = octet_call_init();
  return octet_call_linear_int8(device, &call, &weight, nullptr, &codes, ones.data(), &sums);
}

octet_status multiply(octet_device* device, const Codes& a, const Codes& rows_of_b, int32_t* y,
                      int64_t y_stride) {
  Operand left(a);
  const Operand right(rows_of_b);
  std::optional<Operand> missing;
  if (left.has_lowest()) missing = left.split();
  octet_status status = product(device, left.codes(), right.codes(), y, y_stride);
  if (status != OCTET_OK || !missing) return status;
  const int64_t n = rows_of_b.rows;
  std::vector<int32_t> sums(static_cast<size_t>(a.rows * n));
  status = product(device, missing->codes(), right.codes(), sums.data(), n);
  if (status != OCTET_OK) return status;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      // Overflow wraps, as it does within the products.
      const auto sum = static_cast<uint32_t>(y[i * y_stride + j]);
      y[i * y_stride + j] = static_cast<int32_t>(sum + static_cast<uint32_t>(sums[i * n + j]));
    }
  }
  return status;
}

void check_extent(int64_t extent, const char* name) {
  if (extent >= 0 && extent <= kLargestExtent) return;
  raise_invalid_request("`" + std::string(name) + "` is " + std::to_string(extent) +
                            ", expected 0 to " + std::to_string(kLargestExtent),
                        name);
}

void check_address(uintptr_t address, int64_t elements, const char* name) {
  if (address != 0 || elements == 0) return;
  raise_invalid_request("`" + std::string(name) + "` is NULL", name);
}

void int8_mm(const Device& device, uintptr_t a, int64_t a_row_stride, int64_t a_column_stride,
             int64_t m, int64_t k, uintptr_t b, int64_t b_row_stride, int64_t b_column_stride,
             int64_t n, uintptr_t y, int64_t y_stride) {
  octet_device* on = device.handle.get();
  if (device.name != "cpu" && device.name != "ref") {
    raise_invalid_request("`device` is " + device.name + ", expected cpu or ref", "device");
  }
  check_extent(m, "m");
  check_extent(n, "n");
  check_extent(k, "k");
  check_address(a, m * k, "a");
  check_address(b, k * n, "b");
  octet_status status = OCTET_OK;
  bool no_memory = false;
  {
    const Unlocked unlocked;
    try {
      status =
          multiply(on, {reinterpret_cast<const int8_t*>(a), m, k, a_row_stride, a_column_stride},
                   {reinterpret_cast<const int8_t*>(b), n, k, b_column_stride, b_row_stride},
                   reinterpret_cast<int32_t*>(y), y_stride);
    } catch (const std::bad_alloc&) {
      no_memory = true;
    } catch (const std::length_error&) {  // more than any machine has
      no_memory = true;
    }
  }
  if (no_memory) throw std::bad_alloc();
  check_status(status);
}

}  // namespace

void bind_int8_mm(nb::module_& module) {
  module.def("int8_mm", &int8_mm, "device"_a, "a"_a, "a_row_stride"_a, "a_column_stride"_a, "m"_a,
             "k"_a, "b"_a, "b_row_stride"_a, "b_column_stride"_a, "n"_a, "y"_a, "y_stride"_a,
             "y = a b of int8 [m, k] and [k, n], int32; on hosts.");
}

}  // namespace octet::python
