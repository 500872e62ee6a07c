// Linears::automatic: some linears of a network in floating point, the others in INT8.
#include "devices/select.h"
#include "engine/part_store.h"
#include "engine/toy_fixture.h"
#include "models/footprint.h"
#include "weights/random_weights.h"

namespace octet::test {
namespace {

using AutomaticLinears = ToyFamily;

// The precisions of large linears, by name.
class Precisions : public nn::WeightVisitor {
 public:
  void linear(nn::Linear& into, const nn::LinearSpec& spec) override {
    if (spec.large) found[spec.name()] = into.precision;
  }
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string&, int64_t) override {}
  void table(nn::Table&, const std::string&, int64_t, int64_t) override {}

  std::map<std::string, nn::Precision> found;
};

TEST_F(AutomaticLinears, TheChosenOnesAreLoadedAndCountedInFloatingPoint) {
  const models::Family& family = toy_family();
  const models::Model model = family.open(family.find({.model = model_}), {});
  models::Network& network = *model.networks.front();
  const auto is_chosen = [](const nn::LinearSpec& spec) {
    return spec.large && spec.name().ends_with(".look");
  };
  // Without the padding of a layout, which outweighs so small a network.
  const models::WeightBytes int8 = models::weight_bytes(network, {});
  const models::WeightBytes mixed = models::weight_bytes(network, {.floating = is_chosen});
  const models::WeightBytes floating = models::weight_bytes(network, {.int8 = false});
  EXPECT_GT(mixed.all, int8.all);
  EXPECT_LT(mixed.all, floating.all);
  const auto all = [](const nn::LinearSpec& spec) { return spec.large; };
  EXPECT_EQ(models::weight_bytes(network, {.floating = all}).all, floating.all);
  EXPECT_EQ(models::weight_bytes(network, {.int8 = false, .floating = is_chosen}).all,
            floating.all);

  const auto backend = select_backend({.device = "cpu", .threads = 1});
  engine::PartStore store(network, {.backend = *backend, .dtype = DType::bf16}, Residency::device);
  store.rules().floating = is_chosen;
  store.load();
  Precisions precisions;
  network.visit_all(precisions);
  int chosen = 0;
  for (const auto& [name, precision] : precisions.found) {
    const bool floats = name.ends_with(".look");
    chosen += floats ? 1 : 0;
    EXPECT_EQ(precision, floats ? nn::Precision::floating : nn::Precision::int8) << name;
  }
  EXPECT_EQ(chosen, kBlocks);
}

TEST_F(AutomaticLinears, WithoutPlansEverythingIsInt8) {
  ModelOptions automatic = options();
  automatic.linears = Linears::automatic;
  const Rendered made = render(automatic), int8 = render(options());
  EXPECT_TRUE(same(made, int8));
  EXPECT_EQ(made.report.linears.int8, kLinears * kBlocks);
  EXPECT_EQ(made.report.linears.floating, 0);
}

TEST_F(AutomaticLinears, TheTextEncoderHasNone) {
  ModelOptions automatic = options();
  automatic.text_encoder_linears = Linears::automatic;
  EXPECT_EQ(wrong_field([&] { render(automatic); }), "text_encoder_linears");
}

}  // namespace
}  // namespace octet::test
