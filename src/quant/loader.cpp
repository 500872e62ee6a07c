#include "quant/loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet::quant {
namespace {

using nn::LinearSpec;
using Layout = std::vector<LinearSpec::Part>;

// The way in which this checkpoint stores a linear: the first whose parts are all there.
const Layout& layout_in(const Checkpoint& checkpoint, const std::string& prefix,
                        const LinearSpec& spec) {
  for (const Layout& layout : spec.layouts) {
    const bool complete = std::all_of(layout.begin(), layout.end(), [&](const auto& part) {
      return checkpoint.find(prefix + part.name + ".weight") != nullptr;
    });
    if (complete) return layout;
  }
  std::string names;
  for (const Layout& layout : spec.layouts) {
    if (!names.empty()) names += " or ";
    for (const auto& part : layout) {
      if (&part != &layout.front()) names += ", ";
      names += in_quotes(prefix + part.name + ".weight");
    }
  }
  fail("{}: tensor {} is missing; the checkpoint is incomplete or of another model",
       checkpoint.path(), names);
}

std::vector<StoredRows> parts_of(const Checkpoint& checkpoint, const std::string& prefix,
                                 const Layout& layout, int64_t k) {
  std::vector<StoredRows> parts;
  for (const auto& part : layout) {
    parts.emplace_back(checkpoint, prefix + part.name, part.rows, k);
  }
  return parts;
}

std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind(".weight"));
}

FileShape conv_shape(const nn::ConvSpec& spec) {
  return {spec.out, spec.in, spec.kernel, spec.kernel};
}

}  // namespace

// --- checking ---

void CheckpointCheck::count(const std::string& name, const FileShape& shape) {
  bytes_ += check_vector(checkpoint_, prefix_ + name, shape).bytes();
}

void CheckpointCheck::count(const StoredRows& rows) { bytes_ += rows.bytes().size(); }

void CheckpointCheck::linear(nn::Linear&, const LinearSpec& spec) {
  const Layout& layout = layout_in(checkpoint_, prefix_, spec);
  for (const StoredRows& part : parts_of(checkpoint_, prefix_, layout, spec.k)) count(part);
  if (!spec.bias) return;
  for (const auto& part : layout) count(part.name + ".bias", {part.rows});
}

void CheckpointCheck::conv(nn::Conv&, const nn::ConvSpec& spec) {
  count(spec.name + ".weight", conv_shape(spec));
  count(spec.name + ".bias", {spec.out});
}

void CheckpointCheck::vector(nn::Vector&, const std::string& name, int64_t length) {
  count(name, {length});
}

void CheckpointCheck::table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) {
  count(StoredRows(checkpoint_, module_of(prefix_ + name), rows, columns));
}

// --- loading ---

void Loader::loaded(const StoredRows& rows) {
  if (!rows.scale_bytes().empty()) {
    fingerprint_.add(rows.name() + "_scale", rows.scale_bytes(), pool_);
  }
  loaded(rows.name(), rows.bytes());
}

void Loader::loaded(const std::string& name, std::span<const std::byte> bytes) {
  fingerprint_.add(name, bytes, pool_);
  if (options_.progress) options_.progress(bytes.size());
}

Buffer Loader::upload_vector(const std::vector<float>& values, DType dtype) {
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
    const std::string name = options_.prefix + part.name + ".bias";
    read_vector(checkpoint_, name, {part.rows}, bias.data() + first);
    loaded(name, checkpoint_.bytes(name));
    first += part.rows;
  }
  return bias;
}

// In pieces through host memory, converted by all threads.
Buffer Loader::load_plain(const std::vector<StoredRows>& parts) {
  constexpr int64_t kPieceBytes = int64_t{64} << 20;
  const int64_t row_bytes = parts.front().k() * (bits_of(options_.dtype) / 8);
  int64_t rows = 0;
  for (const StoredRows& part : parts) rows += part.rows();
  Buffer buffer = backend_.allocate(static_cast<size_t>(rows * row_bytes));
  const int64_t at_once =
      std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1, rows);
  const Buffer piece = allocate_host(static_cast<size_t>(at_once * row_bytes));
  std::byte* to = buffer.data();
  for (const StoredRows& part : parts) {
    for (int64_t first = 0; first < part.rows(); first += at_once) {
      const int64_t count = std::min(at_once, part.rows() - first);
      pool_.run(count, [&](int64_t row, int) {
        part.read(first + row, options_.dtype, piece.data() + row * row_bytes);
      });
      backend_.copy_to_device(to, piece.data(), static_cast<size_t>(count * row_bytes));
      to += count * row_bytes;
    }
    loaded(part);
  }
  return buffer;
}

// The backend quantizes: on a GPU that takes less time than bringing the rows there.
void Loader::load_int8(nn::Linear& into, const LinearSpec& spec,
                       const std::vector<StoredRows>& parts) {
  constexpr int64_t kPieceBytes = int64_t{64} << 20;
  const int64_t k = spec.k, n = spec.n();
  const Buffer codes = allocate_host(static_cast<size_t>(n * k));
  const Buffer scales = allocate_host(static_cast<size_t>(n) * sizeof(float));
  const QTensor weight{codes.view(DType::i8, {n, k}), scales.view(DType::f32, {n})};
  int64_t at = 0;
  for (const StoredRows& part : parts) {
    const DType dtype = part.dtype();
    const int64_t row_bytes = k * (bits_of(dtype) / 8);
    const int64_t at_once = std::clamp<int64_t>(kPieceBytes / row_bytes, 1, part.rows());
    const Buffer host = allocate_host(static_cast<size_t>(at_once * row_bytes));
    const Buffer rows = backend_.allocate(host.bytes());
    const Buffer values = backend_.allocate(static_cast<size_t>(at_once * k));
    const Buffer row_scales = backend_.allocate(static_cast<size_t>(at_once) * sizeof(float));
    for (int64_t first = 0; first < part.rows(); first += at_once) {
      const int64_t count = std::min(at_once, part.rows() - first);
      pool_.run(count, [&](int64_t row, int) {
        part.read_unscaled(first + row, host.data() + row * row_bytes);
      });
      backend_.copy_to_device(rows.data(), host.data(), static_cast<size_t>(count * row_bytes));
      backend_.quantize_rows(
          rows.view(dtype, {count, k}), {},
          {values.view(DType::i8, {count, k}), row_scales.view(DType::f32, {count})});
      backend_.copy_to_host(codes.data() + at * k, values.data(), static_cast<size_t>(count * k));
      float* of_rows = weight.scales.as<float>() + at;
      backend_.copy_to_host(reinterpret_cast<std::byte*>(of_rows), row_scales.data(),
                            static_cast<size_t>(count) * sizeof(float));
      for (int64_t row = 0; row < count; ++row) of_rows[row] *= part.scale(first + row);
      at += count;
    }
    loaded(part);
  }
  std::vector<float> bias = load_bias(spec, layout_in(checkpoint_, options_.prefix, spec));
  ConstTensorView bias_view;
  if (!bias.empty()) {
    bias_view = ConstTensorView(reinterpret_cast<const std::byte*>(bias.data()), DType::f32, {n});
  }
  into.quantized = backend_.pack(weight, bias_view, {}, spec.order);
}

void Loader::linear(nn::Linear& into, const LinearSpec& spec) {
  const Layout& layout = layout_in(checkpoint_, options_.prefix, spec);
  const auto parts = parts_of(checkpoint_, options_.prefix, layout, spec.k);
  into.layer = spec.layer;
  into.n = spec.n();
  into.k = spec.k;
  into.dtype = options_.dtype;
  if (spec.large && options_.int8) {
    load_int8(into, spec, parts);
    return;
  }
  into.weight = load_plain(parts);
  const std::vector<float> bias = load_bias(spec, layout);
  if (!bias.empty()) into.bias = upload_vector(bias, options_.dtype);
}

void Loader::conv(nn::Conv& into, const nn::ConvSpec& spec) {
  const std::string name = options_.prefix + spec.name;
  const int64_t taps = spec.kernel * spec.kernel;
  std::vector<float> stored(static_cast<size_t>(spec.out * spec.in * taps));
  read_vector(checkpoint_, name + ".weight", conv_shape(spec), stored.data());
  loaded(name + ".weight", checkpoint_.bytes(name + ".weight"));
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
  read_vector(checkpoint_, name + ".bias", {spec.out}, bias.data());
  loaded(name + ".bias", checkpoint_.bytes(name + ".bias"));
  into.kernel = spec.kernel;
  into.matrix.layer = spec.name;
  into.matrix.n = spec.out;
  into.matrix.k = taps * spec.in;
  into.matrix.dtype = options_.dtype;
  into.matrix.weight = upload_vector(weight, options_.dtype);
  into.matrix.bias = upload_vector(bias, options_.dtype);
}

void Loader::vector(nn::Vector& into, const std::string& name, int64_t length) {
  std::vector<float> values(static_cast<size_t>(length));
  read_vector(checkpoint_, options_.prefix + name, {length}, values.data());
  loaded(options_.prefix + name, checkpoint_.bytes(options_.prefix + name));
  into.memory = upload_vector(values, DType::f32);
  into.length = length;
}

void Loader::table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) {
  const std::string module = module_of(options_.prefix + name);
  into.memory = load_plain({StoredRows(checkpoint_, module, rows, columns)});
  into.dtype = options_.dtype;
  into.rows = rows;
  into.columns = columns;
}

}  // namespace octet::quant
