// Reading back what quantize() wrote.
#include <cmath>

#include "base/error.h"
#include "convert/quantize_plan.h"
#include "octet/error.h"

namespace octet::convert {
namespace {

// Half a step, and what F32 loses when rows are rotated in another order of additions.
constexpr float kStep = 0.51f;
// The deepest clip of quant::clip_ratios().
constexpr float kDeepestClip = 0.75f * 0.999f;

class Verification {
 public:
  Verification(ThreadPool& pool, const models::Family& family, const NetworkFiles& files,
               const std::string& path, const QuantizeOptions& options)
      : pool_(pool),
        options_(options),
        plan_(family, files),
        made_(family.open_network(files.network, {.path = path})),
        smoothing_(pool, plan_, options) {
    check(made_->config_text() == plan_.config_text(), "{}: its configuration is not that of {}",
          path, files.files.path);
  }

  const NetworkPlan& plan() const { return plan_; }
  bool folds() const {
    return options_.recipe.kind == Recipe::Kind::smoothquant && smoothing_.folds();
  }

  void module(const PlannedModule& module) {
    const auto made = made_->source().weight(module.name, module.rows, module.k);
    const weights::StoredParts parts = plan_.open(module);
    const quant::WeightRows rows = NetworkPlan::rows_of(module, parts);
    const ModuleTransform transform =
        module.large ? transform_of(module, options_, smoothing_) : ModuleTransform();
    check(module.large || !made->is_int8(), "{}: is INT8, expected floating point", module.name);
    check(!made->is_int8() || made->transform() == transform.activations,
          "{}: was written for other activations than the recipe's", module.name);
    if (folds()) smoothing_.row_divisor(module.name, module.rows - 1);  // made before threads ask
    pool_.run(module.rows, [&](int64_t row, int) {
      if (made->is_int8()) {
        int8_row(module, transform, rows, *made, row);
      } else {
        float_row(module, rows, *made, row);
      }
    });
    for (const auto& part : parts) part->finish_reading();
    made->finish_reading();
  }

  void vector(const PlannedVector& vector) {
    size_t count = 1;
    for (const int64_t extent : vector.shape) count *= static_cast<size_t>(extent);
    std::vector<float> was(count), is(count);
    plan_.source().read_vector(vector.name, vector.shape, was.data());
    made_->source().read_vector(vector.name, vector.shape, is.data());
    const std::vector<float>* divisors = folds() ? smoothing_.divisors(vector.name) : nullptr;
    for (size_t j = 0; j < count; ++j) {
      const float expected = divisors == nullptr ? was[j] : was[j] / (*divisors)[j];
      check(is[j] == expected, "{}: element {} is {}, expected {}", vector.name, j, is[j],
            expected);
    }
  }

 private:
  std::vector<float> expected_row(const PlannedModule& module, const quant::WeightRows& rows,
                                  int64_t row, DType dtype) {
    const bool changed = folds() && module.large;
    const float divisor = changed ? smoothing_.row_divisor(module.name, row) : 1;
    const auto k = static_cast<size_t>(rows.k());
    std::vector<std::byte> bytes(k * static_cast<size_t>(bits_of(dtype) / 8));
    rows.read_as(row, dtype, changed ? &smoothing_.columns(module.name) : nullptr, divisor,
                 bytes.data());
    std::vector<float> values(k);
    for (size_t j = 0; j < k; ++j) {
      values[j] = weights::load_as_f32(dtype, bytes.data(), static_cast<int64_t>(j));
    }
    return values;
  }

  void float_row(const PlannedModule& module, const quant::WeightRows& rows,
                 const weights::StoredWeight& made, int64_t row) {
    // FP8 that was kept is its codes times a scale: in F32, as those of the source are.
    const bool coded = made.raw() && made.raw()->dtype == DType::f8_e4m3;
    const std::vector<float> expected =
        expected_row(module, rows, row, coded ? DType::f32 : made.dtype());
    std::vector<float> got(expected.size());
    made.read(row, got.data());
    for (size_t j = 0; j < got.size(); ++j) {
      check(got[j] == expected[j], "{}: row {} column {} is {}, expected {}", module.name, row, j,
            got[j], expected[j]);
    }
  }

  void int8_row(const PlannedModule& module, const ModuleTransform& transform,
                const quant::WeightRows& rows, const weights::StoredWeight& made, int64_t row) {
    std::vector<float> expected = expected_row(module, rows, row, DType::f32);
    if (transform.weights.kind == Transform::rotate) {
      transform.weights.apply(expected.data(), rows.k());
    } else if (transform.weights.kind == Transform::smooth && !folds()) {
      for (size_t j = 0; j < expected.size(); ++j) expected[j] *= transform.weights.smooth[j];
    }
    std::vector<std::byte> codes(expected.size());
    made.read_stored(row, codes.data());
    const float scale = made.scale(row);
    // Rows so small that no scale holds them are zero; see Backend::quantize_rows().
    constexpr float kSmallest = 1e-36f;
    for (size_t j = 0; j < codes.size(); ++j) {
      const auto code = static_cast<float>(static_cast<int8_t>(codes[j]));
      const float error = std::abs(expected[j] - code * scale);
      const bool clipped = std::abs(code) == 127 && expected[j] * code > 0 &&
                           std::abs(expected[j]) <= 127 * scale / kDeepestClip;
      const bool lost = scale == 0 && code == 0 && error < kSmallest;
      check(error <= kStep * scale || clipped || lost,
            "{}: row {} column {} is {} times {}, too far from {}; write the file again",
            module.name, row, j, code, scale, expected[j]);
    }
  }

  ThreadPool& pool_;
  const QuantizeOptions& options_;
  NetworkPlan plan_;
  std::unique_ptr<models::Network> made_;
  Smoothing smoothing_;
};

}  // namespace

void verify(ThreadPool& pool, const models::Family& family,
            const std::vector<NetworkFiles>& networks, const std::string& path,
            const QuantizeOptions& options, const OnQuantizeStep& on_step) {
  std::vector<std::unique_ptr<Verification>> all;
  QuantizeStep step{.stage = QuantizeStage::verify};
  for (const NetworkFiles& network : networks) {
    all.push_back(std::make_unique<Verification>(pool, family, network, path, options));
    step.total += static_cast<int64_t>(all.back()->plan().source_bytes(/*large_only=*/false));
  }
  for (const auto& verification : all) {
    for (const PlannedModule& module : verification->plan().modules()) {
      verification->module(module);
      const auto parts = verification->plan().open(module);
      step.done += static_cast<int64_t>(NetworkPlan::rows_of(module, parts).bytes());
      if (on_step && !on_step(step)) throw Cancelled("stopped while verifying");
    }
    for (const PlannedVector& vector : verification->plan().vectors()) {
      verification->vector(vector);
    }
  }
}

}  // namespace octet::convert
