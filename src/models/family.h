// The one seam between the models and everything above them: a family is a row of a table, as a
// dialect is. The engine, the converter and the commands ask the row, and name no model.
//
// To add a family: a folder under models/ with its parts (part.h) and one Family, and its line in
// family.cpp. (add_family() does the same at run time, for tests and for programs with models of
// their own.)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/branch.h"
#include "models/config_fields.h"
#include "models/image_size.h"
#include "models/part.h"
#include "models/schedule.h"
#include "octet/caption.h"
#include "octet/model_options.h"

namespace octet::models {

// One of a family's networks: a set of weights that denoises.
struct NetworkInfo {
  std::string_view name;  // "conditional"
  std::string_view part;  // "transformer": its folder in a model
  // What else it is called: before names in files of weights and LoRAs, and by users.
  std::span<const std::string_view> aliases;
};

struct PartFiles {
  std::string path;  // a checkpoint, or a folder with one and, perhaps, its config.json
  std::string base;  // likewise: gives what `path` lacks; or empty

  bool operator==(const PartFiles&) const = default;
};
// By the name of the part; a network that is not needed is absent.
using ModelFiles = std::map<std::string, PartFiles, std::less<>>;

// Where a user says that the parts are: paths, no names of the hub.
struct FileChoices {
  std::string model, base, fallback;         // see ModelOptions
  std::map<std::string, std::string> parts;  // likewise
  bool guided = true;
};

// A network in files that may hold one or several.
struct NetworkFiles {
  size_t network = 0;  // of Family::networks
  PartFiles files;
};

struct TrainedFor;  // trained_for.h

struct PromptText {
  std::string text;  // as the tokenizer is to get it
  std::vector<Sentence> warnings;
};

// A model whose files are open and belong together. No weight has been read.
struct Model {
  std::unique_ptr<TextEncoder> text_encoder;
  // As in Family; without those at the end that only guidance needs, if nothing is guided.
  std::vector<std::unique_ptr<Network>> networks;
  std::unique_ptr<Decoder> decoder;
  // Throws Error for a text that is too long.
  std::function<std::vector<int32_t>(const std::string& prompt)> tokenize;
  SizeLimits sizes;
};

struct OpenOptions {
  Convention convention = Convention::official;
  Activations activations = Activations::bf16;
  bool decodes = true;  // false: the decoder is only looked at, for the sizes that it makes
};

// What a preset in a model's own file says for its family besides name, steps and guidance.
struct PresetKeys {
  std::span<const std::string_view> required, optional;
  void (*read)(const ConfigFields& fields, Preset& preset) = nullptr;
};

struct Family {
  std::string_view name;   // "ideogram4"
  std::string_view title;  // "Ideogram 4"
  std::span<const NetworkInfo> networks;
  std::span<const Branch> branches;               // of a step, at most kMostBranches
  std::span<const std::string_view> other_parts;  // with weights: "text_encoder", "vae"
  std::span<const Preset> presets;  // of the published model; others may have their own, presets.h
  PresetKeys preset_keys;           // of such files
  SizeLimits sizes;                 // of the published model
  PictureSize usual_size;           // likewise: of pictures whose size nobody names
  std::string_view prompt_suffix;   // ".json": of the files, one prompt each, in a folder of them

  // Whether a model's folder or file is of this family. Cheap, and throws nothing.
  bool (*recognise)(const std::string& model);
  // The files of all parts. Throws Error, naming the path, for what is missing.
  ModelFiles (*find)(const FileChoices& choices);
  // The networks of a model's folder, or the one or several of a file. `only`: which one a file
  // with a single network is, where nothing in it says so; empty: the first.
  std::vector<NetworkFiles> (*find_networks)(const std::string& model, const std::string& base,
                                             std::string_view only);
  // Throws Error when a part is incomplete, holds what nobody reads, or belongs to another model.
  Model (*open)(const ModelFiles& files, const OpenOptions& options);
  // A single part, checked likewise. Throws Error for an unknown name.
  std::unique_ptr<Part> (*open_part)(std::string_view part, const PartFiles& files);
  std::unique_ptr<Network> (*open_network)(size_t network, const PartFiles& files);
  // One of the published sizes without files, for benchmarks; `layers` 0: all.
  std::unique_ptr<Network> (*synthetic_network)(size_t network, int64_t layers);
  // All parts likewise; any prompt has this many tokens.
  Model (*synthetic_model)(int64_t layers, int64_t text_tokens);
  // What a user wrote as the model is to get it, as a prompt or, where a branch sees one, as a
  // negative prompt. Throws Error for what it does not take; `any` takes it with its errors. `what`
  // begins the sentence.
  PromptText (*read_prompt)(const std::string& text, const std::string& what, bool any);
  // What is right and wrong with it, in detail, and plain text as such a prompt. Both null: the
  // family takes any text as it is.
  CaptionReport (*check_prompt)(std::string_view text) = nullptr;
  std::string (*wrap_text)(std::string_view plain_text) = nullptr;
  // Phrases: where a prompt, as the model gets it, leaves what this model was trained for. Null:
  // nobody knows.
  std::vector<std::string> (*leaves_training)(const std::string& prompt,
                                              const TrainedFor& model) = nullptr;
  size_t most_prompt_bytes = size_t{1} << 16;
  Schedule (*make_schedule)(const ScheduleRequest& request);
};

std::vector<const Family*> families();
// It outlives its use. Throws Error for branches that make no step.
void add_family(const Family& family);

const Family& family_named(std::string_view name);  // throws InvalidRequest listing the names
// The family of a model's folder or file. One that nobody recognises is left to the first, which
// says what is wrong with it.
const Family& family_of(const std::string& model);

// By name or alias; throws InvalidRequest for `field` listing the names.
size_t network_named(const Family& family, std::string_view name, const std::string& field);

}  // namespace octet::models
