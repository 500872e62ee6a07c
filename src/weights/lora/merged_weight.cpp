// A weight with LoRAs in it: rows of W + sum of factor * B A, in F32.
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/per_thread.h"
#include "formats/text.h"
#include "weights/lora/lora.h"

namespace octet::weights {
namespace {

// out [k] += sum over the rows r of a [rank, k] of b[r] * a[r]; four rows in one pass over `out`.
void add_rows(const float* b, const float* __restrict a, int64_t rank, int64_t k,
              float* __restrict out) {
  int64_t r = 0;
  for (; r + 4 <= rank; r += 4) {
    const float b0 = b[r], b1 = b[r + 1], b2 = b[r + 2], b3 = b[r + 3];
    const float *a0 = a + r * k, *a1 = a0 + k, *a2 = a1 + k, *a3 = a2 + k;
    for (int64_t j = 0; j < k; ++j) {
      out[j] += (b0 * a0[j] + b1 * a1[j]) + (b2 * a2[j] + b3 * a3[j]);
    }
  }
  for (; r < rank; ++r) {
    const float *row = a + r * k, b0 = b[r];
    for (int64_t j = 0; j < k; ++j) out[j] += b0 * row[j];
  }
}

// One LoRA's part in the rows of one weight.
class MergedPart {
 public:
  // Row `row` of the weight is row `row - first` of the part.
  MergedPart(std::shared_ptr<const Lora> lora, const LoraPart& part, int64_t first)
      : lora_(std::move(lora)), part_(part), first_(first) {}

  const LoraPart& part() const { return part_; }

  // Several threads may call it.
  void add(int64_t row, float* into) const {
    row -= first_;
    if (row < 0 || row >= part_.rows) return;
    static PerThread<std::vector<float>> up_by_thread;
    std::vector<float>& up = up_by_thread.get();
    const int64_t count = part_.rank > 0 ? part_.rank : part_.k;
    up.resize(static_cast<size_t>(count));
    read(part_.up, row * count, count, up.data());
    for (float& value : up) value *= part_.factor;
    if (part_.rank == 0) {
      for (int64_t j = 0; j < count; ++j) into[j] += up[static_cast<size_t>(j)];
      return;
    }
    // Here and not before: most weights are opened once more than they are read, and only those
    // that are being read should take memory.
    std::call_once(down_is_read_, [&] {
      down_.resize(static_cast<size_t>(part_.rank * part_.k));
      read(part_.down, 0, part_.rank * part_.k, down_.data());
    });
    add_rows(up.data(), down_.data(), part_.rank, part_.k, into);
  }

 private:
  void read(const LoraMatrix& matrix, int64_t first, int64_t count, float* into) const {
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) {
      into[i] = load_as_f32(matrix.dtype, matrix.bytes.data(), first + i);
      finite = finite && std::isfinite(into[i]);
    }
    check(finite, "{}: tensor {} holds a NaN or an infinity; the LoRA is damaged", lora_->path(),
          Quoted{matrix.name});
  }

  std::shared_ptr<const Lora> lora_;  // which part_ lies in
  const LoraPart& part_;
  int64_t first_;
  mutable std::once_flag down_is_read_;
  mutable std::vector<float> down_;  // [rank, k]
};

using MergedParts = std::vector<std::unique_ptr<MergedPart>>;

class MergedWeight : public StoredWeight {
 public:
  MergedWeight(std::unique_ptr<StoredWeight> base, MergedParts parts)
      : StoredWeight(base->path(), base->module(), base->rows(), base->k()),
        base_(std::move(base)),
        parts_(std::move(parts)) {
    dtype_ = DType::f32;
    for_int8_ = base_->for_int8();
    transform_ = base_->transform();
    format_ = base_->format() + " + LoRA";
    use(*base_);
    for (const auto& merged : parts_) {
      const LoraPart& part = merged->part();
      use({"LoRA " + part.up.name, part.up.bytes, part.up.file});
      if (part.rank > 0) use({"LoRA " + part.down.name, part.down.bytes, part.down.file});
      use({"LoRA " + part.up.name + " factor", std::as_bytes(std::span(&part.factor, 1))});
    }
  }

  // The LoRA was made for the weight itself: it is added before the transform, never after it.
  void read_stored(int64_t row, std::byte* into) const override {
    auto* values = reinterpret_cast<float*>(into);
    base_->read(row, values);
    for (const auto& part : parts_) part->add(row, values);
    transform_.apply(values, k());
    bool finite = true;
    for (int64_t j = 0; j < k(); ++j) finite = finite && std::isfinite(values[j]);
    check(finite, "{}: row {} of {} overflows with the LoRA merged; give it a smaller strength",
          path(), row, Quoted{module()});
  }

 private:
  std::unique_ptr<StoredWeight> base_;
  MergedParts parts_;
};

}  // namespace

WeightSource::Change merge_loras(std::vector<std::shared_ptr<const Lora>> loras, size_t network) {
  return [loras = std::move(loras), network](std::unique_ptr<StoredWeight> base,
                                             const std::string& name) {
    MergedParts parts;
    for (const auto& lora : loras) {
      const LoraModule* module = lora->modules(network).find(name);
      if (module == nullptr) continue;
      for (const LoraPart* part : lora->parts_of(*module, network)) {
        parts.push_back(std::make_unique<MergedPart>(lora, *part, part->first - module->first));
      }
    }
    if (parts.empty()) return base;
    return std::unique_ptr<StoredWeight>(
        std::make_unique<MergedWeight>(std::move(base), std::move(parts)));
  };
}

}  // namespace octet::weights
