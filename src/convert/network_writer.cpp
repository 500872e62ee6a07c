#include <algorithm>

#include "base/thread_pool.h"
#include "convert/quantize_plan.h"
#include "quant/recipe.h"

namespace octet::convert {
namespace {

void put(ResumableSafetensors& file, const std::string& name, uint64_t offset,
         std::span<const std::byte> bytes) {
  if (!file.is_finished(name)) file.write(name, offset, bytes);
}

void finish(ResumableSafetensors& file, const std::string& name) {
  if (!file.is_finished(name)) file.finish(name);
}

}  // namespace

bool folds_smoothing(const QuantizeOptions& options) {
  return options.recipe.kind == Recipe::Kind::smoothquant &&
         !weights::can_say(options.dialect, Transform::smooth);
}

NetworkWriter::NetworkWriter(Backend& backend, const NetworkPlan& plan,
                             const QuantizeOptions& options,
                             const std::set<std::string>& protected_modules,
                             quant::ChunkLimit limit)
    : backend_(backend),
      plan_(plan),
      options_(options),
      protected_modules_(protected_modules),
      limit_(limit),
      prefix_(options.dialect == OutputDialect::transformerlab ? plan.prefix() : ""),
      folds_(folds_smoothing(options)),
      smoothing_(backend.pool(), plan, options) {}

bool NetworkWriter::is_int8(const PlannedModule& module) const {
  return module.large && !protected_modules_.contains(module.name);
}

std::optional<weights::KeptFp8> NetworkWriter::kept_fp8(const PlannedModule& module,
                                                        const weights::StoredParts& parts) const {
  const bool whole = parts.size() == 1 && parts.front()->rows() == module.rows;
  if (module.large || !module.is_linear || !whole) return std::nullopt;
  return weights::kept_fp8(options_.dialect, *parts.front());
}

// The type of a module that stays in floating point: as it was, where it was that. Of other formats
// (FP8 and a scale per row) F32 holds the very values; of large ones, which are protected by
// choice, BF16 has to do. Large ones may be multiplied by factors.
DType NetworkWriter::float_type(const PlannedModule& module,
                                const weights::StoredParts& parts) const {
  const DType dtype = parts.front()->dtype();
  const bool plain = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return part->dtype() == dtype && part->format() == name_of(dtype);
  });
  if (!plain) return module.large ? DType::bf16 : DType::f32;
  return module.large ? with_room(dtype) : dtype;
}

// F16 may have no room for a factor.
DType NetworkWriter::with_room(DType dtype) const {
  return folds_ && dtype == DType::f16 ? DType::f32 : dtype;
}

void NetworkWriter::declare(std::vector<TensorDeclaration>& tensors) const {
  for (const PlannedModule& module : plan_.modules()) {
    if (is_int8(module)) {
      // Of the transform, only its kind decides over names and shapes.
      weights::StoredTransform kind;
      if (const int64_t group = quant::group_for(options_.recipe, module.k)) {
        kind = {Transform::rotate, {}, group};
      } else if (options_.recipe.kind == Recipe::Kind::smoothquant && !folds_) {
        kind.kind = Transform::smooth;
      }
      const auto declared = weights::declare_int8(options_.dialect, prefix_ + module.name,
                                                  module.rows, module.k, kind);
      tensors.insert(tensors.end(), declared.begin(), declared.end());
      continue;
    }
    const std::string name = prefix_ + module.name;
    const weights::StoredParts parts = plan_.open(module);
    if (const auto kept = kept_fp8(module, parts)) {
      const auto declared =
          weights::declare_fp8(options_.dialect, name, module.rows, module.k, *kept);
      tensors.insert(tensors.end(), declared.begin(), declared.end());
    } else {
      tensors.push_back({name + ".weight", float_type(module, parts), {module.rows, module.k}});
    }
  }
  for (const PlannedVector& vector : plan_.vectors()) {
    const TensorInfo& info = plan_.source().check_vector(vector.name, vector.shape);
    tensors.push_back({prefix_ + vector.name, with_room(info.dtype), vector.shape});
  }
}

uint64_t NetworkWriter::write(ResumableSafetensors& file, const PlannedModule& module) {
  const weights::StoredParts parts = plan_.open(module);
  const quant::WeightRows rows = NetworkPlan::rows_of(module, parts);
  if (is_int8(module)) {
    write_int8(file, module, rows);
  } else if (const auto kept = kept_fp8(module, parts)) {
    write_fp8(file, module, *parts.front(), *kept);
  } else {
    write_float(file, module, rows, float_type(module, parts));
  }
  for (const auto& part : parts) part->finish_reading();
  return rows.bytes();
}

void NetworkWriter::write_int8(ResumableSafetensors& file, const PlannedModule& module,
                               const quant::WeightRows& rows) {
  const std::string name = prefix_ + module.name;
  const weights::Int8Names names = weights::int8_names(options_.dialect, name, {});
  const std::string smooth_name =
      weights::int8_names(options_.dialect, name, {.kind = Transform::smooth}).smooth;
  const bool smooths = options_.recipe.kind == Recipe::Kind::smoothquant && !folds_;
  const bool done = file.is_finished(names.codes) && file.is_finished(names.scales) &&
                    (!smooths || file.is_finished(smooth_name)) &&
                    (names.marker.empty() || file.is_finished(names.marker));
  if (done) return;
  const ModuleTransform transform = transform_of(module, options_, smoothing_);
  quantize_chunks(backend_, rows, transform.weights.view(), quant::clip_ratios(options_.clip),
                  limit_, [&](int64_t first, const QTensor& codes) {
                    auto* scales = codes.scales.as<float>();
                    for (int64_t row = 0; folds_ && row < codes.rows(); ++row) {
                      scales[row] /= smoothing_.row_divisor(module.name, first + row);
                    }
                    const auto count = static_cast<size_t>(codes.rows());
                    put(file, names.codes, static_cast<uint64_t>(first * module.k),
                        {codes.values.data, count * static_cast<size_t>(module.k)});
                    put(file, names.scales, static_cast<uint64_t>(first) * sizeof(float),
                        {codes.scales.data, count * sizeof(float)});
                  });
  rows.check_intact();
  finish(file, names.codes);
  finish(file, names.scales);
  if (smooths) {
    // The file says by what activations are divided.
    put(file, smooth_name, 0, std::as_bytes(std::span(transform.weights.smooth)));
    finish(file, smooth_name);
  }
  if (!names.marker.empty()) {
    const std::string marker = comfy_quant(transform.activations);
    put(file, names.marker, 0, std::as_bytes(std::span(marker)));
    finish(file, names.marker);
  }
}

void NetworkWriter::write_fp8(ResumableSafetensors& file, const PlannedModule& module,
                              const weights::StoredWeight& weight, const weights::KeptFp8& kept) {
  const weights::Int8Names names = weights::int8_names(options_.dialect, prefix_ + module.name, {});
  const weights::UsedTensor& codes = weight.tensors()[weight.raw()->tensor];
  const auto k = static_cast<size_t>(module.k), rows = static_cast<size_t>(module.rows);
  const size_t at_once = std::max<size_t>(1, static_cast<size_t>(limit_.bytes) / k);
  std::vector<std::byte> chunk(std::min(at_once, rows) * k), wide(k * sizeof(bf16_t));
  for (size_t first = 0; first < rows; first += at_once) {
    const std::span<std::byte> part(chunk.data(), std::min(at_once, rows - first) * k);
    codes.copy(first * k, part.size(), part.data());
    if (!weights::all_finite(part, DType::f8_e4m3, DType::f32)) {  // reading says which row it is
      for (size_t row = first; row < rows; ++row) {
        weight.read_stored(static_cast<int64_t>(row), wide.data());
      }
    }
    put(file, names.codes, first * k, part);
  }
  weight.check_intact();
  put(file, names.scales, 0, std::as_bytes(std::span(&kept.scale, 1)));
  put(file, names.marker, 0, std::as_bytes(std::span(kept.marker)));
  for (const std::string& name : {names.codes, names.scales, names.marker}) finish(file, name);
}

void NetworkWriter::write_float(ResumableSafetensors& file, const PlannedModule& module,
                                const quant::WeightRows& rows, DType dtype) {
  const std::string name = prefix_ + module.name + ".weight";
  if (file.is_finished(name)) return;
  const bool changed = folds_ && module.large;
  const std::vector<float>* columns = changed ? &smoothing_.columns(module.name) : nullptr;
  const int64_t row_bytes = module.k * (bits_of(dtype) / 8), at_once = limit_.rows(rows);
  std::vector<std::byte> chunk(static_cast<size_t>(at_once * row_bytes));
  if (changed) smoothing_.row_divisor(module.name, module.rows - 1);  // made before threads ask
  for (int64_t first = 0; first < module.rows; first += at_once) {
    const int64_t count = std::min(at_once, module.rows - first);
    backend_.pool().run(count, [&](int64_t i, int) {
      const int64_t row = first + i;
      const float divisor = changed ? smoothing_.row_divisor(module.name, row) : 1;
      rows.read_as(row, dtype, columns, divisor, chunk.data() + i * row_bytes);
    });
    file.write(name, static_cast<uint64_t>(first * row_bytes),
               std::span(chunk).first(static_cast<size_t>(count * row_bytes)));
  }
  rows.check_intact();
  file.finish(name);
}

void NetworkWriter::write(ResumableSafetensors& file, const PlannedVector& vector) {
  const std::string name = prefix_ + vector.name;
  if (file.is_finished(name)) return;
  const weights::WeightSource& source = plan_.source();
  const std::vector<float>* divisors = folds_ ? smoothing_.divisors(vector.name) : nullptr;
  const TensorInfo& info = source.check_vector(vector.name, vector.shape);
  std::vector<float> values(info.elements());
  source.read_vector(vector.name, vector.shape, values.data());  // refuses NaNs and infinities
  const DType dtype = with_room(info.dtype);
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
  for (size_t j = 0; j < values.size(); ++j) {
    const float value = divisors == nullptr ? values[j] : values[j] / (*divisors)[j];
    weights::store_f32(value, dtype, bytes.data(), static_cast<int64_t>(j));
  }
  file.write(name, 0, bytes);
  file.finish(name);
}

}  // namespace octet::convert
