#include "weights/loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace octet::weights {
namespace {

using nn::LinearSpec;
using Layout = std::vector<LinearSpec::Part>;

constexpr int64_t kChunkBytes = int64_t{64} << 20;  // on its way to a device at a time

int64_t rows_of(std::span<const std::unique_ptr<StoredWeight>> weights) {
  int64_t rows = 0;
  for (const auto& weight : weights) rows += weight->rows();
  return rows;
}

// Rows [first, first + count) of codes and scales.
QTensor rows_of(const QTensor& all, int64_t first, int64_t count) {
  return {TensorView(all.values.data + first * all.k(), DType::i8, {count, all.k()}),
          TensorView(all.scales.data + first * static_cast<int64_t>(sizeof(float)), DType::f32,
                     {count})};
}

}  // namespace

Fingerprint Loader::loaded(const StoredWeight& weight) {
  Fingerprint of_weight;
  for (const UsedTensor& tensor : weight.tensors()) {
    const bool counts = options_.fingerprint && !source_.is_converted(weight);
    if (counts) of_weight.add(tensor.name, tensor.bytes, pool_);
    if (options_.progress) options_.progress(tensor.bytes.size());
  }
  fingerprint_.add(of_weight);
  weight.finish_reading();
  return of_weight;
}

void Loader::loaded(const std::string& name) {
  const std::span<const std::byte> bytes = source_.bytes(name);
  if (options_.fingerprint) fingerprint_.add(source_.full_name(name), bytes, pool_);
  source_.file_of(name).check_intact();
  if (options_.progress) options_.progress(bytes.size());
}

Buffer Loader::upload_vector(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::bf16) {
      reinterpret_cast<bf16_t*>(bytes.data())[i] = from_f32<bf16_t>(values[i]);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = values[i];
    }
  }
  Buffer buffer = backend_.allocate(bytes.size());
  backend_.copy_to_device(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

std::vector<float> Loader::load_bias(const LinearSpec& spec, const Layout& layout) {
  std::vector<float> bias;
  if (!spec.bias) return bias;
  bias.resize(static_cast<size_t>(spec.n()));
  int64_t first = 0;
  for (const auto& part : layout) {
    const std::string name = part.name + ".bias";
    source_.read_vector(name, {part.rows}, bias.data() + first);
    loaded(name);
    first += part.rows;
  }
  return bias;
}

// In chunks through host memory, converted by all threads.
Buffer Loader::load_plain(Stored weights) {
  const int64_t row_bytes = weights.front()->k() * (bits_of(options_.dtype) / 8);
  const int64_t rows = rows_of(weights);
  Buffer buffer = backend_.allocate(static_cast<size_t>(rows * row_bytes));
  const int64_t at_once =
      std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 1, rows);
  const Buffer chunk = allocate_host(static_cast<size_t>(at_once * row_bytes));
  std::byte* to = buffer.data();
  for (const auto& weight : weights) {
    for (int64_t first = 0; first < weight->rows(); first += at_once) {
      const int64_t count = std::min(at_once, weight->rows() - first);
      pool_.run(count, [&](int64_t row, int) {
        weight->read(first + row, options_.dtype, chunk.data() + row * row_bytes);
      });
      backend_.copy_to_device(to, chunk.data(), static_cast<size_t>(count * row_bytes));
      to += count * row_bytes;
    }
    loaded(*weight);
  }
  return buffer;
}

// The backend quantizes: on a GPU that takes less time than bringing the rows there. Stored values
// are in the space of the weight's transform already.
void Loader::quantize(const StoredWeight& weight, const QTensor& into) {
  const DType dtype = weight.dtype();
  const int64_t k = weight.k(), row_bytes = k * (bits_of(dtype) / 8);
  const int64_t at_once = std::clamp<int64_t>(kChunkBytes / row_bytes, 1, weight.rows());
  const Buffer host = allocate_host(static_cast<size_t>(at_once * row_bytes));
  const Buffer rows = backend_.allocate(host.bytes());
  const Buffer values = backend_.allocate(static_cast<size_t>(at_once * k));
  const Buffer row_scales = backend_.allocate(static_cast<size_t>(at_once) * sizeof(float));
  for (int64_t first = 0; first < weight.rows(); first += at_once) {
    const int64_t count = std::min(at_once, weight.rows() - first);
    pool_.run(count, [&](int64_t row, int) {
      weight.read_stored(first + row, host.data() + row * row_bytes);
    });
    backend_.copy_to_device(rows.data(), host.data(), static_cast<size_t>(count * row_bytes));
    backend_.quantize_rows(
        rows.view(dtype, {count, k}), {},
        {values.view(DType::i8, {count, k}), row_scales.view(DType::f32, {count})});
    const QTensor here = rows_of(into, first, count);
    backend_.copy_to_host(here.values.data, values.data(), static_cast<size_t>(count * k));
    backend_.copy_to_host(here.scales.data, row_scales.data(),
                          static_cast<size_t>(count) * sizeof(float));
    auto* scales = here.scales.as<float>();
    for (int64_t row = 0; row < count; ++row) scales[row] *= weight.scale(first + row);
  }
}

void Loader::read_codes(const StoredWeight& weight, const QTensor& into) {
  if (weight.is_int8()) {
    auto* scales = into.scales.as<float>();
    pool_.run(weight.rows(), [&](int64_t row, int) {
      weight.read_stored(row, into.values.data + row * weight.k());
      scales[row] = weight.scale(row);
    });
  } else {
    quantize(weight, into);
  }
}

QWeight Loader::load_int8(Stored weights, std::span<const float> bias, RowOrder order) {
  const int64_t k = weights.front()->k(), n = rows_of(weights);
  const Buffer codes = allocate_host(static_cast<size_t>(n * k));
  const Buffer scales = allocate_host(static_cast<size_t>(n) * sizeof(float));
  const QTensor all{codes.view(DType::i8, {n, k}), scales.view(DType::f32, {n})};
  int64_t first = 0;
  for (const auto& weight : weights) {
    const QTensor rows = rows_of(all, first, weight->rows());
    read_codes(*weight, rows);
    const Fingerprint made_from = loaded(*weight);
    if (!weight->is_int8() && options_.converted) options_.converted(*weight, rows, made_from);
    first += weight->rows();
  }
  ConstTensorView bias_view;
  if (!bias.empty()) {
    bias_view = ConstTensorView(reinterpret_cast<const std::byte*>(bias.data()), DType::f32, {n});
  }
  return backend_.pack(all, bias_view, weights.front()->transform().view(), order);
}

nn::LinearPart Loader::load_part(Stored weights, std::span<const float> bias, bool int8,
                                 RowOrder order) {
  nn::LinearPart part{.n = rows_of(weights), .k = weights.front()->k(), .dtype = options_.dtype};
  if (int8) {
    part.quantized = load_int8(weights, bias, order);
    return part;
  }
  part.weight = load_plain(weights);
  if (!bias.empty()) part.bias = upload_vector(bias, options_.dtype);
  return part;
}

void Loader::linear(nn::Linear& into, const LinearSpec& spec) {
  const StoredParts stored = stored_parts(source_, spec);
  const std::vector<float> bias = load_bias(spec, layout_in(source_, spec));
  const auto int8 = [&](const auto& weight) {
    return options_.int8 && runs_in_int8(source_, spec, *weight);
  };
  into = {.layer = spec.layer, .name = spec.name(), .n = spec.n(), .k = spec.k};
  // One product for all rows, unless they differ in what they multiply.
  const bool joined = std::all_of(stored.begin(), stored.end(), [&](const auto& weight) {
    return int8(weight) == int8(stored.front()) &&
           (!int8(weight) || weight->transform() == stored.front()->transform());
  });
  if (joined) {
    into.parts.push_back(load_part(stored, bias, int8(stored.front()), spec.order));
    return;
  }
  int64_t first = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    std::span<const float> addends;
    if (!bias.empty()) {
      addends = std::span(bias).subspan(static_cast<size_t>(first),
                                        static_cast<size_t>(stored[i]->rows()));
    }
    into.parts.push_back(load_part({&stored[i], 1}, addends, int8(stored[i]), RowOrder::plain));
    first += stored[i]->rows();
  }
}

void Loader::conv(nn::Conv& into, const nn::ConvSpec& spec) {
  const std::string& name = spec.name;
  const int64_t taps = spec.kernel * spec.kernel;
  std::vector<float> stored(static_cast<size_t>(spec.out * spec.in * taps));
  source_.read_vector(name + ".weight", {spec.out, spec.in, spec.kernel, spec.kernel},
                      stored.data());
  loaded(name + ".weight");
  std::vector<float> weight(stored.size());
  for (int64_t out = 0; out < spec.out; ++out) {
    for (int64_t in = 0; in < spec.in; ++in) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        weight[static_cast<size_t>((out * taps + tap) * spec.in + in)] =
            stored[static_cast<size_t>((out * spec.in + in) * taps + tap)];
      }
    }
  }
  std::vector<float> bias(static_cast<size_t>(spec.out));
  source_.read_vector(name + ".bias", {spec.out}, bias.data());
  loaded(name + ".bias");
  into.kernel = spec.kernel;
  into.layer = spec.name;
  into.matrix = {.n = spec.out, .k = taps * spec.in, .dtype = options_.dtype};
  into.matrix.weight = upload_vector(weight, options_.dtype);
  into.matrix.bias = upload_vector(bias, options_.dtype);
}

void Loader::vector(nn::Vector& into, const std::string& name, int64_t length) {
  std::vector<float> values(static_cast<size_t>(length));
  source_.read_vector(name, {length}, values.data());
  loaded(name);
  into.memory = upload_vector(values, DType::f32);
  into.length = length;
}

void Loader::table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) {
  StoredParts stored;
  stored.push_back(source_.weight(name.substr(0, name.rfind(".weight")), rows, columns));
  into.memory = load_plain(stored);
  into.dtype = options_.dtype;
  into.rows = rows;
  into.columns = columns;
}

}  // namespace octet::weights
