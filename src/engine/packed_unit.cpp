#include "engine/packed_unit.h"

#include "base/checked.h"

namespace octet::engine {
namespace {

// The same bytes elsewhere.
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

// As aligned as any backend's own memory.
constexpr int64_t kApart = 256;

size_t place_bytes(const Buffer& buffer) {
  return static_cast<size_t>(round_up(static_cast<int64_t>(buffer.bytes()), kApart));
}

// Memory that belongs to somebody else.
Buffer borrowed(std::byte* at, size_t bytes) {
  return {at, bytes, [](std::byte*) {}};
}

// Only sees the buffers of weights.
class EachBuffer : public nn::WeightVisitor {
 public:
  explicit EachBuffer(Move see) : see_(std::move(see)) {}
  void linear(nn::Linear& from, const nn::LinearSpec&) override { moved(from, see_); }
  void conv(nn::Conv& from, const nn::ConvSpec&) override { moved(from, see_); }
  void vector(nn::Vector& from, const std::string&, int64_t) override { moved(from, see_); }
  void table(nn::Table& from, const std::string&, int64_t, int64_t) override { moved(from, see_); }

 private:
  Move see_;
};

}  // namespace

class PackedUnit::Keeper : public nn::WeightVisitor {
 public:
  Keeper(PackedUnit& into, const Copy& copy)
      : into_(into), move_([this, &copy](const Buffer& from) -> Buffer {
          if (!from) return {};
          std::byte* to = into_.memory_.data() + at_;
          at_ += place_bytes(from);
          copy(to, from.data(), from.bytes());
          return borrowed(to, from.bytes());
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
  PackedUnit& into_;
  Move move_;
  size_t at_ = 0;
};

// A model lists its weights in the same order each time.
class PackedUnit::Attacher : public nn::WeightVisitor {
 public:
  Attacher(const PackedUnit& from, std::byte* at)
      : from_(from), move_([&from, at](const Buffer& kept) -> Buffer {
          if (!kept) return {};
          return borrowed(at + (kept.data() - from.data()), kept.bytes());
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

 private:
  const PackedUnit& from_;
  Move move_;
  size_t linear_ = 0, conv_ = 0, vector_ = 0, table_ = 0;
};

size_t PackedUnit::bytes_of(const Visit& visit) {
  size_t bytes = 0;
  EachBuffer sum([&bytes](const Buffer& buffer) -> Buffer {
    bytes += place_bytes(buffer);
    return {};
  });
  visit(sum);
  return bytes;
}

PackedUnit::PackedUnit(const Visit& visit, Buffer memory, const Copy& copy)
    : memory_(std::move(memory)) {
  Keeper keeper(*this, copy);
  visit(keeper);
}

void PackedUnit::attach(const Visit& visit, std::byte* at) const {
  Attacher attacher(*this, at);
  visit(attacher);
}

}  // namespace octet::engine
