#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "formats/boundary.h"
#include "hub/cache.h"
#include "models/family.h"
#include "octet/inspect.h"
#include "weights/dialect.h"
#include "weights/loader.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kBf16 = 2, kF32 = 4;

// Lists the linears of a part as its checkpoint stores them.
class StoredLinears : public nn::WeightVisitor {
 public:
  StoredLinears(const weights::WeightSource& source, bool int8, ModelPart& into)
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
  void table(nn::Table& into, const std::string&, int64_t rows, int64_t columns) override {
    if (into.in_files) return;
    memory_ += static_cast<uint64_t>(rows * columns * kBf16);
  }

 private:
  const weights::WeightSource& source_;
  bool int8_;
  ModelPart& into_;
  uint64_t memory_ = 0;
};

// The dialects, the most common first; a part may have no linears.
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
  if (part.dialect.empty()) part.dialect = "plain";
}

ModelPart summary_of(models::Part& part) {
  ModelPart made{.part = std::string(part.name()), .path = part.source().path()};
  const bool int8 = dynamic_cast<models::Network*>(&part) != nullptr;
  const bool passes = dynamic_cast<models::TextEncoder*>(&part) != nullptr;
  for (int64_t unit = 0; unit < part.unit_count(); ++unit) {
    StoredLinears list(part.source(), int8, made);
    part.visit(unit, list);
    made.memory_bytes =
        passes ? std::max(made.memory_bytes, list.memory()) : made.memory_bytes + list.memory();
  }
  weights::CheckpointCheck present(part.source());
  part.visit_all(present);
  made.file_bytes = present.bytes();
  name_dialects(made);
  return made;
}

// A part other than a network, by itself; nothing for anything else, whose tensors can still be
// listed.
std::vector<ModelPart> lone_part(const std::string& path) {
  for (const models::Family* family : models::families()) {
    for (const std::string_view part : family->other_parts) {
      try {
        return {summary_of(*family->open_part(part, {.path = path}))};
      } catch (const Error&) {
        continue;
      }
    }
  }
  return {};
}

bool has_part(const std::string& path, std::string_view part) {
  std::error_code ignored;
  return fs::is_directory(fs::path(path) / part, ignored);
}

// A file need not say which network it is: it is the first for which it is complete.
std::vector<ModelPart> networks_of(const models::Family& family, const std::string& path,
                                   const std::string& base) {
  std::exception_ptr problem;
  for (const models::NetworkInfo& only : family.networks) {
    try {
      std::vector<ModelPart> parts;
      for (const auto& [network, files] : family.find_networks(path, base, only.name)) {
        parts.push_back(summary_of(*family.open_network(network, files)));
      }
      return parts;
    } catch (const Error&) {
      if (!problem) problem = std::current_exception();
    }
  }
  std::rethrow_exception(problem);
}

}  // namespace

ModelSummary inspect_model(const std::string& model, const std::string& base_model) try {
  const std::string path = hub::find_model(model), base = hub::find_model(base_model);
  const models::Family& family = models::family_of(path);
  const bool has_networks = has_part(path, family.networks.front().part);
  ModelSummary summary;
  if (has_networks) summary.parts = networks_of(family, path, base);
  for (const std::string_view part : family.other_parts) {
    if (!has_part(path, part)) continue;
    const auto opened = family.open_part(part, {.path = (fs::path(path) / part).string()});
    summary.parts.push_back(summary_of(*opened));
  }
  summary.is_checkpoint = summary.parts.empty();
  if (!summary.is_checkpoint) return summary;
  summary.parts = lone_part(path);
  if (summary.parts.empty() && family.recognise(path)) {
    try {
      summary.parts = networks_of(family, path, base);
    } catch (const Error& error) {
      // Its tensors can still be listed, and show what is wrong.
      summary.problem = error.what();
    }
  }
  return summary;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
