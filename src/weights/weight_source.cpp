#include "weights/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"

namespace octet::weights {
namespace {

// A file of ours that protects every linear has none left, and is meant as it is all the same.
bool has_int8(const Checkpoint& checkpoint, const std::string& prefix) {
  if (checkpoint.metadata().contains(std::string(kQuantizationEntry))) return true;
  const auto& tensors = checkpoint.tensors();
  return std::ranges::any_of(tensors, [&](const auto& tensor) {
    const TensorInfo& info = *tensor.second.info;
    return tensor.first.starts_with(prefix) && info.dtype == DType::i8 && info.shape.size() == 2;
  });
}

// What the files were when they were opened, or soon after: whatever becomes of them meanwhile.
struct CheckpointState {
  std::string text;
};

std::string describe_state(const Checkpoint& checkpoint) {
  std::string text;
  for (const TensorFile& file : checkpoint.files()) text += "file " + file.identity() + "\n";
  std::string header;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    header += fmt::format("{} {} {} {}\n", name, name_of(entry.info->dtype),
                          to_string(entry.info->shape), entry.info->begin);
  }
  for (const auto& [key, value] : checkpoint.metadata()) header += key + " " + value + "\n";
  return text + fmt::format("header {:016x}\n", hash_text(header));
}

std::string state_of(const Checkpoint& checkpoint) {
  return checkpoint
      .once<CheckpointState>([&] { return CheckpointState{describe_state(checkpoint)}; })
      .text;
}

}  // namespace

void WeightSource::add(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix,
                       Rename rename) {
  Layer& layer = layers_.emplace_back(Layer{.checkpoint = std::move(checkpoint),
                                            .prefix = std::move(prefix),
                                            .rename = std::move(rename)});
  layer.holds_int8 = has_int8(*layer.checkpoint, layer.prefix);
}

void WeightSource::add_base(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  add(std::move(checkpoint), std::move(prefix));
  layers_.back().strict = false;
}

void WeightSource::add_converted(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  layers_.insert(layers_.begin(),
                 {std::move(checkpoint), std::move(prefix), /*strict=*/false, /*converted=*/true});
}

bool WeightSource::holds_int8() const {
  return std::ranges::any_of(layers_, [](const auto& l) { return l.holds_int8; });
}

const WeightSource::Layer* WeightSource::layer_of(const StoredWeight& weight) const {
  for (const Layer& layer : layers_) {
    if (layer.checkpoint->path() == weight.path()) return &layer;
  }
  return nullptr;
}

bool WeightSource::is_protected(const StoredWeight& weight) const {
  const Layer* last = layer_of(weight);
  return last != nullptr &&
         std::any_of(layers_.data(), last + 1, [](const Layer& layer) { return layer.holds_int8; });
}

bool WeightSource::is_converted(const StoredWeight& weight) const {
  const Layer* layer = layer_of(weight);
  return layer != nullptr && layer->converted;
}

const std::string& WeightSource::path() const {
  check(!layers_.empty(), "weights: there is no checkpoint to take them from");
  return layers_.front().checkpoint->path();
}

const WeightSource::Layer* WeightSource::layer_with(const std::string& name) const {
  for (const Layer& layer : layers_) {
    if (layer.checkpoint->find(layer.name_of(name)) != nullptr) return &layer;
  }
  return nullptr;
}

const WeightSource::Layer& WeightSource::layer_for(const std::string& name) const {
  const Layer* layer = layer_with(name);
  check(!layers_.empty(), "weights: there is no checkpoint to take them from");
  return layer != nullptr ? *layer : layers_.front();
}

size_t WeightSource::depth_of(const std::string& module) const {
  size_t depth = 0;
  while (depth < layers_.size() &&
         dialect_of(*layers_[depth].checkpoint, layers_[depth].name_of(module)) == nullptr) {
    ++depth;
  }
  return depth;
}

std::unique_ptr<StoredWeight> WeightSource::weight(const std::string& module, int64_t rows,
                                                   int64_t k) const {
  const size_t depth = depth_of(module);
  const Layer& layer = depth < layers_.size() ? layers_[depth] : layer_for(module);
  auto found = open_weight(*layer.checkpoint, layer.name_of(module), rows, k);
  if (!change_ || layer.converted) return found;
  return change_(std::move(found), module);
}

const TensorInfo* WeightSource::find(const std::string& name) const {
  const Layer* layer = layer_with(name);
  return layer == nullptr ? nullptr : layer->checkpoint->find(layer->name_of(name));
}

const TensorInfo& WeightSource::check_vector(const std::string& name,
                                             const FileShape& shape) const {
  const Layer& layer = layer_for(name);
  return weights::check_vector(*layer.checkpoint, layer.name_of(name), shape);
}

void WeightSource::read_vector(const std::string& name, const FileShape& shape, float* into) const {
  const Layer& layer = layer_for(name);
  weights::read_vector(*layer.checkpoint, layer.name_of(name), shape, into);
}

std::span<const std::byte> WeightSource::bytes(const std::string& name) const {
  const Layer& layer = layer_for(name);
  return layer.checkpoint->bytes(layer.name_of(name));
}

const TensorFile& WeightSource::file_of(const std::string& name) const {
  const Layer& layer = layer_for(name);
  return layer.checkpoint->file_of(layer.name_of(name));
}

std::string WeightSource::full_name(const std::string& name) const {
  return layer_for(name).name_of(name);
}

const char* WeightSource::dialect_name(const std::string& full_name) const {
  for (const Layer& layer : layers_) {
    if (const Dialect* dialect = dialect_of(*layer.checkpoint, full_name)) return dialect->name;
  }
  return "";
}

std::string WeightSource::identity() const {
  std::string text;
  for (const Layer& layer : layers_) {
    text += fmt::format("prefix \"{}\"\n{}", layer.prefix, state_of(*layer.checkpoint));
  }
  return text;
}

std::vector<std::string> WeightSource::left_over(
    const std::set<std::string>& used, const std::function<bool(std::string_view)>& ignored) const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) {
    if (!layer.strict) continue;
    for (const auto& [name, entry] : layer.checkpoint->tensors()) {
      if (used.contains(std::string(name))) continue;
      const bool inside = name.starts_with(layer.prefix);
      if (!ignored(inside ? name.substr(layer.prefix.size()) : name)) names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace octet::weights
