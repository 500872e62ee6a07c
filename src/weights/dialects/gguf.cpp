// Blocks of ggml in a GGUF file, under <module>.weight: Q8_0 is read, as a source. Tensors of plain
// elements in such files are plain here too.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"

namespace octet::weights {
namespace {

// Of Q8_0: a scale in F16, then 32 codes of consecutive inputs.
constexpr int64_t kBlock = 32;
constexpr int64_t kBlockBytes = 2 + kBlock;

class Q8Weight : public StoredWeight {
 public:
  Q8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint, module, rows, k), name_(module + ".weight") {
    const TensorInfo& info = find_tensor(checkpoint, name_);
    check(info.packing == "Q8_0",
          "{}: tensor {} is {}; of ggml's block types only Q8_0 is read, and F32, F16 and BF16",
          checkpoint.path(), Quoted{name_}, info.packing);
    check_rows_shape(checkpoint, name_, rows, k);
    dtype_ = DType::f32;  // a scale of 11 bits times a code of 8: BF16 would round
    format_ = "GGUF Q8_0";
    blocks_ = use(checkpoint, name_, info.packing);
  }

  void read_stored(int64_t row, std::byte* into) const override {
    const std::byte* from = blocks_.data() + row * (k() / kBlock) * kBlockBytes;
    auto* values = reinterpret_cast<float*>(into);
    bool finite = true;
    for (int64_t block = 0; block < k() / kBlock; ++block) {
      const float scale = load_as_f32(DType::f16, from, 0);
      finite = finite && std::isfinite(scale);
      const auto* codes = reinterpret_cast<const int8_t*>(from + 2);
      for (int64_t j = 0; j < kBlock; ++j) values[j] = scale * static_cast<float>(codes[j]);
      from += kBlockBytes;
      values += kBlock;
    }
    if (!finite) fail_damaged(name_, row);
  }

 private:
  std::string name_;
  std::span<const std::byte> blocks_;
};

bool stores_gguf(const Checkpoint& checkpoint, const std::string& module) {
  const TensorInfo* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && !weight->packing.empty();
}

}  // namespace

const Dialect kGgufDialect = {"gguf", "GGUF: Q8_0 blocks", stores_gguf, open_as<Q8Weight>};

}  // namespace octet::weights
