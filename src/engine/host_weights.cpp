#include "engine/host_weights.h"

#include "base/error.h"

namespace octet::engine {
namespace {

// Copies one buffer between host and device.
using Move = std::function<Buffer(const Buffer&)>;

QWeight moved(const QWeight& from, const Move& move) {
  QWeight made{.n = from.n, .k = from.k, .gated = from.gated, .layout = from.layout};
  made.values = move(from.values);
  made.col_scale = move(from.col_scale);
  made.bias = move(from.bias);
  made.smooth = move(from.smooth);
  made.transform = from.transform;
  if (made.smooth) made.transform.smooth = made.smooth.view(DType::f32, {made.k});
  return made;
}

nn::LinearPart moved(const nn::LinearPart& from, const Move& move) {
  nn::LinearPart made{.n = from.n, .k = from.k, .dtype = from.dtype};
  if (from.quantized) made.quantized = moved(*from.quantized, move);
  made.weight = move(from.weight);
  made.bias = move(from.bias);
  if (from.rounding) {
    made.rounding = {.transform = from.rounding->transform, .smooth = move(from.rounding->smooth)};
    nn::LinearPart::Rounding& rounding = *made.rounding;
    if (rounding.smooth) rounding.transform.smooth = rounding.smooth.view(DType::f32, {made.k});
  }
  return made;
}

nn::Linear moved(const nn::Linear& from, const Move& move) {
  nn::Linear made{.layer = from.layer,
                  .name = from.name,
                  .n = from.n,
                  .k = from.k,
                  .precision = from.precision};
  for (const nn::LinearPart& part : from.parts) made.parts.push_back(moved(part, move));
  return made;
}

nn::Conv moved(const nn::Conv& from, const Move& move) {
  return {.layer = from.layer, .matrix = moved(from.matrix, move), .kernel = from.kernel};
}

nn::Vector moved(const nn::Vector& from, const Move& move) {
  return {.memory = move(from.memory), .length = from.length};
}

nn::Table moved(const nn::Table& from, const Move& move) {
  return {
      .memory = move(from.memory), .dtype = from.dtype, .rows = from.rows, .columns = from.columns};
}

uint64_t bytes_in(const nn::LinearPart& part) {
  uint64_t bytes = part.weight.bytes() + part.bias.bytes();
  if (part.quantized) {
    bytes += part.quantized->values.bytes() + part.quantized->col_scale.bytes() +
             part.quantized->bias.bytes() + part.quantized->smooth.bytes();
  }
  if (part.rounding) bytes += part.rounding->smooth.bytes();
  return bytes;
}

}  // namespace

class HostWeights::Keeper : public nn::WeightVisitor {
 public:
  Keeper(Backend& backend, HostWeights& into)
      : into_(into), move_([&backend](const Buffer& from) -> Buffer {
          if (!from) return {};
          Buffer to = backend.allocate_pinned(from.bytes());
          backend.copy_to_host(to.data(), from.data(), from.bytes());
          return to;
        }) {}

  void linear(nn::Linear& from, const nn::LinearSpec&) override {
    into_.linears_.push_back(moved(from, move_));
  }
  void conv(nn::Conv& from, const nn::ConvSpec&) override {
    into_.convs_.push_back(moved(from, move_));
  }
  void vector(nn::Vector& from, const std::string&, int64_t) override {
    into_.vectors_.push_back(moved(from, move_));
  }
  void table(nn::Table& from, const std::string&, int64_t, int64_t) override {
    into_.tables_.push_back(moved(from, move_));
  }

 private:
  HostWeights& into_;
  Move move_;
};

// A model lists its weights in the same order each time.
class HostWeights::Restorer : public nn::WeightVisitor {
 public:
  Restorer(Backend& backend, const HostWeights& from)
      : from_(from), move_([this, &backend](const Buffer& host) -> Buffer {
          if (!host) return {};
          try {
            Buffer to = backend.allocate(host.bytes());
            last_ = backend.prefetch(to.data(), host.data(), host.bytes());
            return to;
          } catch (...) {
            backend.wait(last_);  // before unfinished copies are released
            throw;
          }
        }) {}

  void linear(nn::Linear& into, const nn::LinearSpec&) override {
    into = moved(from_.linears_.at(linear_++), move_);
  }
  void conv(nn::Conv& into, const nn::ConvSpec&) override {
    into = moved(from_.convs_.at(conv_++), move_);
  }
  void vector(nn::Vector& into, const std::string&, int64_t) override {
    into = moved(from_.vectors_.at(vector_++), move_);
  }
  void table(nn::Table& into, const std::string&, int64_t, int64_t) override {
    into = moved(from_.tables_.at(table_++), move_);
  }

  Transfer last() const { return last_; }

 private:
  const HostWeights& from_;
  Move move_;
  Transfer last_;
  size_t linear_ = 0, conv_ = 0, vector_ = 0, table_ = 0;
};

void HostWeights::keep(Backend& backend, const Visit& visit) {
  *this = {};
  Keeper keeper(backend, *this);
  visit(keeper);
  kept_ = true;
}

void HostWeights::restore(Backend& backend, const Visit& visit) const {
  check(kept_, "host weights: nothing was kept");
  Restorer restorer(backend, *this);
  visit(restorer);
  backend.wait(restorer.last());
}

uint64_t HostWeights::bytes() const {
  uint64_t bytes = 0;
  for (const nn::Linear& linear : linears_) {
    for (const nn::LinearPart& part : linear.parts) bytes += bytes_in(part);
  }
  for (const nn::Conv& conv : convs_) bytes += bytes_in(conv.matrix);
  for (const nn::Vector& vector : vectors_) bytes += vector.memory.bytes();
  for (const nn::Table& table : tables_) bytes += table.memory.bytes();
  return bytes;
}

}  // namespace octet::engine
