// Random honest programs: tensors of 8 bits that are no weights become numbers in every layer,
// often with a weight's size and right before a product, and something else uses them. None may be
// accused. The other way round, programs whose weights are widened must not be called native.
//
// OCTET_HONEST_PROGRAMS=100000 tries as many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "audit/linears.h"
#include "audit/made_linears.h"

namespace octet::audit {
namespace {

using test::examined;
using test::MadeTrace;
using Dims = std::vector<int64_t>;
using Type = ScalarType;

constexpr Type kNumbers = Type::bf16;
constexpr const char* kElementwise = test::kMultiply;
constexpr const char* kAttention =
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>(Flash_fwd_params)";

int64_t elements_of(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

// Codes that become numbers somewhere in each layer, and what uses them.
struct Codes {
  Type type = Type::int8;
  Dims dims;
  int conversion = 0, scale = 0, use = 0;
  int place = 0, products_before_use = 0;
};

// Transformer blocks, on a GPU or a CPU.
class Program {
 public:
  enum class Linears { bf16, int8, fp8 };

  explicit Program(uint64_t seed) : random_(seed) {
    on_host_ = chance(4);
    ranges_ = chance(2);
    eager_attention_ = chance(2);
    steps_ = 1 + below(3);
    layers_ = 1 + below(5);
    hidden_ = one_of<int64_t>({128, 256, 384, 512, 768, 1024});
    key_values_ = chance(2) ? hidden_ : hidden_ / 2;
    up_ = hidden_ * one_of<int64_t>({1, 2, 3, 4});
    tokens_ = chance(5) ? hidden_ : one_of<int64_t>({1, 16, 77, 128, 256, 512, 1024});
    rows_ = tokens_ * one_of<int64_t>({1, 1, 2, 4});
    linears_ = one_of<Linears>({Linears::bf16, Linears::bf16, Linears::int8, Linears::fp8});
  }

  // Honest: codes beside the weights.
  AuditReport with_codes() {
    for (int count = 1 + below(3); count > 0; --count) codes_.push_back(some_codes());
    return run();
  }

  // Fake: codes are the weights of all or of some linears.
  AuditReport with_widened_weights() {
    linears_ = Linears::bf16;
    weights_.type = one_of<Type>({Type::int8, Type::fp8});
    weights_.conversion = below(5);
    weights_.scale = weights_.type == Type::int8 ? 2 : below(3);
    widens_ = true;
    spares_ = chance(3);
    return run();
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool chance(int of) { return below(of) == 0; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }

  // An op with its kernel; on a CPU it is the work itself.
  void call(const char* name, const Signature& operands, const char* kernel, double us = 10) {
    const uint32_t op = made_.op(name, operands, range_);
    if (on_host_) {
      made_.now += 10;
    } else {
      made_.kernel(kernel, op, us);
    }
  }

  static Operand numbers(const Dims& dims) { return {kNumbers, dims}; }
  static Operand all_of_a_list() { return {Type::other, {}}; }

  void multiply(int64_t m, int64_t n, int64_t k) {
    call("aten::mm", {numbers({m, k}), numbers({k, n})}, test::kBf16Gemm, 100);
  }

  Codes some_codes() {
    const std::vector<std::pair<int64_t, int64_t>> weights = {
        {hidden_ + 2 * key_values_, hidden_}, {hidden_, hidden_}, {up_, hidden_}, {hidden_, up_}};
    const auto [n, k] = one_of(weights);
    Codes codes;
    codes.type = one_of<Type>({Type::int8, Type::uint8, Type::fp8});
    codes.dims = one_of<Dims>({{n, k},
                               {n, k},
                               {n, k},
                               {k, n},
                               {1, n, k},
                               {n * k / 64, 64},
                               {n, k / 64, 64},
                               {1, k / 64, n, 64},
                               {layers_, n, k},
                               {rows_, hidden_}});
    codes.conversion = below(6);
    codes.scale = below(4);
    codes.use = below(kUses);
    codes.place = below(5);
    codes.products_before_use = chance(2) ? 0 : 1 + below(4);
    return codes;
  }

  void widen(const Codes& codes) {
    const Dims& dims = codes.dims;
    const Operand from = {codes.type, dims}, to = numbers(dims);
    const Operand scales = {Type::f32, codes.scale == 1 ? Dims{dims[0], 1} : Dims{1}};
    switch (codes.conversion) {
      case 1: return call("aten::mul", {from, scales}, kElementwise);
      case 2:
        return call("triton_poi_fused__to_copy_mul_1", {from, scales, to},
                    "triton_poi_fused__to_copy_mul_1");
      case 3: return call("mylib::dequantize", {from, scales}, "mylib_dequantize_kernel");
      case 4: call("aten::copy_", {numbers(dims), from}, test::kCast); break;
      case 5: {  // a table of 256 numbers
        const int64_t blocks = elements_of(dims) / 64;
        call("aten::index", {numbers({256}), all_of_a_list()}, kElementwise);
        return call("aten::mul", {numbers({blocks, 64}), numbers({blocks, 1})}, kElementwise);
      }
      default: call("aten::copy_", {to, from}, test::kCast);
    }
    if (codes.scale > 1) call("aten::mul", {to, scales}, kElementwise);
  }

  static constexpr int kUses = 20;

  void use(const Codes& codes) {
    const Operand all = numbers(codes.dims);
    const int64_t columns = codes.dims.back(), rows = elements_of(codes.dims) / columns;
    Dims several = codes.dims;
    several.insert(several.begin(), 8);
    switch (codes.use) {
      case 0: {  // keys and values
        const Operand heads = numbers({1, columns / 64, rows, 64});
        return call("aten::scaled_dot_product_attention",
                    {numbers({1, hidden_ / 64, rows_, 64}), heads, heads}, kAttention);
      }
      case 1: {  // the same in steps
        const int64_t heads = columns / 64;
        call("aten::bmm", {numbers({heads, rows_, 64}), numbers({heads, 64, rows})},
             test::kBf16Gemm);
        call("aten::_softmax", {numbers({heads, rows_, rows})}, kElementwise);
        return call("aten::bmm", {numbers({heads, rows_, rows}), numbers({heads, rows, 64})},
                    test::kBf16Gemm);
      }
      case 2:  // latent keys
        multiply(4, rows, columns);
        return call("aten::_softmax", {{Type::f32, {1, 4, rows}}}, kElementwise);
      case 3:  // the nearest of a codebook
        multiply(rows_, rows, columns);
        return call("aten::argmin", {numbers({rows_, rows})}, kElementwise);
      case 4:  // a mask, of each head
        return call("aten::add", {numbers(several), all}, kElementwise);
      case 5: return call("aten::masked_fill", {numbers(several), all}, kElementwise);
      case 6: return call("aten::where", {{Type::other, codes.dims}, all, all}, kElementwise);
      case 7:  // a mask of weights, or a gate
        call("aten::mul", {all, all}, kElementwise);
        return call("aten::sum", {all}, kElementwise);
      case 8: return call("aten::embedding", {all, {Type::int64, {1, tokens_}}}, kElementwise);
      case 9: return call("aten::index_select", {all, {}, {Type::int64, {tokens_}}}, kElementwise);
      case 10:  // an optimizer's state, back into codes
        call("aten::lerp_", {all, all}, kElementwise);
        return call("aten::copy_", {{codes.type, codes.dims}, all}, test::kCast);
      case 11:  // a moving average
        call("aten::mul_", {all, {}}, kElementwise);
        return call("aten::add_", {all, all}, kElementwise);
      case 12: return call("aten::mse_loss", {all, all}, kElementwise);
      case 13:
        return call("aten::conv2d", {numbers({1, 1, rows, columns}), numbers({16, 1, 3, 3})},
                    "cudnn_convolution_fwd");
      case 14: return call("aten::native_layer_norm", {all, numbers({columns})}, kElementwise);
      case 15: return multiply(rows, hidden_, columns);  // the input of a linear
      case 16: {                                         // saved for a gradient
        const uint32_t outer = range_;
        range_ = made_.op("autograd::engine::evaluate_function: MmBackward0", {}, outer);
        call("aten::mm", {numbers({hidden_, rows}), numbers({rows, columns})}, test::kBf16Gemm);
        range_ = outer;
        return;
      }
      case 17:  // into a buffer, then used
        call("aten::copy_", {all, all}, test::kCast);
        return call("aten::add_", {all, all}, kElementwise);
      case 18:
        call("triton_poi_fused_add_mul_7", {all, all, all}, "triton_poi_fused_add_mul_7");
        return call("aten::mean", {all}, kElementwise);
      default: return call("aten::sigmoid", {all}, kElementwise);
    }
  }

  void reach(int place) {
    for (const Codes& codes : codes_) {
      if (codes.place != place) continue;
      widen(codes);
      waiting_.push_back(codes);
    }
    use_waiting();
  }

  void use_waiting() {
    const auto is_due = [](const Codes& codes) { return codes.products_before_use <= 0; };
    for (const Codes& codes : waiting_) {
      if (is_due(codes)) use(codes);
    }
    std::erase_if(waiting_, is_due);
  }

  void linear(const std::string& name, int64_t n, int64_t k) {
    if (ranges_) range_ = made_.op(name, {}, kNone, true);
    if (widens_ && !(spares_ && chance(4))) {
      weights_.dims = {n, k};
      widen(weights_);
      multiply(rows_, n, k);
    } else if (linears_ == Linears::int8) {
      test::int8_linear(made_, rows_, n, k);
    } else if (linears_ == Linears::fp8) {
      call("aten::_scaled_mm", {{Type::fp8, {rows_, k}}, {Type::fp8, {k, n}}},
           "nvjet_qqtst_128x128_128x6_1x1_h_bz_coopA_TNT", 50);
    } else {
      multiply(rows_, n, k);
    }
    range_ = kNone;
    for (Codes& codes : waiting_) --codes.products_before_use;
    use_waiting();
  }

  void attend() {
    const int64_t heads = hidden_ / 64;
    const Operand each = numbers({1, heads, rows_, 64});
    if (!eager_attention_) {
      return call("aten::scaled_dot_product_attention", {each, each, each}, kAttention);
    }
    call("aten::bmm", {numbers({heads, rows_, 64}), numbers({heads, 64, rows_})}, test::kBf16Gemm);
    call("aten::_softmax", {numbers({heads, rows_, rows_})}, kElementwise);
    call("aten::bmm", {numbers({heads, rows_, rows_}), numbers({heads, rows_, 64})},
         test::kBf16Gemm);
  }

  AuditReport run() {
    if (linears_ == Linears::int8) on_host_ = false;
    const Operand stream = numbers({1, rows_, hidden_});
    for (int step = 0; step < steps_; ++step) {
      for (int layer = 0; layer < layers_; ++layer) {
        const std::string block = "blocks." + std::to_string(layer) + ".";
        reach(0);
        call("aten::native_layer_norm", {stream, numbers({hidden_})}, kElementwise);
        reach(1);
        linear(block + "qkv", hidden_ + 2 * key_values_, hidden_);
        attend();
        reach(2);
        linear(block + "o", hidden_, hidden_);
        call("aten::add", {stream, stream}, kElementwise);
        reach(3);
        linear(block + "up", up_, hidden_);
        call("aten::gelu", {numbers({1, rows_, up_})}, kElementwise);
        reach(4);
        linear(block + "down", hidden_, up_);
      }
    }
    for (Codes& codes : waiting_) codes.products_before_use = 0;
    use_waiting();
    return examined(made_.trace);
  }

  std::mt19937_64 random_;
  MadeTrace made_;
  uint32_t range_ = kNone;
  bool on_host_ = false, ranges_ = false, eager_attention_ = false;
  int steps_ = 1, layers_ = 1;
  int64_t hidden_ = 0, key_values_ = 0, up_ = 0, tokens_ = 0, rows_ = 0;
  Linears linears_ = Linears::bf16;
  std::vector<Codes> codes_, waiting_;
  Codes weights_;
  bool widens_ = false, spares_ = false;
};

uint64_t programs() {
  const char* wanted = std::getenv("OCTET_HONEST_PROGRAMS");
  return wanted == nullptr ? 1500 : std::strtoull(wanted, nullptr, 10);
}

TEST(HonestPrograms, AreNeverAccused) {
  for (uint64_t seed = 0; seed < programs(); ++seed) {
    const AuditReport report = Program(seed).with_codes();
    const bool accused = is_fake(report.verdict) || report.verdict == AuditVerdict::fallback;
    ASSERT_FALSE(accused) << "seed " << seed << ": " << report.headline;
  }
}

TEST(HonestPrograms, FakeOnesAreFound) {
  uint64_t found = 0;
  const uint64_t count = programs() / 5;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const AuditReport report = Program(seed).with_widened_weights();
    ASSERT_FALSE(is_native(report.verdict)) << "seed " << seed << ": " << report.headline;
    found += is_fake(report.verdict) ? 1 : 0;
  }
  EXPECT_GT(found, count * 9 / 10);
}

}  // namespace
}  // namespace octet::audit
