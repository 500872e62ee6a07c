#include "engine/toy_family.h"

#include <filesystem>
#include <fstream>

#include "base/invalid_request.h"
#include "engine/toy_parts.h"
#include "formats/json.h"
#include "weights/loader.h"
#include "weights/random_checkpoint.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;
using models::PartFiles;
using weights::WeightSource;

constexpr size_t kLongestPrompt = 200;

// Bare, or behind the name of the network in files for several.
WeightSource open_source(const PartFiles& files, const std::string& mark) {
  WeightSource source;
  const auto add = [&](const std::string& path, bool base) {
    const auto checkpoint = std::make_shared<const Checkpoint>(path);
    const std::string prefix = std::string(kToyDenoiser) + ".";
    const std::string found = checkpoint->find(prefix + mark) != nullptr ? prefix : "";
    base ? source.add_base(checkpoint, found) : source.add(checkpoint, found);
  };
  add(files.path, false);
  if (!files.base.empty()) add(files.base, true);
  return source;
}

void check_weights(models::Part& part) {
  weights::CheckpointCheck present(part.source());
  part.visit_all(present);
  present.check_nothing_is_left([&](std::string_view name) { return part.is_ignored(name); });
}

// --- the row of the table ---

constexpr models::NetworkInfo kToyNetworks[] = {{kToyDenoiser, kToyDenoiser, {}}};
constexpr models::Branch kOneBranch[] = {{"only", 0, models::BranchText::prompt, 1, 0}};
constexpr models::Branch kTwoPrompts[] = {
    {"positive", 0, models::BranchText::prompt, 0, 1},
    {"negative", 0, models::BranchText::negative, 1, -1},
};
constexpr models::Branch kThreeBranches[] = {
    {"positive", 0, models::BranchText::prompt, 0, 1},
    {"negative", 0, models::BranchText::negative, 1.5f, -1},
    {"silent", 0, models::BranchText::none, -0.5f, 0},
};
constexpr std::string_view kToyOtherParts[] = {kToyEncoder, kToyDecoder};
const models::Preset kToyPresets[] = {{.name = "plain", .steps = 3}};
const models::Preset kGuidedPresets[] = {
    {.name = "guided", .steps = 3, .phases = {{2, 4.0f}, {1, 1.0f}}}};
constexpr models::SizeLimits kToySizes = {
    .token_side = ToyShape::kTokenSide, .smallest = 8, .largest = 64, .aspect = 4, .title = "Toy"};

std::string class_in(const fs::path& json) try {
  return read_json_file(json.string()).value("_class_name", "");
} catch (const std::exception&) {
  return "";
}

// A folder that says what it is, is nothing else.
bool says_family(const std::string& model, std::string_view family) {
  return class_in(fs::path(model) / "model_index.json") == family;
}

bool recognise(const std::string& model) {
  std::error_code ignored;
  if (fs::is_directory(model, ignored)) {
    const bool says = fs::exists(fs::path(model) / "model_index.json", ignored);
    return says ? says_family(model, "toy")
                : class_in(fs::path(model) / kToyDenoiser / "config.json") == kToyDenoiserClass ||
                      class_in(fs::path(model) / "config.json") == kToyDenoiserClass;
  }
  try {
    const Checkpoint checkpoint(model);
    return checkpoint.find("lift.weight") != nullptr ||
           checkpoint.find(std::string(kToyDenoiser) + ".lift.weight") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// The part's folder in a model, or what is no model as it is.
std::string part_in(const std::string& model, const std::string& part) {
  std::error_code ignored;
  const fs::path inside = fs::path(model) / part;
  return fs::is_directory(inside, ignored) ? inside.string() : model;
}

PartFiles denoiser_of(const std::string& model, const std::string& base) {
  return {part_in(model, kToyDenoiser), base.empty() ? "" : part_in(base, kToyDenoiser)};
}

models::ModelFiles find(const models::FileChoices& choices) {
  models::ModelFiles files;
  files[kToyDenoiser] = denoiser_of(choices.model, choices.base);
  for (const std::string_view name : kToyOtherParts) {
    const std::string part(name);
    const auto chosen = choices.parts.find(part);
    if (chosen != choices.parts.end()) {
      files[part] = {part_in(chosen->second, part), ""};
      continue;
    }
    for (const std::string& model : {choices.model, choices.base, choices.fallback}) {
      const std::string found = model.empty() ? "" : part_in(model, part);
      if (found != model && !files.contains(part)) files[part] = {found, ""};
    }
    check(files.contains(part), "{}: there is no {}; give a model that has it as `base`",
          choices.model, part);
  }
  return files;
}

std::vector<models::NetworkFiles> find_networks(const std::string& model, const std::string& base,
                                                std::string_view) {
  return {{0, denoiser_of(model, base)}};
}

std::unique_ptr<models::Network> open_network(size_t, const PartFiles& files) {
  auto network = std::make_unique<ToyDenoiser>(open_source(files, "lift.weight"));
  check_weights(*network);
  return network;
}

template <class Made>
std::unique_ptr<Made> open_other(const PartFiles& files) {
  auto part = std::make_unique<Made>(open_source(files, "none"));
  check_weights(*part);
  return part;
}

std::unique_ptr<models::Part> open_part(std::string_view part, const PartFiles& files) {
  if (part == kToyDenoiser) return open_network(0, files);
  if (part == kToyEncoder) return open_other<ToyEncoder>(files);
  check(part == kToyDecoder, "{}: is no part of Toy", part);
  return open_other<ToyDecoder>(files);
}

models::Model open(const models::ModelFiles& files, const models::OpenOptions&) {
  models::Model model;
  model.text_encoder = open_other<ToyEncoder>(files.at(kToyEncoder));
  model.networks.push_back(open_network(0, files.at(kToyDenoiser)));
  model.decoder = open_other<ToyDecoder>(files.at(kToyDecoder));
  model.sizes = kToySizes;
  model.tokenize = [](const std::string& prompt) {
    check(prompt.size() <= kLongestPrompt, "caption: {} bytes, expected at most {}", prompt.size(),
          kLongestPrompt);
    std::vector<int32_t> tokens;
    for (const char byte : prompt) tokens.push_back(static_cast<uint8_t>(byte) + 1);
    return tokens;
  };
  return model;
}

std::unique_ptr<models::Network> synthetic_network(size_t, int64_t layers) {
  return std::make_unique<ToyDenoiser>(WeightSource(), layers == 0 ? ToyShape::kBlocks : layers);
}

models::Model synthetic_model(int64_t layers, int64_t text_tokens) {
  models::Model model;
  model.text_encoder = std::make_unique<ToyEncoder>();
  model.networks.push_back(synthetic_network(0, layers));
  model.decoder = std::make_unique<ToyDecoder>();
  model.sizes = kToySizes;
  model.tokenize = [text_tokens](const std::string&) {
    return std::vector<int32_t>(static_cast<size_t>(text_tokens), 1);
  };
  return model;
}

models::PromptText read_prompt(const std::string& text, const std::string& what, bool any) {
  check_value(any || !text.empty(), "caption", "{}: is empty, expected a text", what);
  if (text.empty()) return {" ", {what + ": is empty"}};
  return {text, {}};
}

models::Schedule make_schedule(const models::ScheduleRequest& request) {
  const int steps = request.steps == 0 ? request.preset.steps : request.steps;
  check_value(steps >= 1 && steps <= models::kMostSteps, "steps",
              "schedule: {} steps, expected 1 to {}", steps, models::kMostSteps);
  models::Schedule schedule;
  schedule.guidance = models::guidance_of(request, steps);
  schedule.times.push_back(0);
  for (int i = 1; i <= steps; ++i) {
    schedule.times.push_back(static_cast<float>(i) / static_cast<float>(steps));
    schedule.deltas.push_back(schedule.times.back() - schedule.times[schedule.times.size() - 2]);
  }
  return schedule;
}

void write_part(const fs::path& folder, models::Part& part, const char* class_name, uint64_t seed) {
  fs::create_directories(folder / part.name());
  const std::string file = (folder / part.name() / "weights.safetensors").string();
  write_random_checkpoint(
      file, [&](nn::WeightVisitor& visitor) { part.visit_all(visitor); }, seed, DType::f32);
  std::ofstream(folder / part.name() / "config.json")
      << nlohmann::json{{"_class_name", class_name}};
}

}  // namespace

const models::Family& toy_family() {
  static const models::Family made = {.name = "toy",
                                      .title = "Toy",
                                      .networks = kToyNetworks,
                                      .branches = kOneBranch,
                                      .other_parts = kToyOtherParts,
                                      .presets = kToyPresets,
                                      .sizes = kToySizes,
                                      .usual_size = {16, 12},
                                      .prompt_suffix = ".txt",
                                      .recognise = recognise,
                                      .find = find,
                                      .find_networks = find_networks,
                                      .open = open,
                                      .open_part = open_part,
                                      .open_network = open_network,
                                      .synthetic_network = synthetic_network,
                                      .synthetic_model = synthetic_model,
                                      .read_prompt = read_prompt,
                                      .make_schedule = make_schedule};
  return made;
}

const models::Family& negative_toy_family() {
  static const models::Family made = [] {
    models::Family family = toy_family();
    family.name = "toy_negative";
    family.branches = kTwoPrompts;
    family.presets = kGuidedPresets;
    family.recognise = [](const std::string& model) { return says_family(model, "toy_negative"); };
    return family;
  }();
  return made;
}

const models::Family& three_branch_toy_family() {
  static const models::Family made = [] {
    models::Family family = negative_toy_family();
    family.name = "toy_three";
    family.branches = kThreeBranches;
    family.recognise = [](const std::string& model) { return says_family(model, "toy_three"); };
    return family;
  }();
  return made;
}

void write_toy_model(const std::string& folder, uint64_t seed, const models::Family& family) {
  ToyDenoiser denoiser;
  ToyEncoder encoder;
  ToyDecoder decoder;
  write_part(folder, denoiser, kToyDenoiserClass, seed);
  write_part(folder, encoder, "ToyByteEncoder", seed);
  write_part(folder, decoder, "ToyPixelDecoder", seed);
  std::ofstream(fs::path(folder) / "model_index.json")
      << nlohmann::json{{"_class_name", family.name}};
}

}  // namespace octet::test
