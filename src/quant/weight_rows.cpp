#include "quant/weight_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/per_thread.h"

namespace octet::quant {

WeightRows::WeightRows(std::span<const std::unique_ptr<weights::StoredWeight>> weights,
                       int64_t first, int64_t rows)
    : weights_(weights), first_(first), rows_(rows) {
  check(!weights.empty(), "weight rows: there are no weights to take them from");
  k_ = weights.front()->k();
  dtype_ = weights.front()->dtype();
  int64_t total = 0;
  for (const auto& weight : weights) {
    total += weight->rows();
    stored_ = stored_ && weight->dtype() == dtype_ && !weight->is_int8() &&
              weight->transform().kind == Transform::none;
  }
  if (!stored_) dtype_ = DType::f32;
  check(first >= 0 && rows > 0 && first + rows <= total, "weight rows: {} from {} of {}", rows,
        first, total);
}

WeightRows::Place WeightRows::find(int64_t row) const {
  int64_t at = first_ + row;
  for (const auto& weight : weights_) {
    if (at < weight->rows()) return {weight.get(), at};
    at -= weight->rows();
  }
  fail("weight rows: row {} of {}", row, rows_);
}

void WeightRows::read(int64_t row, std::byte* into) const {
  const Place place = find(row);
  if (stored_) return place.weight->read_stored(place.row, into);
  place.weight->read(place.row, reinterpret_cast<float*>(into));
}

float WeightRows::scale(int64_t row) const {
  if (!stored_) return 1;
  const Place place = find(row);
  return place.weight->scale(place.row);
}

void WeightRows::read_as(int64_t row, DType dtype, const std::vector<float>* columns, float divisor,
                         std::byte* into) const {
  const float factor = scale(row) / divisor;
  if (dtype_ == dtype && columns == nullptr && factor == 1) return read(row, into);
  static PerThread<std::vector<std::byte>> stored_by_thread;
  std::vector<std::byte>& stored = stored_by_thread.get();
  stored.resize(static_cast<size_t>(k_ * (bits_of(dtype_) / 8)));
  read(row, stored.data());
  for (int64_t j = 0; j < k_; ++j) {
    float value = weights::load_as_f32(dtype_, stored.data(), j) * factor;
    if (columns != nullptr) value *= (*columns)[static_cast<size_t>(j)];
    weights::store_f32(value, dtype, into, j);
  }
}

void WeightRows::check_intact() const {
  for (const auto& weight : weights_) weight->check_intact();
}

uint64_t WeightRows::bytes() const {
  uint64_t bytes = 0;
  int64_t total = 0;
  for (const auto& weight : weights_) {
    bytes += weight->bytes();
    total += weight->rows();
  }
  return static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(rows_) /
                               static_cast<double>(total));
}

int64_t ChunkLimit::rows(const WeightRows& of) const {
  const int64_t row_bytes = of.k() * (bits_of(of.dtype()) / 8);
  return std::clamp<int64_t>(bytes / std::max<int64_t>(row_bytes, 1), 1, of.rows());
}

void quantize_chunks(Backend& backend, const WeightRows& rows, const ActivationTransform& transform,
                     std::span<const float> ratios, const ChunkLimit& limit,
                     const OnCodes& on_codes) {
  const int64_t k = rows.k(), row_bytes = k * (bits_of(rows.dtype()) / 8);
  const int64_t at_once = limit.rows(rows);
  const Buffer host = allocate_host(static_cast<size_t>(at_once * row_bytes));
  const Buffer host_codes = allocate_host(static_cast<size_t>(at_once * k));
  const Buffer host_scales = allocate_host(static_cast<size_t>(at_once) * sizeof(float));
  const Buffer values = backend.allocate(host.bytes());
  const Buffer codes = backend.allocate(host_codes.bytes());
  const Buffer scales = backend.allocate(host_scales.bytes());
  ActivationTransform here = transform;  // its vector has to lie where the backend works
  Buffer smooth;
  if (transform.kind == Transform::smooth) {
    smooth = backend.allocate(static_cast<size_t>(k) * sizeof(float));
    backend.copy_to_device(smooth.data(), transform.smooth.data, smooth.bytes());
    here.smooth = smooth.view(DType::f32, {k});
  }
  for (int64_t first = 0; first < rows.rows(); first += at_once) {
    const int64_t count = std::min(at_once, rows.rows() - first);
    backend.pool().run(
        count, [&](int64_t row, int) { rows.read(first + row, host.data() + row * row_bytes); });
    backend.copy_to_device(values.data(), host.data(), static_cast<size_t>(count * row_bytes));
    backend.quantize_rows_searched(
        values.view(rows.dtype(), {count, k}), here, ratios,
        {codes.view(DType::i8, {count, k}), scales.view(DType::f32, {count})});
    const QTensor made{host_codes.view(DType::i8, {count, k}),
                       host_scales.view(DType::f32, {count})};
    backend.copy_to_host(made.values.data, codes.data(), static_cast<size_t>(count * k));
    backend.copy_to_host(made.scales.data, scales.data(),
                         static_cast<size_t>(count) * sizeof(float));
    auto* of_rows = made.scales.as<float>();
    for (int64_t row = 0; row < count; ++row) {
      of_rows[row] *= rows.scale(first + row);
      check(std::isfinite(of_rows[row]),
            "a row of a weight is too large for INT8: its scale is {}; the checkpoint is damaged",
            of_rows[row]);
    }
    on_codes(first, made);
  }
}

std::vector<float> column_amax(ThreadPool& pool, const WeightRows& rows) {
  const int64_t k = rows.k();
  const int64_t tasks = std::min<int64_t>(rows.rows(), 64);
  std::vector<std::vector<float>> partial(static_cast<size_t>(tasks));
  pool.run(tasks, [&](int64_t task, int) {
    std::vector<float>& most = partial[static_cast<size_t>(task)];
    most.assign(static_cast<size_t>(k), 0);
    std::vector<std::byte> stored(static_cast<size_t>(k * (bits_of(rows.dtype()) / 8)));
    for (int64_t row = task; row < rows.rows(); row += tasks) {
      rows.read(row, stored.data());
      const float scale = std::abs(rows.scale(row));
      for (int64_t j = 0; j < k; ++j) {
        const float value = std::abs(weights::load_as_f32(rows.dtype(), stored.data(), j)) * scale;
        most[static_cast<size_t>(j)] = std::max(most[static_cast<size_t>(j)], value);
      }
    }
  });
  std::vector<float> amax(static_cast<size_t>(k), 0);
  for (const auto& most : partial) {
    for (size_t j = 0; j < amax.size(); ++j) amax[j] = std::max(amax[j], most[j]);
  }
  return amax;
}

}  // namespace octet::quant
