#include "octet/inspect_model.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "api/boundary.h"
#include "base/error.h"
#include "hub/cache.h"
#include "models/ideogram4/load.h"
#include "models/ideogram4/model_folders.h"
#include "models/qwen3/text_encoder.h"
#include "weights/dialect.h"
#include "weights/loader.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kBf16 = 2, kF32 = 4;

// Lists the linears of a part as its checkpoint stores them.
class LinearList : public nn::WeightVisitor {
 public:
  LinearList(const weights::WeightSource& source, bool int8, ModelPart& into)
      : source_(source), int8_(int8), into_(into) {}

  uint64_t memory() const { return memory_; }

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    const weights::StoredParts stored = weights::stored_parts(source_, spec);
    for (const auto& part : stored) {
      StoredLinear linear;
      linear.name = part->module();
      linear.layer = spec.layer;
      linear.dialect = source_.dialect_name(part->module());
      linear.format = part->format();
      linear.n = part->rows();
      linear.k = part->k();
      linear.file_bytes = part->bytes();
      const bool int8 = int8_ && weights::runs_in_int8(source_, spec, *part);
      linear.runs = !int8 ? "bf16" : part->for_int8() ? "int8" : "int8 on load";
      linear.memory_bytes = static_cast<uint64_t>(linear.n * linear.k * (int8 ? 1 : kBf16));
      if (int8) linear.memory_bytes += static_cast<uint64_t>(linear.n) * sizeof(float);
      if (spec.bias) memory_ += static_cast<uint64_t>(linear.n * (int8 ? kF32 : kBf16));
      // Parts with one smoothing vector are joined, and so are their vectors.
      const auto& smooth = part->transform().smooth;
      if (int8 && (part == stored.front() || smooth != stored.front()->transform().smooth)) {
        memory_ += smooth.size() * sizeof(float);
      }
      memory_ += linear.memory_bytes;
      into_.linears.push_back(std::move(linear));
    }
  }
  void conv(nn::Conv&, const nn::ConvSpec& spec) override {
    memory_ += static_cast<uint64_t>(spec.out * (spec.in * spec.kernel * spec.kernel + 1) * kBf16);
  }
  void vector(nn::Vector&, const std::string&, int64_t length) override {
    memory_ += static_cast<uint64_t>(length) * sizeof(float);
  }
  void table(nn::Table&, const std::string&, int64_t rows, int64_t columns) override {
    memory_ += static_cast<uint64_t>(rows * columns * kBf16);
  }

 private:
  const weights::WeightSource& source_;
  bool int8_;
  ModelPart& into_;
  uint64_t memory_ = 0;
};

// The dialects, the commonest first.
void name_dialects(ModelPart& part) {
  std::map<std::string, int> counts;
  for (const StoredLinear& linear : part.linears) {
    ++counts[linear.dialect];
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.emplace_back(-count, name);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [count, name] : sorted) {
    if (!part.dialect.empty()) part.dialect += ", ";
    part.dialect += name;
  }
}

uint64_t file_bytes(const weights::WeightSource& source,
                    const std::function<void(nn::WeightVisitor&)>& visit) {
  weights::CheckpointCheck present(source);
  visit(present);
  return present.bytes();
}

ModelPart transformer(const ideogram4::DitFiles& files, bool conditional) {
  ideogram4::check_dit(files, conditional);
  const ideogram4::DitSource source = open_dit(files, conditional);
  ModelPart part{.part = conditional ? "transformer" : "unconditional_transformer",
                 .path = source.weights.path()};
  LinearList list(source.weights, /*int8=*/true, part);
  ideogram4::Dit dit;
  dit.config = source.config;
  const auto visit = [&](nn::WeightVisitor& visitor) { visit_weights(dit, conditional, visitor); };
  visit(list);
  part.memory_bytes = list.memory();
  part.file_bytes = file_bytes(source.weights, visit);
  name_dialects(part);
  return part;
}

ModelPart text_encoder(const std::string& path) {
  const qwen3::TextEncoder encoder(path);
  ModelPart part{.part = "text_encoder", .path = encoder.source().path()};
  for (int64_t i = -1; i < qwen3::kRunLayers; ++i) {
    const auto visit = [&](nn::WeightVisitor& visitor) {
      nn::Table embedding;
      qwen3::TextLayer layer;
      if (i < 0) return visit_embedding(embedding, encoder.config(), visitor);
      visit_layer(layer, encoder.config(), i, visitor);
    };
    LinearList list(encoder.source(), /*int8=*/false, part);
    visit(list);
    part.memory_bytes = std::max(part.memory_bytes, list.memory());
    part.file_bytes += file_bytes(encoder.source(), visit);
  }
  name_dialects(part);
  return part;
}

ModelPart vae(const std::string& path) {
  ideogram4::check_vae(path);
  const flux2_vae::VaeSource source = flux2_vae::open_vae(path);
  flux2_vae::VaeDecoder decoder;
  decoder.config = source.config;
  ModelPart part{.part = "vae", .path = source.weights.path()};
  LinearList list(source.weights, /*int8=*/false, part);
  const auto visit = [&](nn::WeightVisitor& visitor) { visit_weights(decoder, visitor); };
  visit(list);
  part.memory_bytes = list.memory();
  part.file_bytes = file_bytes(source.weights, visit);
  part.dialect = "plain";
  return part;
}

// A text encoder or a VAE on its own; nothing for what is neither, or of another model: any file
// has tensors to list.
std::vector<ModelPart> lone_part(const std::string& path) {
  for (const auto read : {text_encoder, vae}) {
    try {
      return {read(path)};
    } catch (const Error&) {
      continue;
    }
  }
  return {};
}

bool has_part(const std::string& path, const char* part) {
  std::error_code ignored;
  return fs::is_directory(fs::path(path) / part, ignored);
}

void add_transformers(const std::string& path, const std::string& base,
                      std::vector<ModelPart>& parts) {
  // A base may have the text's weights that a file lacks, unless the names say what it is.
  const bool unconditional = !has_part(path, "transformer") && !ideogram4::has_text_weights(path) &&
                             (base.empty() || ideogram4::has_branch(path, /*conditional=*/false));
  const auto found = ideogram4::find_transformers(path, base, unconditional);
  if (!found.conditional.path.empty()) parts.push_back(transformer(found.conditional, true));
  if (!found.unconditional.path.empty()) parts.push_back(transformer(found.unconditional, false));
}

}  // namespace

ModelSummary inspect_model(const std::string& model, const std::string& base_model) try {
  const std::string path = hub::find_model(model), base = hub::find_model(base_model);
  ModelSummary summary;
  summary.is_checkpoint =
      !has_part(path, "transformer") && !has_part(path, "text_encoder") && !has_part(path, "vae");
  if (!summary.is_checkpoint) {
    if (has_part(path, "transformer")) add_transformers(path, base, summary.parts);
    if (has_part(path, "text_encoder")) {
      summary.parts.push_back(text_encoder((fs::path(path) / "text_encoder").string()));
    }
    if (has_part(path, "vae")) summary.parts.push_back(vae((fs::path(path) / "vae").string()));
  } else if (auto lone = lone_part(path); !lone.empty()) {
    summary.parts = std::move(lone);
  } else if (ideogram4::is_dit(path)) {
    try {
      add_transformers(path, base, summary.parts);
    } catch (const Error& error) {
      // Its tensors can be listed all the same, and show what is wrong.
      summary.parts.clear();
      summary.problem = error.what();
    }
  }
  return summary;
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
