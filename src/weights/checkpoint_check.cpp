// Which way a checkpoint stores a model's weights, and whether they are all there and nothing else.
#include <algorithm>

#include "base/error.h"
#include "formats/text.h"
#include "weights/loader.h"

namespace octet::weights {
namespace {

using nn::LinearSpec;
using Layout = std::vector<LinearSpec::Part>;

std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind(".weight"));
}

// What an unused name says about its file.
Sentence hint_of(const std::vector<std::string>& names) {
  const auto any = [&](std::string_view word) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return name.find(word) != name.npos; });
  };
  if (any("lora_")) return sentence("they are those of a LoRA, which `loras` takes");
  if (any(".qweight") || any(".qzeros")) return "GPTQ and AWQ checkpoints are not read";
  if (any(".weight_packed")) return "packed weights of fewer than 8 bits are not read";
  return "the file belongs to another model, or to a dialect that is not read; octet inspect "
         "lists its tensors";
}

}  // namespace

const Layout& layout_in(const WeightSource& source, const LinearSpec& spec) {
  // A file comes before its base, even if the two have different layouts.
  const Layout* best = nullptr;
  size_t least = 0;
  for (const Layout& layout : spec.layouts) {
    size_t depth = 0;
    bool complete = true;
    for (const auto& part : layout) {
      complete = complete && source.has_weight(part.name);
      depth = std::max(depth, source.depth_of(part.name));
    }
    if (!complete || (best != nullptr && depth >= least)) continue;
    best = &layout;
    least = depth;
  }
  if (best != nullptr) return *best;
  std::string names;
  for (const Layout& layout : spec.layouts) {
    if (!names.empty()) names += " or ";
    for (const auto& part : layout) {
      if (&part != &layout.front()) names += ", ";
      names += in_quotes(source.full_name(part.name + ".weight"));
    }
  }
  fail("{}: tensor {} is missing; the checkpoint is incomplete or of another model", source.path(),
       names);
}

StoredParts stored_parts(const WeightSource& source, const LinearSpec& spec) {
  StoredParts parts;
  for (const auto& part : layout_in(source, spec)) {
    parts.push_back(source.weight(part.name, part.rows, spec.k));
  }
  return parts;
}

bool runs_in_int8(const WeightSource& source, const LinearSpec& spec, const StoredWeight& weight) {
  return weight.for_int8() || (spec.large && !source.is_protected(weight));
}

void CheckpointCheck::count(const std::string& name, const FileShape& shape) {
  bytes_ += source_.check_vector(name, shape).bytes();
  used_.insert(source_.full_name(name));
}

void CheckpointCheck::count(const StoredWeight& weight) {
  bytes_ += weight.bytes();
  for (const UsedTensor& tensor : weight.tensors()) used_.insert(tensor.name);
}

void CheckpointCheck::linear(nn::Linear&, const LinearSpec& spec) {
  for (const auto& part : stored_parts(source_, spec)) count(*part);
  if (!spec.bias) return;
  for (const auto& part : layout_in(source_, spec)) count(part.name + ".bias", {part.rows});
}

void CheckpointCheck::conv(nn::Conv&, const nn::ConvSpec& spec) {
  count(spec.name + ".weight", {spec.out, spec.in, spec.kernel, spec.kernel});
  count(spec.name + ".bias", {spec.out});
}

void CheckpointCheck::vector(nn::Vector&, const std::string& name, int64_t length) {
  count(name, {length});
}

void CheckpointCheck::table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) {
  count(*source_.weight(module_of(name), rows, columns));
}

void CheckpointCheck::check_nothing_is_left(
    const std::function<bool(std::string_view)>& ignored) const {
  const std::vector<std::string> left = source_.left_over(used_, ignored);
  if (left.empty()) return;
  constexpr size_t kShown = 8;
  fail("{}: {} no place in the model: {}; {}", source_.path(),
       left.size() == 1 ? "1 tensor has" : fmt::format("{} tensors have", left.size()),
       listed(left, kShown), hint_of(left));
}

}  // namespace octet::weights
