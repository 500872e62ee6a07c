// octet::bench_step with a small transformer: what it reports, and what it refuses.
#include "measure/bench/step.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <utility>

#include "formats/error_message.h"
#include "models/ideogram4/transformer.h"
#include "models/small_dit.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

StepBenchRequest small_request() {
  StepBenchRequest request;
  request.width = 256;
  request.height = 320;
  request.text_tokens = 5;
  request.device = "cpu";
  request.threads = 2;
  request.steps = 2;
  return request;
}

MakeNetwork small_networks(const ideogram4::DitConfig& config) {
  return [config](size_t network) {
    return std::make_unique<ideogram4::Transformer>(config, /*conditional=*/network == 0);
  };
}

const StepKernel* find(const StepBranch& branch, const std::string& layer) {
  for (const StepKernel& use : branch.kernels) {
    if (use.layer == layer) return &use;
  }
  return nullptr;
}

TEST(BenchStep, ReportsBothTransformers) {
  std::map<std::string, std::pair<int, int>> phases;
  const StepBench bench = bench_step(small_request(), small_networks(test::small_dit(3, 192)),
                                     [&](const std::string& phase, int done, int total) {
                                       phases[phase] = {done, total};
                                     });
  ASSERT_EQ(bench.branches.size(), 2u);
  EXPECT_EQ(bench.branches[0].name, "conditional");
  EXPECT_EQ(bench.branches[0].tokens, 16 * 20 + 5);
  EXPECT_EQ(bench.branches[1].tokens, 16 * 20);
  EXPECT_EQ(bench.layers, 3);
  EXPECT_EQ(bench.activations, Activations::bf16);
  EXPECT_GT(bench.weight_bytes, 0u);
  EXPECT_GT(bench.peak_bytes, bench.weight_bytes);
  EXPECT_GT(bench.ms(), 0);
  EXPECT_GT(bench.step_ms, 0);
  EXPECT_EQ(bench.allocations, 0) << "a recorded step has its memory";
  EXPECT_EQ(bench.waits, 0) << "a CPU is done when a call returns";
  EXPECT_EQ(bench.launches, 0);
  EXPECT_GT(bench.int8_ceiling_tops, 0);
  EXPECT_GT(bench.copy_gb_per_s, 0);
  EXPECT_FALSE(bench.power.is_known());
  for (const StepBranch& branch : bench.branches) {
    double share = 0, ms = 0;
    for (const StepOp& op : branch.ops) {
      share += op.share;
      ms += op.ms;
    }
    EXPECT_NEAR(share, 1, 1e-6) << branch.name;
    for (const StepOp& op : branch.ops) {
      const bool multiplies = op.op == "gemm" || op.op == "matmul" || op.op == "attention";
      EXPECT_EQ(op.operations > 0 && op.tops > 0, multiplies) << op.op;
      EXPECT_EQ(op.bytes > 0 && op.gb_per_s > 0, op.op != "other") << op.op;
      // Of a CPU's products in bf16 no ceiling is known.
      EXPECT_EQ(op.ceiling_share > 0, op.bytes > 0 && (!multiplies || op.op == "gemm")) << op.op;
    }
    EXPECT_NEAR(ms, branch.watched_ms, 1e-6 * ms) << branch.name;
    EXPECT_GT(branch.int8_tops, 0);
    for (const char* layer :
         {"attention.qkv", "attention.o", "feed_forward.w1+w3", "feed_forward.w2"}) {
      const StepKernel* use = find(branch, layer);
      ASSERT_NE(use, nullptr) << layer;
      EXPECT_EQ(use->op, "gemm");
      EXPECT_EQ(use->calls, 3);
      EXPECT_FALSE(use->kernel.empty());
      EXPECT_GT(use->tops, 0);
    }
    EXPECT_EQ(find(branch, "adaln_modulation"), nullptr) << "made once, for all steps";
  }
  EXPECT_EQ(phases.size(), 3u);
  for (const auto& [phase, amount] : phases) EXPECT_EQ(amount.first, amount.second) << phase;
  EXPECT_EQ(phases["measured steps"].second, 2);
}

TEST(BenchStep, FloatLinearsRunNoGemm) {
  StepBenchRequest request = small_request();
  request.linears = Linears::floating;
  request.activations = Activations::f32;
  request.text_tokens = 0;
  const StepBench bench = bench_step(request, small_networks(test::small_dit(3, 192)), {});
  for (const StepBranch& branch : bench.branches) {
    EXPECT_EQ(branch.int8_tops, 0);
    ASSERT_NE(find(branch, "attention.qkv"), nullptr);
    EXPECT_EQ(find(branch, "attention.qkv")->op, "matmul");
    for (const StepOp& op : branch.ops) EXPECT_NE(op.op, "gemm");
  }
  EXPECT_EQ(bench.branches[0].tokens, bench.branches[1].tokens);
}

TEST(BenchStep, RequiredInt8) {
  StepBenchRequest request = small_request();
  request.require_int8 = true;
  EXPECT_GT(bench_step(request, small_networks(test::small_dit(3, 192)), {}).ms(), 0);
  request.linears = Linears::floating;
  EXPECT_ERROR_WITH(bench_step(request, small_networks(test::small_dit(3, 192)), {}),
                    "`require_int8`");
}

// What the networks below have done, and when they fail.
struct Troubles {
  int passes = 0, failing_pass = -1;
  int fillings = 0;
  bool has_room = true;
};

class TroubledTransformer : public ideogram4::Transformer {
 public:
  TroubledTransformer(Troubles& troubles, bool conditional)
      : Transformer(test::small_dit(2, 128), conditional), troubles_(troubles) {}

  void velocity(nn::Context& ctx, const models::Conditioning& conditioning,
                models::Timeline& timeline, const ConstTensorView& z,
                const TensorView& out) const override {
    if (troubles_.passes++ == troubles_.failing_pass) throw Error("this pass fails");
    Transformer::velocity(ctx, conditioning, timeline, z, out);
  }
  void visit(int64_t unit, nn::WeightVisitor& visitor) override {
    if (dynamic_cast<weights::RandomWeights*>(&visitor) != nullptr) {
      ++troubles_.fillings;
      // After the passes that only count memory.
      if (!troubles_.has_room && troubles_.passes > 0) throw Error("there is no room");
    }
    Transformer::visit(unit, visitor);
  }

 private:
  Troubles& troubles_;
};

// Whatever pass fails, the first, one of a step or the last, which is watched.
TEST(BenchStep, AFailedStepLeavesNothingBehind) {
  Troubles troubles;
  const auto bench = step_bencher(
      small_request(),
      [&](size_t network) { return std::make_unique<TroubledTransformer>(troubles, network == 0); },
      {});
  EXPECT_EQ(bench(small_request()).branches.size(), 2u);
  troubles.passes = 0;  // the first run also counts its memory
  bench(small_request());
  const int passes = troubles.passes, fillings = troubles.fillings;
  for (const int failing : {0, passes / 2, passes - 1}) {
    troubles.passes = 0;
    troubles.failing_pass = failing;
    EXPECT_ERROR_WITH(bench(small_request()), "this pass fails");
    const StepBench next = bench(small_request());
    EXPECT_NE(find(next.branches.at(1), "attention.qkv"), nullptr) << failing;
  }
  EXPECT_EQ(troubles.fillings, fillings) << "weights are made once";
}

TEST(BenchStep, WeightsThatHaveNoRoomAreNotTriedAgain) {
  Troubles troubles{.has_room = false};
  const auto bench = step_bencher(
      small_request(),
      [&](size_t network) { return std::make_unique<TroubledTransformer>(troubles, network == 0); },
      {});
  EXPECT_ERROR_WITH(bench(small_request()), "there is no room");
  const int fillings = troubles.fillings;
  EXPECT_ERROR_WITH(bench(small_request()), "there is no room");
  EXPECT_EQ(troubles.fillings, fillings);
}

TEST(BenchStep, RefusesWhatIsOutOfRange) {
  const auto sentence = [](auto change) {
    StepBenchRequest request = small_request();
    change(request);
    return test::error_of([&] { bench_step(request); });
  };
  for (const int side : {0, 264, 8208, -16}) {
    EXPECT_TRUE(test::contains(sentence([&](auto& r) { r.width = side; }), "image size")) << side;
  }
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.text_tokens = -1; }), "0 to 2048"));
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.text_tokens = 2049; }), "0 to 2048"));
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.steps = 0; }), "1 to 1000"));
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.layers = 35; }), "1 to 34"));
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.layers = 0; }), "at least 1"));
  EXPECT_TRUE(test::contains(sentence([](auto& r) { r.device = "tpu"; }), "tpu"));
}

}  // namespace
}  // namespace octet
