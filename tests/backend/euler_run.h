// Checks of a step of Euler's method: the bits of the sums that engine/sampler.h writes down.
#pragma once

#include "backend/model_run.h"

namespace octet::test::model {

// Everything that a step reads and writes, in a backend's memory.
class EulerRun {
 public:
  EulerRun(Backend& backend, DType type, int64_t rows, int64_t channels, std::mt19937& random)
      : backend_(backend),
        z_(random_matrix(DType::f32, rows, channels, random)),
        velocity_(DType::f32, rows, channels, channels + 1),
        rounded_(type, rows, channels, channels + 5) {
    for (size_t i = 0; i < kMostBranches; ++i) {
      branches_.push_back(random_matrix(type, rows, channels, random));
    }
  }

  // One branch for each weight. Returns whether an overflow was told.
  bool step(const std::vector<float>& weights, float delta, bool rounds = true) {
    std::vector<Operand> operands;
    for (GuardedMatrix& branch : branches_) operands.emplace_back(backend_, branch);
    Operand z(backend_, z_), velocity(backend_, velocity_), rounded(backend_, rounded_);
    std::vector<int32_t> flag = {0};
    const Buffer overflow = backend_.upload(std::as_bytes(std::span(flag)));
    std::array<BranchVelocity, kMostBranches> branches;
    for (size_t i = 0; i < weights.size(); ++i) branches[i] = {operands[i].view(), weights[i]};
    backend_.euler_step({.branches = branches,
                         .count = weights.size(),
                         .delta = delta,
                         .z = z.view(),
                         .velocity = velocity.view(),
                         .rounded = rounds ? rounded.view() : TensorView(),
                         .overflow = overflow.view(DType::i32, {1})});
    z.download();
    velocity.download();
    rounded.download();
    backend_.copy_to_host(reinterpret_cast<std::byte*>(flag.data()), overflow.data(), sizeof(int));
    EXPECT_TRUE(flag[0] == 0 || flag[0] == 1);
    return flag[0] == 1;
  }

  TensorView branch(size_t i) { return branches_[i].view(); }
  TensorView z() { return z_.view(); }
  TensorView velocity() { return velocity_.view(); }
  TensorView rounded() { return rounded_.view(); }

 private:
  Backend& backend_;
  std::vector<GuardedMatrix> branches_;
  GuardedMatrix z_, velocity_, rounded_;
};

inline void expect_euler_step_right(Backend& backend) {
  std::mt19937 random(17);
  for (const DType type : kTypes) {
    for (const auto& [rows, channels] : {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {300, 128}}) {
      for (const std::vector<float>& weights : {std::vector{1.0f},
                                                {0.3f},
                                                {7.0f, -6.0f},
                                                {0.3f, 0.7f},
                                                {2.5f, -0.9f, -0.6f},
                                                {0.1f, 0.2f, 0.3f, 0.4f}}) {
        EulerRun run(backend, type, rows, channels, random);
        GuardedMatrix before = [&] {
          GuardedMatrix copy(DType::f32, rows, channels);
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < channels; ++j)
              copy.view().row<float>(i)[j] = run.z().row<float>(i)[j];
          }
          return copy;
        }();
        const float delta = 0.0371f;
        EXPECT_FALSE(run.step(weights, delta));
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < channels; ++j) {
            float v = weights[0] * read_element(run.branch(0), i, j);
            if (weights == std::vector{1.0f}) v = read_element(run.branch(0), i, j);
            for (size_t b = 1; b < weights.size(); ++b) {
              const volatile float other = weights[b] * read_element(run.branch(b), i, j);
              v = v + other;
            }
            const volatile float moved = delta * v;
            const float z = before.view().row<float>(i)[j] + moved;
            ASSERT_EQ(run.velocity().row<float>(i)[j], v) << i << " " << j;
            ASSERT_EQ(run.z().row<float>(i)[j], z) << i << " " << j;
            const float want = type == DType::bf16 ? to_f32(from_f32<bf16_t>(z)) : z;
            ASSERT_EQ(read_element(run.rounded(), i, j), want) << i << " " << j;
          }
        }
      }
    }
  }
}

inline void expect_euler_step_tells_of_overflow(Backend& backend) {
  std::mt19937 random(18);
  for (const DType type : kTypes) {
    for (const float broken : {kNaN, kInf, -kInf}) {
      EulerRun run(backend, type, 33, 20, random);
      EXPECT_FALSE(run.step({7, -6}, 0.5f, /*rounds=*/false));
      write_element(run.branch(1), 32, 19, broken);
      EXPECT_FALSE(run.step({1}, 0.5f)) << "it is not read";
      EXPECT_TRUE(run.step({7, -6}, 0.5f));
    }
    EulerRun run(backend, type, 33, 20, random);
    write_element(run.branch(0), 0, 0, 3e38f);
    EXPECT_TRUE(run.step({7, -6}, 0.5f)) << "the velocity overflows";
  }
}

}  // namespace octet::test::model
