// _octet.Checkpoint: the weights of a file in any dialect, for a model of another framework.
//
// Python says which module it wants, in which shape, and where to write it; the dialects know what
// the bytes mean. Nothing is kept: rows go from the mapped file into the caller's memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "formats/json.h"
#include "python/bindings.h"
#include "weights/dialect.h"
#include "weights/dialects/comfy_quant.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;

// Memory of the caller that is written to. The framework's tensor stays alive during the call.
using Target = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr nb::dlpack::dtype kBf16 = {static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};

// With fewer values a thread costs more than it saves.
constexpr int64_t kValuesOfThread = int64_t{1} << 20;
constexpr int64_t kRowsAtOnce = 16;

class FileWeight {
 public:
  // The checkpoint must outlive this object.
  FileWeight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : stored_(weights::open_weight(checkpoint, module, rows, k)) {}

  const weights::StoredWeight& stored() const { return *stored_; }

  std::vector<std::string> tensors() const {
    std::vector<std::string> names;
    for (const auto& tensor : stored_->tensors()) names.push_back(tensor.name);
    return names;
  }

  void read_codes(const Target& into, int64_t first) const {
    check(stored_->is_int8(), "{}: it is stored as {}, which has no INT8 codes", stored_->module(),
          stored_->format());
    check_matrix(into, first, nb::dtype<int8_t>(), "int8");
    auto* codes = static_cast<std::byte*>(into.data());
    for_rows(first, rows_of(into),
             [&](int64_t row) { stored_->read_stored(row, codes + (row - first) * stored_->k()); });
  }

  void read_scales(const Target& into, int64_t first) const {
    check(into.ndim() == 1 && into.dtype() == nb::dtype<float>() && is_inside(first, rows_of(into)),
          "{}: its scales need a float32 vector of at most {} values", stored_->module(),
          stored_->rows());
    auto* scales = static_cast<float*>(into.data());
    for_rows(first, rows_of(into), [&](int64_t row) { scales[row - first] = stored_->scale(row); });
  }

  void read_smooth(const Target& into) const {
    const std::vector<float>& smooth = stored_->transform().smooth;
    check(!smooth.empty() && into.ndim() == 1 && into.dtype() == nb::dtype<float>() &&
              into.shape(0) == smooth.size(),
          "{}: its {} factors of activations need a float32 vector of as many values",
          stored_->module(), smooth.size());
    std::copy(smooth.begin(), smooth.end(), static_cast<float*>(into.data()));
  }

  // The weight itself: scales are multiplied in, and a transform is undone.
  void read(const Target& into, int64_t first) const {
    const bool narrow = into.dtype() == kBf16;
    check_matrix(into, first, narrow ? kBf16 : nb::dtype<float>(), "float32 or bfloat16");
    const DType to = narrow ? DType::bf16 : DType::f32;
    const int64_t row_bytes = stored_->k() * (bits_of(to) / 8);
    auto* values = static_cast<std::byte*>(into.data());
    for_rows(first, rows_of(into),
             [&](int64_t row) { stored_->read(row, to, values + (row - first) * row_bytes); });
  }

 private:
  static int64_t rows_of(const Target& into) { return static_cast<int64_t>(into.shape(0)); }

  bool is_inside(int64_t first, int64_t count) const {
    return first >= 0 && first <= stored_->rows() && count <= stored_->rows() - first;
  }

  void check_matrix(const Target& into, int64_t first, nb::dlpack::dtype dtype,
                    const char* name) const {
    check(into.ndim() == 2 && into.dtype() == dtype && is_inside(first, rows_of(into)) &&
              static_cast<int64_t>(into.shape(1)) == stored_->k(),
          "{}: its rows need a contiguous {} matrix of at most {} x {}", stored_->module(), name,
          stored_->rows(), stored_->k());
  }

  template <class ReadRow>
  void for_rows(int64_t first, int64_t count, const ReadRow& read_row) const {
    const Unlocked unlocked;
    const int64_t chunks = (count + kRowsAtOnce - 1) / kRowsAtOnce;
    // A pool for this call only: threads that stay would be missing after a fork.
    ThreadPool pool(count * stored_->k() < kValuesOfThread ? 1 : 0);
    pool.run(chunks, [&](int64_t chunk, int) {
      const int64_t end = std::min(count, (chunk + 1) * kRowsAtOnce);
      for (int64_t i = chunk * kRowsAtOnce; i < end; ++i) read_row(first + i);
    });
    stored_->finish_reading();
  }

  std::unique_ptr<weights::StoredWeight> stored_;
};

nb::dict tensors_of(const Checkpoint& checkpoint) {
  nb::dict tensors;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    const TensorInfo& info = *entry.info;
    const std::string type = info.packing.empty() ? std::string(name_of(info.dtype)) : info.packing;
    tensors[nb::str(name.data(), name.size())] =
        nb::make_tuple(type, nb::tuple(nb::cast(info.shape)));
  }
  return tensors;
}

nb::dict metadata_of(const Checkpoint& checkpoint) {
  nb::dict metadata;
  for (const auto& [key, value] : checkpoint.metadata()) metadata[nb::str(key.c_str())] = value;
  return metadata;
}

void read_vector(const Checkpoint& checkpoint, const std::string& name, const Target& into) {
  check(into.dtype() == nb::dtype<float>(), "{}: it needs contiguous float32 values", name);
  FileShape shape;
  for (size_t axis = 0; axis < into.ndim(); ++axis) {
    shape.push_back(static_cast<int64_t>(into.shape(axis)));
  }
  weights::read_vector(checkpoint, name, shape, static_cast<float*>(into.data()));
}

nb::tuple parse_comfy_quant(const nb::bytes& text, const std::string& what) {
  const auto root = parse_json({text.c_str(), text.size()}, what);
  const weights::ComfyQuant quant = weights::parse_comfy_quant(root, what);
  return nb::make_tuple(quant.format, quant.rotation_group, quant.full_precision);
}

}  // namespace

void bind_checkpoint(nb::module_& m) {
  m.def("parse_comfy_quant", parse_comfy_quant, "text"_a, "what"_a,
        "Format, rotation group and full_precision of ComfyUI's description of a linear.");
  nb::class_<FileWeight>(m, "StoredWeight", "One linear's weight as a checkpoint stores it.")
      .def_prop_ro("module", [](const FileWeight& w) { return w.stored().module(); })
      .def_prop_ro("rows", [](const FileWeight& w) { return w.stored().rows(); })
      .def_prop_ro("k", [](const FileWeight& w) { return w.stored().k(); })
      .def_prop_ro("format", [](const FileWeight& w) { return w.stored().format(); })
      .def_prop_ro("is_int8", [](const FileWeight& w) { return w.stored().is_int8(); })
      .def_prop_ro("rotation_group",
                   [](const FileWeight& w) { return w.stored().transform().group; })
      .def_prop_ro("has_smooth",
                   [](const FileWeight& w) { return !w.stored().transform().smooth.empty(); })
      .def_prop_ro("tensors", &FileWeight::tensors, "The names of all its tensors.")
      .def("read_codes", &FileWeight::read_codes, "into"_a.noconvert(), "first"_a = 0,
           "The file's INT8 codes, unchanged, as rows of `into`.")
      .def("read_scales", &FileWeight::read_scales, "into"_a.noconvert(), "first"_a = 0)
      .def("read_smooth", &FileWeight::read_smooth, "into"_a.noconvert(),
           "What activations are multiplied by before they are quantized.")
      .def("read", &FileWeight::read, "into"_a.noconvert(), "first"_a = 0,
           "The weight in floating point, its transform undone.");
  nb::class_<Checkpoint>(m, "Checkpoint", "A safetensors or GGUF file, an index, or their folder.")
      .def(
          "__init__", [](Checkpoint* at, const std::string& path) { new (at) Checkpoint(path); },
          "path"_a)
      .def_prop_ro("path", &Checkpoint::path)
      .def_prop_ro("metadata", metadata_of)
      .def_prop_ro("tensors", tensors_of, "Names with their type and shape.")
      .def(
          "dialect",
          [](const Checkpoint& checkpoint, const std::string& module) {
            const weights::Dialect* found = weights::dialect_of(checkpoint, module);
            return found == nullptr ? std::optional<std::string>() : found->name;
          },
          "module"_a, "How it stores a linear; None if it has none of this name.")
      .def(
          "weight",
          [](const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k) {
            return FileWeight(checkpoint, module, rows, k);
          },
          "module"_a, "rows"_a, "k"_a, nb::keep_alive<0, 1>())
      .def("read_vector", read_vector, "name"_a, "into"_a.noconvert(),
           "Reads a tensor in floating point that has the shape of `into`.");
}

}  // namespace octet::python
