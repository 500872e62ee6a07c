// Tensors: Buffer owns memory, TensorView looks at it.
//
// A view is pointer + dtype + shape + strides (in elements). Ops ask for views whose last dimension
// is contiguous; the distance between rows is free, so a slice of columns or of rows is a view.
// A view does not know which device its memory is on: that is the backend's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "tensor/dtype.h"

namespace octet {

// Up to kMaxRank extents by value. An empty shape is a scalar: one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return extents_[static_cast<size_t>(axis)]; }
  int64_t elements() const;
  void push_back(int64_t extent);
  std::string to_string() const;  // "[512, 4608]"
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

template <class Byte>  // std::byte, or const std::byte for read-only views
struct BasicView {
  Byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;  // in elements, one per axis

  BasicView() = default;
  // A densely packed tensor at `data`.
  BasicView(Byte* at, DType type, Shape extents);
  // Two-dimensional, rows `row_stride` elements apart.
  static BasicView rows(Byte* at, DType type, int64_t row_count, int64_t columns,
                        int64_t row_stride);

  operator BasicView<const std::byte>() const {
    BasicView<const std::byte> view;
    view.data = data;
    view.dtype = dtype;
    view.shape = shape;
    view.strides = strides;
    return view;
  }

  int64_t row_stride() const { return strides[0]; }

  // The first element as T; the caller has checked the dtype.
  template <class T>
  auto* as() const {
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return reinterpret_cast<Element*>(data);
  }
  // Row i of a two-dimensional view.
  template <class T>
  auto* row(int64_t i) const {
    return as<T>() + i * strides[0];
  }

  bool is_dense() const;
  std::string to_string() const;  // "BF16 [512, 4608]"
};

using TensorView = BasicView<std::byte>;
using ConstTensorView = BasicView<const std::byte>;

extern template struct BasicView<std::byte>;
extern template struct BasicView<const std::byte>;

// Bytes that a dense tensor of this type and shape takes.
size_t bytes_of(DType dtype, const Shape& shape);

// Owns memory that some backend allocated. Moves, never copies.
class Buffer {
 public:
  using Release = std::function<void(std::byte*)>;

  Buffer() = default;
  Buffer(std::byte* data, size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        release_(std::move(other.release_)) {}
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

  // A dense view at `offset` bytes; throws Error when it would reach past the end.
  TensorView view(DType dtype, const Shape& shape, size_t offset = 0) const;

 private:
  void reset();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Release release_;
};

// Host memory, aligned to 64 bytes (a cache line, and the widest vector load).
Buffer allocate_host(size_t bytes);

}  // namespace octet
