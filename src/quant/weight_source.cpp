#include "quant/weight_source.h"

#include "base/error.h"

namespace octet::quant {

void WeightSource::add(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  layers_.push_back({std::move(checkpoint), std::move(prefix)});
  look_for_int8(layers_.back());
}

void WeightSource::add_first(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  layers_.insert(layers_.begin(), {std::move(checkpoint), std::move(prefix)});
  look_for_int8(layers_.front());
}

void WeightSource::add_converted(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  layers_.insert(layers_.begin(), {std::move(checkpoint), std::move(prefix), /*converted=*/true});
}

void WeightSource::look_for_int8(const Layer& layer) {
  for (const auto& [name, entry] : layer.checkpoint->tensors()) {
    holds_int8_ = holds_int8_ || (name.starts_with(layer.prefix) &&
                                  entry.info->dtype == DType::i8 && entry.info->shape.size() == 2);
  }
}

const std::string& WeightSource::path() const {
  check(!layers_.empty(), "weights: there is no checkpoint to take them from");
  return layers_.front().checkpoint->path();
}

const WeightSource::Layer* WeightSource::layer_with(const std::string& name) const {
  for (const Layer& layer : layers_) {
    if (layer.checkpoint->find(layer.prefix + name) != nullptr) return &layer;
  }
  return nullptr;
}

const WeightSource::Layer& WeightSource::layer_for(const std::string& name) const {
  const Layer* layer = layer_with(name);
  check(!layers_.empty(), "weights: there is no checkpoint to take them from");
  return layer != nullptr ? *layer : layers_.front();
}

bool WeightSource::has_weight(const std::string& module) const {
  for (const Layer& layer : layers_) {
    if (dialect_of(*layer.checkpoint, layer.prefix + module) != nullptr) return true;
  }
  return false;
}

std::unique_ptr<StoredWeight> WeightSource::weight(const std::string& module, int64_t rows,
                                                   int64_t k) const {
  check(!layers_.empty(), "weights: there is no checkpoint to take them from");
  const Layer* from = &layers_.front();  // whose path a message names when none has it
  for (const Layer& layer : layers_) {
    if (dialect_of(*layer.checkpoint, layer.prefix + module) == nullptr) continue;
    from = &layer;
    break;
  }
  auto found = open_weight(*from->checkpoint, from->prefix + module, rows, k);
  if (!change_ || from->converted) return found;
  return change_(std::move(found), module);
}

const TensorInfo* WeightSource::find(const std::string& name) const {
  const Layer* layer = layer_with(name);
  return layer == nullptr ? nullptr : layer->checkpoint->find(layer->prefix + name);
}

const TensorInfo& WeightSource::check_vector(const std::string& name,
                                             const FileShape& shape) const {
  const Layer& layer = layer_for(name);
  return quant::check_vector(*layer.checkpoint, layer.prefix + name, shape);
}

void WeightSource::read_vector(const std::string& name, const FileShape& shape, float* into) const {
  const Layer& layer = layer_for(name);
  quant::read_vector(*layer.checkpoint, layer.prefix + name, shape, into);
}

std::span<const std::byte> WeightSource::bytes(const std::string& name) const {
  const Layer& layer = layer_for(name);
  return layer.checkpoint->bytes(layer.prefix + name);
}

std::string WeightSource::full_name(const std::string& name) const {
  return layer_for(name).prefix + name;
}

std::vector<std::string> WeightSource::left_over(
    const std::set<std::string>& used, const std::function<bool(std::string_view)>& ignored) const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) {
    for (const auto& [name, entry] : layer.checkpoint->tensors()) {
      if (!name.starts_with(layer.prefix) || used.contains(std::string(name))) continue;
      if (!ignored(name.substr(layer.prefix.size()))) names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace octet::quant
