// What a Loader brings into a backend's memory, on any backend: the bits that the host reads from
// the same file, row by row.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "nn/linear.h"
#include "support.h"
#include "weights/loaded_linear.h"
#include "weights/loader.h"
#include "weights/tensor_files.h"

namespace octet::test {

inline void expect_packed_right(Backend& backend) {
  const auto ref = make_ref_backend();
  constexpr int64_t kRows = LoadedLinear::kRows, kInputs = LoadedLinear::kInputs;
  for (const StoredCase& stored : kStoredCases) {
    for (const RowOrder order : {RowOrder::plain, RowOrder::gate_up}) {
      SCOPED_TRACE(fmt::format("{} gate_up={}", stored.name, order == RowOrder::gate_up));
      LoadedLinear linear(backend, stored);
      GuardedMatrix codes(DType::i8, 2 * kRows, kInputs);
      std::vector<float> scales(2 * kRows);
      int64_t row = 0;
      for (const char* module : {"a", "b"}) {
        const auto weight = linear.weight(module);
        for (int64_t i = 0; i < kRows; ++i, ++row) {
          auto* into = reinterpret_cast<std::byte*>(codes.view().row<int8_t>(row));
          float& scale = scales[static_cast<size_t>(row)];
          if (weight->is_int8()) {
            weight->read_stored(i, into);
            scale = 1;
          } else {
            GuardedMatrix values(weight->dtype(), 1, kInputs);
            weight->read_stored(i, values.view().data);
            ref->quantize_rows(values.view(), {},
                               {TensorView(into, DType::i8, {1, kInputs}),
                                TensorView(reinterpret_cast<std::byte*>(&scale), DType::f32, {1})});
          }
          scale *= weight->scale(i);
        }
      }
      std::vector<int8_t> kept;
      weights::LoadOptions options;
      options.converted = [&](const auto&, const QTensor& made, const auto&) {
        const auto* values = made.values.template as<int8_t>();
        kept.insert(kept.end(), values, values + made.rows() * made.k());
        EXPECT_EQ(made.scales.template as<float>()[1],
                  scales[kept.size() > kRows * kInputs ? kRows + 1 : 1]);
      };
      const nn::LinearPart& part = linear.load(options, order);
      ASSERT_TRUE(part.is_int8());
      const QWeight want = backend.pack({codes.view(), vector_view(scales)}, {}, {}, order);
      EXPECT_EQ(linear.download(part.quantized->values), linear.download(want.values));
      EXPECT_EQ(linear.download(part.quantized->col_scale), linear.download(want.col_scale));
      if (stored.dtype == DType::i8) {
        EXPECT_TRUE(kept.empty());
      } else {
        const auto* values = codes.view().as<int8_t>();
        EXPECT_EQ(kept, std::vector<int8_t>(values, values + 2 * kRows * kInputs));
      }
    }
  }
}

inline std::vector<std::byte> rows_read_by_host(const weights::StoredWeight& weight, DType dtype) {
  const int64_t row_bytes = weight.k() * bits_of(dtype) / 8;
  std::vector<std::byte> bytes(static_cast<size_t>(weight.rows() * row_bytes));
  for (int64_t i = 0; i < weight.rows(); ++i) {
    weight.read(i, dtype, bytes.data() + i * row_bytes);
  }
  return bytes;
}

inline void expect_converted_right(Backend& backend) {
  for (const StoredCase& stored : kStoredCases) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(fmt::format("{} to {}", stored.name, name_of(dtype)));
      LoadedLinear linear(backend, stored);
      const nn::LinearPart& part = linear.load({.dtype = dtype, .int8 = false}, RowOrder::plain);
      std::vector<std::byte> want = rows_read_by_host(*linear.weight("a"), dtype);
      const std::vector<std::byte> rest = rows_read_by_host(*linear.weight("b"), dtype);
      want.insert(want.end(), rest.begin(), rest.end());
      EXPECT_EQ(linear.download(part.weight), want);
    }
  }
}

// Fake INT8 multiplies what native INT8 multiplies: its weight is the dequantized codes, to the
// bit.
inline void expect_rounded_right(Backend& backend) {
  constexpr int64_t kRows = 2 * LoadedLinear::kRows, kInputs = LoadedLinear::kInputs;
  for (const StoredCase& stored : kStoredCases) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(fmt::format("{} in {}", stored.name, name_of(dtype)));
      LoadedLinear linear(backend, stored);
      std::vector<float> scales;
      std::vector<int8_t> codes;
      weights::LoadOptions native;
      native.dtype = dtype;
      native.converted = [&](const auto&, const QTensor& made, const auto&) {
        const auto* values = made.values.template as<int8_t>();
        codes.insert(codes.end(), values, values + made.rows() * made.k());
        const auto* factors = made.scales.template as<float>();
        scales.insert(scales.end(), factors, factors + made.rows());
      };
      linear.load(native, RowOrder::plain);
      if (stored.dtype == DType::i8) {
        for (const char* module : {"a", "b"}) {
          const auto weight = linear.weight(module);
          for (int64_t row = 0; row < weight->rows(); ++row) {
            codes.resize(codes.size() + kInputs);
            weight->read_stored(
                row, reinterpret_cast<std::byte*>(codes.data() + codes.size() - kInputs));
            scales.push_back(weight->scale(row));
          }
        }
      }
      weights::LoadOptions fake;
      fake.dtype = dtype;
      fake.fake = true;
      const nn::LinearPart& part = linear.load(fake, RowOrder::gate_up);
      ASSERT_TRUE(part.rounding.has_value());
      ASSERT_FALSE(part.is_int8());
      EXPECT_EQ(part.rounding->transform.kind, Transform::none);
      std::vector<std::byte> want(static_cast<size_t>(kRows * kInputs * bits_of(dtype) / 8));
      ASSERT_EQ(codes.size(), static_cast<size_t>(kRows * kInputs));
      for (int64_t i = 0; i < kRows * kInputs; ++i) {
        const float value = static_cast<float>(codes[static_cast<size_t>(i)]) *
                            scales[static_cast<size_t>(i / kInputs)];
        weights::store_f32(value, dtype, want.data(), i);
      }
      EXPECT_TRUE(linear.download(part.weight) == want);
    }
  }
}

// Weights that are quantized on the way are rotated on request, in the group that their inputs
// allow; codes of a file are not. The very bits of the row op that rotates activations.
inline void expect_rotated_right(Backend& backend) {
  constexpr int64_t kRows = LoadedLinear::kRows, kInputs = LoadedLinear::kInputs, kGroup = 16;
  const auto ref = make_ref_backend();
  for (const StoredCase& stored : kStoredCases) {
    SCOPED_TRACE(stored.name);
    LoadedLinear linear(backend, stored);
    weights::LoadOptions options;
    options.rotation = 256;
    const nn::LinearPart& part = linear.load(options, RowOrder::plain);
    ASSERT_TRUE(part.is_int8());
    const ActivationTransform& transform = part.quantized->transform;
    if (stored.dtype == DType::i8) {
      EXPECT_EQ(transform.kind, Transform::none);
      continue;
    }
    EXPECT_EQ(transform.kind, Transform::rotate);
    EXPECT_EQ(transform.group, kGroup);
    GuardedMatrix codes(DType::i8, 2 * kRows, kInputs);
    std::vector<float> scales(2 * kRows);
    int64_t row = 0;
    for (const char* module : {"a", "b"}) {
      const auto weight = linear.weight(module);
      GuardedMatrix values(weight->dtype(), 1, kInputs);
      for (int64_t i = 0; i < kRows; ++i, ++row) {
        float& scale = scales[static_cast<size_t>(row)];
        weight->read_stored(i, values.view().data);
        ref->quantize_rows(values.view(), transform,
                           {TensorView(reinterpret_cast<std::byte*>(codes.view().row<int8_t>(row)),
                                       DType::i8, {1, kInputs}),
                            TensorView(reinterpret_cast<std::byte*>(&scale), DType::f32, {1})});
        scale *= weight->scale(i);
      }
    }
    const QWeight want =
        backend.pack({codes.view(), vector_view(scales)}, {}, transform, RowOrder::plain);
    EXPECT_EQ(linear.download(part.quantized->values), linear.download(want.values));
    EXPECT_EQ(linear.download(part.quantized->col_scale), linear.download(want.col_scale));
  }
}

// Native and fake INT8 see the same activations, whatever is done to these first: the products
// differ by the rounding of sums in F32 alone.
inline void expect_fake_products_right(Backend& backend) {
  constexpr int64_t kTokens = 9, kInputs = LoadedLinear::kInputs;
  std::mt19937 random(33);
  const std::vector<float> x = random_floats(kTokens * kInputs, random, -3.0f, 3.0f);
  const std::vector<float> smooth = random_floats(kInputs, random, 0.5f, 2.0f);
  for (const Transform kind : {Transform::none, Transform::smooth, Transform::rotate}) {
    SCOPED_TRACE(static_cast<int>(kind));
    LoadedLinear linear(backend, kStoredCases[0], [&](std::vector<Tensor>& tensors) {
      for (Tensor& each : tensors) {
        if (kind != Transform::rotate || !each.name.ends_with(".comfy_quant")) continue;
        each = text_tensor(
            each.name,
            R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 16})");
      }
      if (kind != Transform::smooth) return;
      for (const char* name : {"a.pre_quant_scale", "b.pre_quant_scale"}) {
        tensors.push_back(f32(name, {kInputs}, smooth));
      }
    });
    const auto products = [&](bool fake) {
      weights::LoadOptions options;
      options.dtype = DType::f32;
      options.fake = fake;
      const nn::LinearPart& part = linear.load(options, RowOrder::plain);
      EXPECT_EQ((fake ? part.rounding->transform : part.quantized->transform).kind, kind);
      nn::Context ctx{backend, DType::f32};
      const nn::Matrix rows = nn::upload_matrix(ctx, x.data(), kTokens, kInputs);
      const nn::Matrix out = nn::linear(ctx, rows, linear.linear());
      std::vector<float> values(static_cast<size_t>(kTokens * linear.linear().n));
      nn::download_matrix(ctx, out, values.data());
      linear.load(options, RowOrder::gate_up);
      const nn::Matrix gated =
          nn::swiglu(ctx, nn::operand(ctx, rows, linear.linear()), linear.linear());
      values.resize(values.size() * 3 / 2);
      nn::download_matrix(ctx, gated, values.data() + values.size() * 2 / 3);
      return values;
    };
    const std::vector<float> native = products(false), fake = products(true);
    ASSERT_EQ(native.size(), fake.size());
    double error = 0, norm = 0;
    for (size_t i = 0; i < native.size(); ++i) {
      error += (fake[i] - native[i]) * (fake[i] - native[i]);
      norm += native[i] * native[i];
    }
    EXPECT_GT(norm, 1);
    EXPECT_LT(std::sqrt(error / norm), 1e-5);
  }
}

// A weight that goes up in several parts, whose rows are no divisors of a hashed chunk.
inline void expect_large_table_right(Backend& backend) {
  constexpr int64_t kRows = 66'000, kInputs = 1031;
  std::mt19937 random(32);
  TemporaryFolder folder;
  ThreadPool pool(3);
  std::vector<uint8_t> codes(static_cast<size_t>(kRows * kInputs));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = (i * 7 + (i >> 11)) & 0xbf;
  const std::vector<Tensor> tensors = {
      tensor("t.weight", DType::f8_e4m3, {kRows, kInputs}, codes),
      f32("t.weight_scale", {kRows}, random_floats(kRows, random, -0.02f, 0.02f))};
  weights::Fingerprint fingerprint;
  for (const Tensor& each : tensors) fingerprint.add(each.name, each.bytes, pool);
  const weights::WeightSource source(
      std::make_shared<const Checkpoint>(write_checkpoint(folder, tensors)), "");
  weights::Loader loader(source, backend, {});
  nn::Table table;
  loader.table(table, "t.weight", kRows, kInputs);
  EXPECT_EQ(loader.fingerprint().to_string(), fingerprint.to_string());
  std::vector<std::byte> got(table.memory.bytes());
  backend.copy_to_host(got.data(), table.memory.data(), got.size());
  EXPECT_TRUE(got == rows_read_by_host(*source.weight("t", kRows, kInputs), DType::bf16));
}

// Damage is told with its tensor and row, whoever converts.
inline void expect_damage_told(Backend& backend) {
  const auto error_of = [&](const StoredCase& stored, const char* tensor, size_t at,
                            std::vector<uint8_t> value, bool int8) -> std::string {
    LoadedLinear linear(backend, stored, [&](std::vector<Tensor>& tensors) {
      for (Tensor& each : tensors) {
        if (each.name != tensor) continue;
        std::memcpy(each.bytes.data() + at * value.size(), value.data(), value.size());
      }
    });
    try {
      linear.load({.int8 = int8}, RowOrder::plain);
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.substr(text.find(": ") + 2);
    }
    return "";
  };
  constexpr size_t kAt = 5 * LoadedLinear::kInputs + 3;  // in row 5
  const std::string in_row_5 =
      "tensor \"b.weight\" holds a NaN or an infinity in row 5; the checkpoint is damaged";
  for (const bool int8 : {false, true}) {
    EXPECT_EQ(error_of({"", DType::f8_e4m3, -1}, "b.weight", kAt, {0xff}, int8), in_row_5);
    EXPECT_EQ(error_of({"", DType::f16, 0}, "b.weight", kAt, {0x00, 0xfc}, int8), in_row_5);
    EXPECT_EQ(error_of({"", DType::bf16, 0}, "b.weight", kAt, {0x80, 0x7f}, int8), in_row_5);
    EXPECT_EQ(error_of({"", DType::f32, 0}, "b.weight", kAt, {0, 0, 0xc0, 0x7f}, int8), in_row_5);
    for (const DType dtype : {DType::i8, DType::f8_e4m3}) {
      EXPECT_EQ(error_of({"", dtype, -1}, "b.weight_scale", 7, {0, 0, 0x80, 0x7f}, int8),
                "tensor \"b.weight_scale\" holds a NaN or an infinity in row 7; the checkpoint is "
                "damaged");
    }
  }
  // Numbers that are none in BF16: the largest of F32, and a code under a huge scale.
  EXPECT_EQ(error_of({"", DType::f32, 0}, "b.weight", kAt, {0xff, 0xff, 0x7f, 0x7f}, false),
            in_row_5);
  EXPECT_EQ(error_of({"", DType::f32, 0}, "b.weight", kAt, {0xff, 0x7f, 0x7f, 0x7f}, false), "");
  EXPECT_EQ(error_of({"", DType::f8_e4m3, -1}, "b.weight_scale", 5, {0, 0, 0x7f, 0x7f}, false),
            in_row_5);
}

struct LoaderCheck {
  const char* name;
  void (*run)(Backend&);
};
inline constexpr LoaderCheck kLoaderChecks[] = {
    {"Packed", expect_packed_right},   {"Converted", expect_converted_right},
    {"Rounded", expect_rounded_right}, {"FakeProducts", expect_fake_products_right},
    {"Rotated", expect_rotated_right}, {"LargeTable", expect_large_table_right},
    {"Damage", expect_damage_told}};

}  // namespace octet::test
