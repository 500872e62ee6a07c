#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "base/error.h"

namespace octet {

Shape::Shape(std::initializer_list<int64_t> extents) {
  for (const int64_t extent : extents) push_back(extent);
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

void Shape::push_back(int64_t extent) {
  check(rank_ < kMaxRank, "shape: rank {} is above the supported {}", rank_ + 1, kMaxRank);
  check(extent >= 0, "shape: extent {} of axis {} is negative", extent, rank_);
  extents_[static_cast<size_t>(rank_++)] = extent;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string((*this)[axis]);
  }
  return text + "]";
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(extents_.begin(), extents_.begin() + rank_, other.extents_.begin());
}

size_t bytes_of(DType dtype, const Shape& shape) {
  uint64_t bits = static_cast<uint64_t>(bits_of(dtype));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto product = checked_mul(bits, static_cast<uint64_t>(shape[axis]));
    if (!product.has_value()) {  // not check(), which would make the text of every shape
      fail("tensor: the size of {} {} overflows", name_of(dtype), shape.to_string());
    }
    bits = *product;
  }
  if (bits % 8 != 0) {
    fail("tensor: {} {} does not fill whole bytes", name_of(dtype), shape.to_string());
  }
  return bits / 8;
}

template <class Byte>
BasicView<Byte>::BasicView(Byte* at, DType type, Shape extents)
    : data(at), dtype(type), shape(extents), strides(extents) {
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
}

template <class Byte>
BasicView<Byte> BasicView<Byte>::rows(Byte* at, DType type, int64_t row_count, int64_t columns,
                                      int64_t row_stride) {
  BasicView view(at, type, {row_count, columns});
  check(row_stride >= columns, "tensor: a row stride of {} is below the {} columns", row_stride,
        columns);
  view.strides[0] = row_stride;
  return view;
}

template <class Byte>
bool BasicView<Byte>::is_dense() const {
  return strides == BasicView(data, dtype, shape).strides;
}

template <class Byte>
std::string BasicView<Byte>::to_string() const {
  return fmt::format("{} {}", name_of(dtype), shape.to_string());
}

template struct BasicView<std::byte>;
template struct BasicView<const std::byte>;

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    release_ = std::move(other.release_);
  }
  return *this;
}

void Buffer::reset() {
  if (data_ != nullptr && release_) release_(data_);
  data_ = nullptr;
  bytes_ = 0;
}

TensorView Buffer::view(DType dtype, const Shape& shape, size_t offset) const {
  const auto end = checked_add(offset, bytes_of(dtype, shape));
  if (!end.has_value() || *end > bytes_) {
    fail("buffer: {} {} at byte {} does not fit into {} bytes", name_of(dtype), shape.to_string(),
         offset, bytes_);
  }
  return TensorView(data_ + offset, dtype, shape);
}

Buffer allocate_host(size_t bytes) {
  // Large buffers ask for huge pages: matrices are walked in strides that would miss the TLB.
  constexpr size_t kHugePage = size_t{2} << 20;
  const bool huge = bytes >= kHugePage;
  const std::align_val_t alignment{huge ? kHugePage : 64};
  auto* data = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (data == nullptr) {
    throw OutOfMemory(sentence(
        "memory: {} bytes cannot be allocated; close programs or use a smaller problem", bytes));
  }
  if (huge) ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish: its refusal changes nothing
  return Buffer(data, bytes,
                [alignment](std::byte* memory) { ::operator delete(memory, alignment); });
}

}  // namespace octet
