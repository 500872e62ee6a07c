#include "weights/loader.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace octet::weights {
namespace {

using nn::LinearSpec;
using Layout = std::vector<LinearSpec::Part>;

int64_t rows_of(std::span<const std::unique_ptr<StoredWeight>> weights) {
  int64_t rows = 0;
  for (const auto& weight : weights) rows += weight->rows();
  return rows;
}

std::span<const std::byte> float_bytes(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// Quantizes rows in a backend's memory, some at a time, in memory that is taken once.
class RowQuantizer {
 public:
  // Of rows that are stored as `stored`, and whose numbers `dtype` holds, too.
  RowQuantizer(Backend& backend, DType stored, DType dtype, int64_t at_once, int64_t k)
      : backend_(backend),
        dtype_(dtype),
        values_(backend.allocate(static_cast<size_t>(at_once * k))),
        scales_(backend.allocate(static_cast<size_t>(at_once) * sizeof(float))) {
    if (stored != dtype) wide_ = backend.allocate(bytes_of(dtype, {at_once, k}));
  }

  // Until the next call.
  QTensor run(const ConstTensorView& rows, const ActivationTransform& transform) {
    const QTensor codes{values_.view(DType::i8, rows.shape),
                        scales_.view(DType::f32, {rows.shape[0]})};
    if (rows.dtype == dtype_) {
      backend_.quantize_rows(rows, transform, codes);
    } else {
      const TensorView wide = wide_.view(dtype_, rows.shape);
      backend_.convert(rows, wide);
      backend_.quantize_rows(wide, transform, codes);
    }
    return codes;
  }

 private:
  Backend& backend_;
  DType dtype_;
  Buffer values_, scales_, wide_;
};

// Codes and scales of a whole weight in host memory, for those who keep them.
class KeptCodes {
 public:
  KeptCodes(int64_t rows, int64_t k)
      : values_(allocate_host(static_cast<size_t>(rows * k))),
        scales_(allocate_host(static_cast<size_t>(rows) * sizeof(float))),
        all_{values_.view(DType::i8, {rows, k}), scales_.view(DType::f32, {rows})} {}

  // Rows from `first` on, whose scales are still to be multiplied by `factors`.
  void download(Backend& backend, int64_t first, const QTensor& rows,
                const std::vector<float>& factors) {
    auto* scales = all_.scales.as<float>() + first;
    backend.copy_to_host(all_.values.data + first * all_.k(), rows.values.data,
                         static_cast<size_t>(rows.rows() * rows.k()));
    backend.copy_to_host(reinterpret_cast<std::byte*>(scales), rows.scales.data,
                         factors.size() * sizeof(float));
    for (size_t i = 0; i < factors.size(); ++i) scales[i] *= factors[i];
  }
  const QTensor& all() const { return all_; }

 private:
  Buffer values_, scales_;
  QTensor all_;
};

}  // namespace

std::vector<float> taps_first(std::span<const float> stored, const nn::ConvSpec& spec) {
  const int64_t taps = spec.kernel * spec.kernel;
  std::vector<float> arranged;
  arranged.reserve(stored.size());
  for (int64_t out = 0; out < spec.out; ++out) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t in = 0; in < spec.in; ++in) {
        arranged.push_back(stored[static_cast<size_t>((out * spec.in + in) * taps + tap)]);
      }
    }
  }
  return arranged;
}

Loader::Loader(const WeightSource& source, Backend& backend, LoadOptions options)
    : source_(source), backend_(backend), options_(std::move(options)) {
  check(options_.rotation == 0 || !options_.converted,
        "loader: codes that are rotated while loading cannot be kept");
}

// A weight with a transform of its own was made for it, whether it is INT8 already or not.
int64_t Loader::rotation_of(const StoredWeight& weight) const {
  const bool as_it_is = weight.for_int8() || weight.transform().kind != Transform::none;
  return as_it_is ? 0 : rotation_group(options_.rotation, weight.k());
}

StoredTransform Loader::transform_of(const StoredWeight& weight) const {
  const int64_t group = rotation_of(weight);
  return group == 0 ? weight.transform()
                    : StoredTransform{.kind = Transform::rotate, .smooth = {}, .group = group};
}

Fingerprint Loader::loaded(const StoredWeight& weight, WeightUpload& upload) {
  Fingerprint of_weight;
  if (counts(weight)) of_weight = upload.fingerprint();
  if (options_.progress) {
    for (const UsedTensor& tensor : weight.tensors()) options_.progress(tensor.bytes.size());
  }
  fingerprint_.add(of_weight);
  weight.finish_reading();
  return of_weight;
}

void Loader::loaded(const std::string& name) {
  const std::span<const std::byte> bytes = source_.bytes(name);
  if (options_.fingerprint) fingerprint_.add(source_.full_name(name), bytes, backend_.pool());
  source_.file_of(name).check_intact();
  if (options_.progress) options_.progress(bytes.size());
}

Buffer Loader::upload_vector(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
  store_f32(values, dtype, bytes.data());
  return backend_.upload(bytes);
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

// The backend converts where that gives the same bits: what the file holds is smaller, most times.
void Loader::convert(const StoredWeight& weight, std::byte* into) {
  WeightUpload upload(weight, backend_, counts(weight));
  const DType to = options_.dtype;
  const int64_t k = weight.k();
  const bool by_backend = upload.backend_can_convert();
  const DType from = by_backend ? upload.stored_dtype() : to;
  const int64_t at_once = upload.rows_at_once(from);
  for (int64_t first = 0; first < weight.rows(); first += at_once) {
    const int64_t count = std::min(at_once, weight.rows() - first);
    const TensorView out(into + first * k * (bits_of(to) / 8), to, {count, k});
    if (!by_backend) {
      const Buffer rows = upload.converted(first, count, to);
      backend_.copy(out.data, rows.data(), rows.bytes());
      continue;
    }
    const Buffer rows = upload.stored(first, count, to);
    if (from == to) {
      backend_.copy(out.data, rows.data(), rows.bytes());
      continue;
    }
    const Buffer scales = backend_.upload(float_bytes(upload.scales(first, count)));
    const TensorView values = rows.view(from, {count, k}),
                     factors = scales.view(DType::f32, {count});
    if (from == DType::i8) {
      backend_.dequantize_rows({values, factors}, out);
    } else {
      backend_.convert(values, out, factors);
    }
  }
  loaded(weight, upload);
}

void Loader::look_through(const StoredWeight& weight) {
  WeightUpload upload(weight, backend_, counts(weight));
  if (counts(weight)) upload.look_through(options_.dtype);
  loaded(weight, upload);
}

Buffer Loader::load_plain(Stored weights) {
  const int64_t row_bytes = weights.front()->k() * (bits_of(options_.dtype) / 8);
  Buffer buffer = backend_.allocate(static_cast<size_t>(rows_of(weights) * row_bytes));
  std::byte* into = buffer.data();
  for (const auto& weight : weights) {
    convert(*weight, into);
    into += weight->rows() * row_bytes;
  }
  return buffer;
}

// The backend quantizes: on a GPU that takes less time than bringing the rows there. Stored values
// are in the space of the weight's own transform already.
void Loader::quantize(const StoredWeight& weight, const UseCodes& use) {
  WeightUpload upload(weight, backend_, counts(weight));
  const int64_t k = weight.k();
  const DType stored = upload.stored_dtype();
  const int64_t at_once = upload.rows_at_once(stored), group = rotation_of(weight);
  const ActivationTransform rotation = {
      .kind = group > 0 ? Transform::rotate : Transform::none, .smooth = {}, .group = group};
  std::optional<RowQuantizer> quantizer;
  std::optional<KeptCodes> kept;
  if (!weight.is_int8()) {
    quantizer.emplace(backend_, stored, weight.dtype(), at_once, k);
    if (options_.converted) kept.emplace(weight.rows(), k);
  }
  for (int64_t first = 0; first < weight.rows(); first += at_once) {
    const int64_t count = std::min(at_once, weight.rows() - first);
    const std::vector<float> scales = upload.scales(first, count);
    const Buffer rows = upload.stored(first, count, stored);
    const Buffer factors = backend_.upload(float_bytes(scales));
    const TensorView values = rows.view(stored, {count, k});
    const TensorView of_rows = factors.view(DType::f32, {count});
    if (!quantizer) {
      use(first, {values, of_rows}, {});
      continue;
    }
    const QTensor codes = quantizer->run(values, rotation);
    use(first, codes, of_rows);
    if (kept) kept->download(backend_, first, codes, scales);
  }
  const Fingerprint made_from = loaded(weight, upload);
  if (kept) options_.converted(weight, kept->all(), made_from);
}

QWeight Loader::load_int8(Stored weights, std::span<const float> bias, RowOrder order) {
  const int64_t k = weights.front()->k(), n = rows_of(weights);
  ConstTensorView bias_view;
  if (!bias.empty()) {
    bias_view = ConstTensorView(reinterpret_cast<const std::byte*>(bias.data()), DType::f32, {n});
  }
  const StoredTransform transform = transform_of(*weights.front());
  QWeight packed = backend_.begin_pack(n, k, bias_view, transform.view(), order);
  int64_t first = 0;
  for (const auto& weight : weights) {
    quantize(*weight, [&](int64_t row, const QTensor& codes, const ConstTensorView& factors) {
      backend_.pack_rows(packed, first + row, codes, factors);
    });
    first += weight->rows();
  }
  return packed;
}

Buffer Loader::load_rounded(Stored weights) {
  const DType to = options_.dtype;
  const int64_t k = weights.front()->k(), row_bytes = k * (bits_of(to) / 8);
  Buffer buffer = backend_.allocate(static_cast<size_t>(rows_of(weights) * row_bytes));
  std::byte* into = buffer.data();
  for (const auto& weight : weights) {
    quantize(*weight, [&](int64_t row, QTensor codes, const ConstTensorView& factors) {
      const int64_t count = codes.rows();
      Buffer scales;
      if (factors.data != nullptr) {  // one product in F32, as packing forms it
        scales = backend_.allocate(bytes_of(DType::f32, {count}));
        backend_.convert(TensorView(codes.scales.data, DType::f32, {count, 1}),
                         scales.view(DType::f32, {count, 1}), factors);
        codes.scales = scales.view(DType::f32, {count});
      }
      backend_.dequantize_rows(codes, TensorView(into + row * row_bytes, to, {count, k}));
    });
    into += weight->rows() * row_bytes;
  }
  return buffer;
}

nn::LinearPart Loader::load_part(Stored weights, std::span<const float> bias, bool int8,
                                 RowOrder order) {
  nn::LinearPart part{.n = rows_of(weights), .k = weights.front()->k(), .dtype = options_.dtype};
  if (int8 && !options_.fake) {
    part.quantized = load_int8(weights, bias, order);
    return part;
  }
  if (int8) {
    const StoredTransform transform = transform_of(*weights.front());
    part.rounding.emplace().transform = transform.view();
    if (!transform.smooth.empty()) {
      // Zeros follow up to a multiple of eight: kernels read whole vectors.
      std::vector<float> padded = transform.smooth;
      padded.resize(static_cast<size_t>(round_up(part.k, 8)));
      part.rounding->smooth = backend_.upload(float_bytes(padded));
      part.rounding->transform.smooth = part.rounding->smooth.view(DType::f32, {part.k});
    }
    part.weight = load_rounded(weights);
  } else {
    part.weight = load_plain(weights);
  }
  if (!bias.empty()) part.bias = upload_vector(bias, options_.dtype);
  return part;
}

void Loader::linear(nn::Linear& into, const LinearSpec& spec) {
  const StoredParts stored = stored_parts(source_, spec);
  const std::vector<float> bias = load_bias(spec, layout_in(source_, spec));
  const bool may_be_int8 = options_.int8 && !(options_.floating && options_.floating(spec));
  const auto int8 = [&](const auto& weight) {
    return may_be_int8 && runs_in_int8(source_, spec, *weight);
  };
  into = {.layer = spec.layer, .name = spec.name(), .n = spec.n(), .k = spec.k};
  const bool all_int8 = std::ranges::all_of(stored, int8);
  into.precision = all_int8      ? (options_.fake ? nn::Precision::fake : nn::Precision::int8)
                   : !spec.large ? nn::Precision::kept
                   : may_be_int8 ? nn::Precision::protected_
                                 : nn::Precision::floating;
  // One product for all rows, unless they differ in what they multiply.
  const bool joined = std::ranges::all_of(stored, [&](const auto& weight) {
    return int8(weight) == int8(stored.front()) &&
           (!int8(weight) || transform_of(*weight) == transform_of(*stored.front()));
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
  std::vector<float> bias(static_cast<size_t>(spec.out));
  source_.read_vector(name + ".bias", {spec.out}, bias.data());
  loaded(name + ".bias");
  into.kernel = spec.kernel;
  into.layer = spec.name;
  into.matrix = {.n = spec.out, .k = taps * spec.in, .dtype = options_.dtype};
  into.matrix.weight = upload_vector(taps_first(stored, spec), options_.dtype);
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
  if (into.in_files) return look_through(*stored.front());
  into.memory = load_plain(stored);
  into.dtype = options_.dtype;
  into.rows = rows;
  into.columns = columns;
}

}  // namespace octet::weights
