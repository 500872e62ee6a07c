#include "models/block_shape.h"

#include <algorithm>

#include "models/footprint.h"
#include "nn/linear_list.h"

namespace octet::models {
namespace {

class AttentionSeen : public OpObserver {
 public:
  void before(std::string_view) override {}
  void after(const OpRecord& record) override {
    if (record.attention == nullptr) return;
    heads = record.attention->heads;
    head_size = record.attention->head_dim();
  }
  int64_t heads = 0, head_size = 0;
};

// By the smallest pass that there is.
AttentionSeen attention_in(Network& network) {
  CountedRun run({.int8 = false});
  run.add(network);
  AttentionSeen seen;
  nn::Context& ctx = run.ctx();
  ctx.backend.set_op_observer(&seen);
  const std::vector<float> features(
      static_cast<size_t>(network.sees_text() ? network.text_features() : 0));
  const auto conditioning = network.prepare(ctx, features, {1, 1});
  const nn::Matrix z = ctx.matrix(1, network.latent_channels());
  const nn::Matrix out = ctx.matrix(1, network.latent_channels());
  network.velocity_at(ctx, *conditioning, z, 0, out);
  return seen;
}

}  // namespace

BlockShape block_shape(const Family& family) {
  const auto one = family.synthetic_network(0, /*layers=*/1);
  BlockShape shape;
  shape.layers = family.synthetic_network(0, /*layers=*/0)->pass_units() - one->pass_units() + 1;
  nn::LinearList list;
  one->visit_all(list);
  shape.linears = list.large();
  const AttentionSeen attention = attention_in(*one);
  shape.heads = attention.heads;
  shape.head_size = attention.head_size;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    shape.sees_text.push_back(family.synthetic_network(i, 1)->sees_text());
  }
  return shape;
}

int64_t image_tokens(const Family& family, int64_t pixels) {
  const int64_t side = pixels / family.sizes.token_side;
  return side * side;
}

GemmShape shape_of(const nn::LinearSpec& spec, int64_t rows) {
  return {rows, spec.n(), spec.k, spec.order == RowOrder::gate_up};
}

GemmShape usual_linear(const Family& family) {
  const auto linears = block_shape(family).linears;
  const auto smaller = [](const nn::LinearSpec& a, const nn::LinearSpec& b) {
    return a.n() * a.k < b.n() * b.k;
  };
  const int side = family.sizes.token_side;
  return shape_of(*std::min_element(linears.begin(), linears.end(), smaller),
                  int64_t{family.usual_size.width / side} * (family.usual_size.height / side));
}

}  // namespace octet::models
