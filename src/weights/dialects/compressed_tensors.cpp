// compressed-tensors W8A8: <module>.weight I8 with <module>.weight_scale, symmetric, per output
// channel or one for all. Scales of static activations are left alone: activations are quantized
// as they come. The folder's config.json may say how the weights were made.
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/text.h"
#include "weights/dialect.h"
#include "weights/dialects/coded_weight.h"

namespace octet::weights {
namespace {

using nlohmann::json;

// Throws Error when one of the groups in `quantization_config` is not what this dialect reads.
void check_groups(const json& groups, const std::string& path) {
  for (const auto& [name, group] : groups.items()) {
    if (!group.is_object() || !group.contains("weights") || !group["weights"].is_object()) continue;
    const json& weights = group["weights"];
    const auto bits = weights.find("num_bits");
    if (bits != weights.end() && *bits != 8) {
      fail(
          "{}: \"quantization_config\": the weights of {} have {} bits; of compressed-tensors only "
          "8 are read",
          path, in_quotes(name), describe(*bits));
    }
    const auto strategy = weights.find("strategy");
    if (strategy != weights.end() && (*strategy == "group" || *strategy == "block")) {
      fail(
          "{}: \"quantization_config\": the weights of {} have a scale per {}; of "
          "compressed-tensors only a scale per channel or per tensor is read",
          path, in_quotes(name), describe(*strategy));
    }
  }
}

void check_config(const Checkpoint& checkpoint) {
  const auto path = std::filesystem::path(checkpoint.path()).parent_path() / "config.json";
  if (!is_file_there(path.string())) return;
  const json config = read_json_file(path.string());
  if (!config.is_object()) return;  // whoever reads the configuration says so
  const auto quantization = config.find("quantization_config");
  if (quantization == config.end() || !quantization->is_object()) return;
  const auto groups = quantization->find("config_groups");
  if (groups != quantization->end() && groups->is_object()) check_groups(*groups, path.string());
}

struct CheckedConfig {};

// Symmetric weights have none, or zeros.
void check_zero_point(const Checkpoint& checkpoint, const std::string& name) {
  if (checkpoint.find(name) == nullptr) return;
  for (const std::byte byte : checkpoint.bytes(name)) {
    check(byte == std::byte{0},
          "{}: tensor {} is not zero; asymmetric weights of compressed-tensors are not read",
          checkpoint.path(), Quoted{name});
  }
}

void check_stored_shape(const Checkpoint& checkpoint, const std::string& name, int64_t rows,
                        int64_t k) {
  const TensorInfo* info = checkpoint.find(name);
  if (info == nullptr) return;
  int64_t shape[2] = {};
  const std::span<const std::byte> bytes = checkpoint.bytes(name);
  const bool readable = info->dtype == DType::i64 && info->shape == FileShape({2});
  if (readable) std::memcpy(shape, bytes.data(), sizeof(shape));
  check(readable && shape[0] == rows && shape[1] == k,
        "{}: tensor {} does not say [{}, {}], the shape of the weight", checkpoint.path(),
        Quoted{name}, rows, k);
}

bool stores_compressed(const Checkpoint& checkpoint, const std::string& module) {
  const TensorInfo* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && weight->dtype == DType::i8 &&
         checkpoint.find(module + ".weight_scale") != nullptr;
}

std::unique_ptr<StoredWeight> open_compressed(const Checkpoint& checkpoint,
                                              const std::string& module, int64_t rows, int64_t k) {
  checkpoint.once<CheckedConfig>([&] {
    check_config(checkpoint);
    return CheckedConfig();
  });
  check(checkpoint.find(module + ".weight_g_idx") == nullptr,
        "{}: tensor {}: weights of compressed-tensors in groups of inputs are not read",
        checkpoint.path(), Quoted{module + ".weight_g_idx"});
  check_zero_point(checkpoint, module + ".weight_zero_point");
  check_stored_shape(checkpoint, module + ".weight_shape", rows, k);
  return std::make_unique<CodedWeight>(
      checkpoint, module, rows, k, DType::i8,
      CodedLayout{.codes = module + ".weight",
                  .scales = module + ".weight_scale",
                  .siblings = {module + ".weight_zero_point", module + ".weight_shape",
                               module + ".input_scale", module + ".input_zero_point"}});
}

}  // namespace

const Dialect kCompressedTensorsDialect = {"compressed-tensors", "compressed-tensors: INT8 W8A8",
                                           stores_compressed, open_compressed};

}  // namespace octet::weights
