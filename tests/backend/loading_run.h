// What a loader asks of a backend, on any of them: conversions with the bits of ref, weights that
// are packed piece by piece, bytes that several threads write on their way.
#pragma once

#include <atomic>
#include <mutex>

#include "backend/model_run.h"
#include "base/thread_pool.h"

namespace octet::test::model {

// All bit patterns of a type in turn, then random ones.
inline GuardedMatrix stored_floats(DType type, int64_t rows, int64_t columns, int64_t gap,
                                   std::mt19937& random) {
  GuardedMatrix matrix(type, rows, columns, columns + gap);
  const TensorView view = matrix.view();
  const int bytes = bits_of(type) / 8;
  uint32_t next = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      // Of wider types those with the interesting exponents: the upper byte takes all values.
      const uint32_t bits = bytes == 1 ? next++ : (next++ << (8 * (bytes - 1))) ^ (random() >> 8);
      std::memcpy(view.data + (i * view.row_stride() + j) * bytes, &bits,
                  static_cast<size_t>(bytes));
    }
  }
  return matrix;
}

inline void expect_convert_right(Backend& backend) {
  std::mt19937 random(21);
  struct Dims {
    int64_t rows, columns, gap;
  };
  for (const DType from : {DType::f8_e4m3, DType::f16, DType::bf16, DType::f32}) {
    for (const DType to : {DType::f32, DType::bf16}) {
      for (const auto& [rows, columns, gap] :
           {Dims{1, 1, 3}, Dims{1, 256, 0}, Dims{40, 64, 0}, Dims{40, 64, 16}, Dims{5, 33, 3},
            Dims{3, 1031, 0}, Dims{2, 5000, 8}}) {
        for (const bool scaled : {false, true}) {
          SCOPED_TRACE(fmt::format("{} to {} [{}, {}] gap {} scaled {}", name_of(from), name_of(to),
                                   rows, columns, gap, scaled));
          GuardedMatrix x = stored_floats(from, rows, columns, gap, random);
          GuardedMatrix got(to, rows, columns, columns + gap), want(to, rows, columns);
          std::vector<float> scale = random_floats(rows, random, -3.0f, 3.0f);
          scale.back() = 1e-38f;
          make_ref_backend()->convert(
              x.view(), want.view(),
              scaled ? ConstTensorView(vector_view(scale)) : ConstTensorView());
          const Operand device_x(backend, x);
          const OnDevice device_scale(backend, scale);
          Operand out(backend, got);
          backend.convert(
              device_x.view(), out.view(),
              scaled ? ConstTensorView(device_scale(vector_view(scale))) : ConstTensorView());
          out.download();
          EXPECT_TRUE(same_bits(got.view(), want.view()));
        }
      }
    }
  }
}

inline std::vector<std::byte> bytes_of_buffer(Backend& backend, const Buffer& buffer) {
  std::vector<std::byte> host(buffer.bytes());
  backend.copy_to_host(host.data(), buffer.data(), host.size());
  return host;
}

// In pieces of any size and order a weight becomes what it becomes as a whole.
inline void expect_pack_rows_right(Backend& backend) {
  std::mt19937 random(22);
  struct Dims {
    int64_t n, k;
  };
  for (const auto& [n, k] :
       {Dims{2, 1}, Dims{6, 64}, Dims{34, 130}, Dims{96, 256}, Dims{130, 33}}) {
    for (const RowOrder order : {RowOrder::plain, RowOrder::gate_up}) {
      SCOPED_TRACE(fmt::format("n={} k={} gate_up={}", n, k, order == RowOrder::gate_up));
      GuardedMatrix w(DType::i8, n, k, k + 3);
      fill_int8(w.view(), random, -128);
      std::vector<float> scales = random_floats(n, random, 1e-3f, 1e-2f);
      std::vector<float> factors = random_floats(n, random, -2.0f, 2.0f), products(scales);
      for (size_t i = 0; i < products.size(); ++i) products[i] *= factors[i];
      const QWeight whole = backend.pack({w.view(), vector_view(products)}, {}, {}, order);
      EXPECT_EQ(whole.col_scale.bytes() % 32, 0u);
      EXPECT_EQ(whole.values.bytes() + whole.col_scale.bytes(), backend.packed_weight_bytes(n, k));

      QWeight pieces = backend.begin_pack(n, k, {}, {}, order);
      const OnDevice codes(backend, w), device_scales(backend, scales),
          device_factors(backend, factors);
      std::vector<int64_t> cuts = {0, n / 3, n / 3 + 1, n / 2 + 1, n};
      for (size_t piece = cuts.size() - 1; piece-- > 0;) {
        const int64_t first = cuts[piece], count = cuts[piece + 1] - first;
        TensorView rows = codes(w.view());
        rows.data += first * rows.row_stride();
        rows.shape[0] = count;
        const auto part_of = [&](const TensorView& vector) {
          return TensorView(vector.data + first * static_cast<int64_t>(sizeof(float)), DType::f32,
                            {count});
        };
        backend.pack_rows(pieces, first, {rows, part_of(device_scales(vector_view(scales)))},
                          part_of(device_factors(vector_view(factors))));
      }
      EXPECT_EQ(pieces.layout, whole.layout);
      EXPECT_EQ(pieces.gated, whole.gated);
      EXPECT_EQ(bytes_of_buffer(backend, pieces.values), bytes_of_buffer(backend, whole.values));
      EXPECT_EQ(bytes_of_buffer(backend, pieces.col_scale),
                bytes_of_buffer(backend, whole.col_scale));
    }
  }
}

inline void expect_upload_right(Backend& backend) {
  struct Case {
    size_t bytes, granule;
  };
  constexpr size_t kMiB = kUploadPiece;
  for (const auto& [bytes, granule] :
       {Case{0, 1}, Case{1, 1}, Case{kMiB - 1, 1}, Case{kMiB, 1}, Case{7 * kMiB + 3, 1},
        Case{14 * kMiB, 1}, Case{3000 * 1000, 1000}, Case{2 * (kMiB + 5), kMiB + 5}}) {
    SCOPED_TRACE(fmt::format("{} bytes in granules of {}", bytes, granule));
    std::mutex mutex;
    size_t filled = 0, largest = 0;
    const auto value_at = [](size_t at) { return static_cast<std::byte>(at * 7 + (at >> 13)); };
    const Buffer buffer = backend.upload(
        bytes,
        [&](std::byte* into, size_t first, size_t count) {
          for (size_t i = 0; i < count; ++i) into[i] = value_at(first + i);
          const std::lock_guard lock(mutex);
          EXPECT_EQ(first % upload_piece(granule), 0u);
          EXPECT_EQ(count % granule, 0u);
          filled += count;
          largest = std::max(largest, count);
        },
        granule);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(filled, bytes);
    EXPECT_LE(largest, upload_piece(granule));
    const std::vector<std::byte> got = bytes_of_buffer(backend, buffer);
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i) wrong += got[i] == value_at(i) ? 0 : 1;
    EXPECT_EQ(wrong, 0u);
  }
  const std::vector<std::byte> few = {std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(bytes_of_buffer(backend, backend.upload(few)), few);
}

// An error of one thread reaches the caller, and the next upload is as good as ever.
inline void expect_upload_errors_right(Backend& backend) {
  std::atomic<int> calls{0};
  const Fill failing = [&](std::byte* into, size_t, size_t count) {
    std::memset(into, 1, count);
    if (++calls == 5) fail("the fifth piece is damaged");
  };
  EXPECT_THROW(backend.upload(64 * kUploadPiece, failing), Error);
  EXPECT_LT(calls, 64);
  const std::vector<std::byte> ones(kUploadPiece, std::byte{1});
  EXPECT_EQ(bytes_of_buffer(backend, backend.upload(kUploadPiece, failing)), ones);
  EXPECT_THROW(backend.upload(10, failing, 3), Error);
  EXPECT_THROW(backend.upload(10, failing, 0), Error);
  EXPECT_THROW(backend.upload(10, Fill()), Error);
}

// Copies that begin after the ops before them, and are there for the ops behind the wait.
inline void expect_prefetch_right(Backend& backend) {
  constexpr size_t kBytes = size_t{4} << 20;
  const Buffer here = backend.allocate(kBytes), seen = backend.allocate(2 * kBytes);
  const Buffer pinned = backend.allocate_pinned(2 * kBytes);
  for (int round = 0; round < 8; ++round) {
    std::memset(pinned.data(), 2 * round + 1, kBytes);
    std::memset(pinned.data() + kBytes, 2 * round + 2, kBytes);
    const Transfer first = backend.prefetch(here.data(), pinned.data(), kBytes);
    backend.wait(first);
    backend.copy(seen.data(), here.data(), kBytes);
    // Into memory that the op above still reads.
    const Transfer second = backend.prefetch(here.data(), pinned.data() + kBytes, kBytes);
    backend.wait(second);
    backend.copy(seen.data() + kBytes, here.data(), kBytes);
    const std::vector<std::byte> got = bytes_of_buffer(backend, seen);
    for (const size_t at : {size_t{0}, kBytes - 1}) {
      EXPECT_EQ(static_cast<int>(got[at]), 2 * round + 1);
      EXPECT_EQ(static_cast<int>(got[kBytes + at]), 2 * round + 2);
    }
  }
  backend.wait(Transfer());
}

struct LoadingCheck {
  const char* name;
  void (*run)(Backend&);
  bool by_kernel;  // what it checks is different code for each kernel of a CPU
};
inline constexpr LoadingCheck kLoadingChecks[] = {
    {"Convert", expect_convert_right, true},
    {"PackRows", expect_pack_rows_right, true},
    {"Upload", expect_upload_right, false},
    {"UploadErrors", expect_upload_errors_right, false},
    {"Prefetch", expect_prefetch_right, false}};

}  // namespace octet::test::model
