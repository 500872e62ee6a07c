// bitsandbytes' 4 bits: <module>.weight holds the codes of the flattened weight, two in a byte with
// the even element in the high nibble; <module>.weight.absmax one factor per block of consecutive
// elements, which may begin in one row and end in another; <module>.weight.quant_map the values of
// the 16 codes. With double quantisation the factors are codes themselves, of a book of 256.
#include <array>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"
#include "weights/dialects/nf4_state.h"

namespace octet::weights {
namespace {

constexpr const char* kStates[] = {".weight.quant_state.bitsandbytes__nf4",
                                   ".weight.quant_state.bitsandbytes__fp4"};
constexpr uint64_t kMaxStateBytes = 65'536;

std::string state_name(const Checkpoint& checkpoint, const std::string& module) {
  for (const char* suffix : kStates) {
    if (checkpoint.find(module + suffix) != nullptr) return module + suffix;
  }
  return {};
}

// Throws Error unless the tensor has this type and this many elements, in any shape.
void check_count(const Checkpoint& checkpoint, const std::string& name, DType dtype,
                 int64_t count) {
  const TensorInfo& info = find_tensor(checkpoint, name);
  check(info.dtype == dtype && info.elements() == static_cast<uint64_t>(count),
        "{}: tensor {} is {} {}, expected {} with {} elements", checkpoint.path(), Quoted{name},
        name_of(info.dtype), to_string(info.shape), name_of(dtype), count);
}

class Nf4Weight : public StoredWeight {
 public:
  Nf4Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint, module, rows, k), name_(module + ".weight") {
    state_ = read_state(checkpoint, state_name(checkpoint, module));
    const auto count = checked_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(k));
    check(count && *count < uint64_t{1} << 62, "{}: tensor {} has too many elements",
          checkpoint.path(), Quoted{name_});
    const auto elements = static_cast<int64_t>(*count);
    const int64_t blocks = ceil_div(elements, state_.block);
    check_count(checkpoint, name_, DType::u8, ceil_div(elements, 2));
    codes_ = use(checkpoint, name_);
    check_count(checkpoint, name_ + ".absmax", nested() ? DType::u8 : DType::f32, blocks);
    absmax_ = use(checkpoint, name_ + ".absmax");
    read_book(checkpoint);
    if (nested()) use_nested(checkpoint, blocks);
    dtype_ = DType::f32;
    format_ = state_.quant_type == "nf4" ? "NF4" : "FP4";
    if (nested()) format_ += ", double quantisation";
  }

  void read_stored(int64_t row, std::byte* into) const override {
    auto* values = reinterpret_cast<float*>(into);
    const int64_t begin = row * k(), end = begin + k();
    bool finite = true;
    for (int64_t at = begin; at < end;) {
      const int64_t block = at / state_.block;
      const int64_t stop = std::min(end, (block + 1) * state_.block);
      const float factor = absmax(block);
      finite = finite && std::isfinite(factor);
      read_span(at, stop, factor, values + (at - begin));
      at = stop;
    }
    if (!finite) fail_damaged(name_ + ".absmax", row);
  }

 private:
  bool nested() const { return state_.nested_block != 0; }

  Nf4State read_state(const Checkpoint& checkpoint, const std::string& name) {
    const TensorInfo& info = find_tensor(checkpoint, name);
    const std::string what = fmt::format("{}: tensor {}", checkpoint.path(), in_quotes(name));
    check(info.dtype == DType::u8 && info.bytes() <= kMaxStateBytes,
          "{} is {} {}, expected U8 with the bytes of a JSON text of at most {}", what,
          name_of(info.dtype), to_string(info.shape), kMaxStateBytes);
    const std::span<const std::byte> bytes = use(checkpoint, name);
    const Nf4State state = parse_nf4_state(
        parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, what), what);
    check(state.rows == rows() && state.k == k(),
          "{}: the weight is [{}, {}], expected [{}, {}] by the configuration", what, state.rows,
          state.k, rows(), k());
    return state;
  }

  // Both values of every byte: one load instead of two shifts and two loads.
  void read_book(const Checkpoint& checkpoint) {
    float values[16];
    read_vector(checkpoint, name_ + ".quant_map", {16}, values);
    use(checkpoint, name_ + ".quant_map");
    for (size_t byte = 0; byte < pairs_.size(); ++byte) {
      pairs_[byte] = {values[byte >> 4], values[byte & 15]};
    }
  }

  void use_nested(const Checkpoint& checkpoint, int64_t blocks) {
    read_vector(checkpoint, name_ + ".nested_quant_map", {256}, nested_book_.data());
    use(checkpoint, name_ + ".nested_quant_map");
    check_count(checkpoint, name_ + ".nested_absmax", DType::f32,
                ceil_div(blocks, state_.nested_block));
    nested_absmax_ = use(checkpoint, name_ + ".nested_absmax");
  }

  float absmax(int64_t block) const {
    if (!nested()) return load_as_f32(DType::f32, absmax_.data(), block);
    const auto code = static_cast<uint8_t>(absmax_[static_cast<size_t>(block)]);
    return nested_book_[code] *
               load_as_f32(DType::f32, nested_absmax_.data(), block / state_.nested_block) +
           state_.nested_offset;
  }

  // Elements [at, stop) of the flattened weight, all of one block.
  void read_span(int64_t at, int64_t stop, float factor, float* into) const {
    const auto* codes = reinterpret_cast<const uint8_t*>(codes_.data());
    if (at < stop && at % 2 != 0) *into++ = pairs_[codes[at++ / 2]][1] * factor;
    const int64_t pairs = (stop - at) / 2;
    const uint8_t* from = codes + at / 2;
    for (int64_t i = 0; i < pairs; ++i) {
      const std::array<float, 2>& pair = pairs_[from[i]];
      into[2 * i] = pair[0] * factor;
      into[2 * i + 1] = pair[1] * factor;
    }
    if ((stop - at) % 2 != 0) into[2 * pairs] = pairs_[from[pairs]][0] * factor;
  }

  std::string name_;
  Nf4State state_;
  std::span<const std::byte> codes_, absmax_, nested_absmax_;
  std::array<std::array<float, 2>, 256> pairs_;
  std::array<float, 256> nested_book_{};
};

bool stores_nf4(const Checkpoint& checkpoint, const std::string& module) {
  return !state_name(checkpoint, module).empty();
}

}  // namespace

const Dialect kNf4Dialect = {"bitsandbytes", "bitsandbytes: NF4 or FP4, also doubly quantised",
                             stores_nf4, open_as<Nf4Weight>};

}  // namespace octet::weights
