// predict: the model finds figures of the measured card that it was not fitted to.
#include "measure/predict/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/tools/predict.h"

namespace octet::predict {
namespace {

constexpr double kTolerance = 0.2;
// Of the small part of a step that is neither linears nor attention, gaps between kernels among it.
constexpr double kRowTolerance = 0.4;

// What the issue of this model is judged by: each linear's time when no figure of its shape was
// fitted to, and each step's when no step was.
TEST(PredictCalibration, WithinAFifthOfWhatWasHeldOut) {
  const LeaveOneOut result = leave_one_out();
  EXPECT_GT(result.figures.size(), 100u);
  EXPECT_LT(result.worst_linear, kTolerance);
  EXPECT_LT(result.worst_step, kTolerance);
  for (const HeldOutFigure& figure : result.figures) {
    const bool is_rest = figure.what.ends_with("row passes");
    EXPECT_LT(std::abs(figure.error), is_rest ? kRowTolerance : kTolerance)
        << figure.what << ": measured " << figure.measured << ", predicted " << figure.predicted;
    EXPECT_DOUBLE_EQ(figure.error, figure.predicted / figure.measured - 1);
  }
}

// Figures that the model itself made are found again, whatever the coefficients.
TEST(PredictCalibration, FindsTheCoefficientsThatMadeTheFigures) {
  const Card& card = card_of("h200");
  Coefficients truth;
  truth.bf16_share = 0.7;
  truth.fp8_share = 0.75;
  truth.unhidden_wgmma = 0.3;
  truth.row_share = 0.6;
  truth.row_launch_us = 7;
  truth.attention_share = 0.65;
  truth.bf16_pj = 1.2;
  truth.int8_pj = 0.6;
  truth.fp8_pj = 0.9;
  Measured made = measured();
  for (MeasuredLinear& row : made.linears) {
    const auto time = row.product ? product_time : linear_time;
    row.cold_us = time(card, truth, row.path, Load::cold, row.m, row.n, row.k).us;
    row.load_us = time(card, truth, row.path, Load::steady, row.m, row.n, row.k).us;
  }
  for (MeasuredPass& row : made.quantize) {
    row.cold_us = row_pass_us(card, truth, 3.0 * double(row.m) * double(row.k));
  }
  for (MeasuredAttention& row : made.attention) {
    row.cold_us = attention_us(card, truth, row.kind, Load::cold, row.tokens, 18, 256);
    row.load_us = attention_us(card, truth, row.kind, Load::steady, row.tokens, 18, 256);
  }
  made.clocks.clear();
  for (const Path path : {Path::int8, Path::bf16, Path::fp8}) {
    made.clocks.push_back(
        {path, product_time(card, truth, path, Load::steady, 4608, 13824, 4608).clock_ghz});
  }
  const Coefficients found = fit(card, made);
  EXPECT_NEAR(found.bf16_share, truth.bf16_share, 0.02);
  EXPECT_NEAR(found.fp8_share, truth.fp8_share, 0.02);
  EXPECT_NEAR(found.unhidden_wgmma, truth.unhidden_wgmma, 0.05);
  EXPECT_NEAR(found.row_share, truth.row_share, 1e-9);
  EXPECT_NEAR(found.row_launch_us, truth.row_launch_us, 1e-6);
  EXPECT_NEAR(found.bf16_pj, truth.bf16_pj, 0.1);
}

TEST(PredictCalibration, WithoutFiguresACoefficientStaysAsItIs) {
  Measured empty;
  empty.card = "h200";
  const Coefficients found = fit(card_of("h200"), empty);
  EXPECT_EQ(found.bf16_share, Coefficients().bf16_share);
  EXPECT_EQ(found.softmax_clocks, Coefficients().softmax_clocks);
}

TEST(PredictCalibration, IsTheSameEachTime) {
  const Card& card = card_of(measured().card);
  const Coefficients a = fit(card, measured()), b = fit(card, measured());
  EXPECT_EQ(a.bf16_share, b.bf16_share);
  EXPECT_EQ(a.unhidden_wgmma, b.unhidden_wgmma);
  EXPECT_EQ(a.cold_power, b.cold_power);
}

}  // namespace
}  // namespace octet::predict
