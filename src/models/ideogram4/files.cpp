#include "models/ideogram4/files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/folder.h"
#include "base/invalid_request.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/text.h"
#include "models/ideogram4/dit_source.h"

namespace octet::ideogram4 {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(a, b, ignored);
}

bool is_file(const fs::path& path) { return is_file_there(path.string()); }

bool has_config(const fs::path& folder) { return is_file(folder / "config.json"); }

// A folder without any config.json may hold one checkpoint, as a file does.
bool has_checkpoint(const std::string& folder) {
  std::error_code error;
  return std::ranges::any_of(names_in(folder, error), [](const fs::path& name) {
    return name.extension() == ".safetensors" || name.extension() == ".gguf";
  });
}

// The part's folder inside of `folder`, else `folder` itself when it is the part. In this order:
// repositories may have a config.json of their own besides those of their parts.
std::string folder_in(const std::string& folder, const std::string& part) {
  const fs::path inside = fs::path(folder) / part;
  if (has_config(inside)) return inside.string();
  check(has_config(folder),
        "{}: there is no {}/config.json; expected a folder in Hugging Face's pipeline layout, or "
        "that of the part itself, or a model that has it as `base`",
        folder, part);
  return folder;
}

// The same of a part that may also be a file, or a folder with nothing but one.
std::string part_in(const std::string& path, const std::string& part) {
  check(is_there(path), "{}: there is no such file or folder", path);
  if (!is_folder(path)) return path;
  const fs::path inside = fs::path(path) / part;
  if (has_config(inside) || has_checkpoint(inside.string())) return inside.string();
  if (!has_config(path) && has_checkpoint(path)) return path;
  return folder_in(path, part);
}

constexpr const char* kOther = kUnconditionalTransformer.data();  // ends in a NUL

// The transformer of a base: empty where it has not that branch, so that no weight of the one
// stands in for the other's.
std::string base_dit(const std::string& base, const std::string& part) {
  if (base.empty()) return "";
  check(is_there(base), "{}: there is no such file or folder", base);
  const bool whole = is_there(fs::path(base) / "transformer") || is_there(fs::path(base) / kOther);
  if (whole) return is_there(fs::path(base) / part) ? part_in(base, part) : "";
  if (is_folder(base) && !has_config(base) && !has_checkpoint(base)) return "";
  const std::string only = part_in(base, part);
  const bool usable = part != kOther || has_branch(only, /*conditional=*/false);
  return usable ? only : "";
}

void check_index(const std::string& path) {
  const auto index = read_json_file(path);
  check(index.is_object() && index.contains("_class_name"),
        "{}: is not the index of a pipeline: it has no _class_name", path);
  check(index["_class_name"] == "Ideogram4Pipeline",
        "{}: _class_name is {}, expected \"Ideogram4Pipeline\"", path,
        describe(index["_class_name"]));
}

class Search {
 public:
  explicit Search(const models::FileChoices& choices) : choices_(choices) {
    for (const auto& [name, path] : choices.parts) {
      const bool known =
          name == kOther || name == kTextEncoder || name == kVae || name == kTokenizer;
      check_value(known, "parts", "{} is no part to take from elsewhere, expected {}, {}, {} or {}",
                  Quoted{name}, kOther, kTextEncoder, kVae, kTokenizer);
      check_value(!path.empty(), "parts", "the path of the part {} is empty", name);
    }
  }

  models::ModelFiles files() const {
    models::ModelFiles found;
    const PartFiles transformer{part_in(choices_.model, std::string(kTransformer)),
                                base_of(std::string(kTransformer))};
    check(noted_branch(transformer.path).value_or(true),
          "{}: was taken for the conditional network, but is the unconditional one; expected the "
          "file of the other as `model`",
          transformer.path);
    found.emplace(kTransformer, transformer);
    if (choices_.guided) {
      found.emplace(kUnconditionalTransformer, unconditional(transformer.path));
    }
    const std::string text_encoder = part(std::string(kTextEncoder));
    found[std::string(kTextEncoder)].path = text_encoder;
    found[std::string(kVae)].path = part(std::string(kVae));
    found[std::string(kTokenizer)].path = tokenizer(text_encoder);
    return found;
  }

 private:
  std::string chosen(const std::string& name) const {
    const auto found = choices_.parts.find(name);
    return found == choices_.parts.end() ? "" : found->second;
  }

  std::string base_of(const std::string& name) const { return base_dit(choices_.base, name); }

  PartFiles unconditional(const std::string& transformer) const {
    if (const std::string named = chosen(kOther); !named.empty()) {
      return checked(named, transformer);
    }
    if (is_there(fs::path(choices_.model) / kOther)) return checked(choices_.model, transformer);
    const bool whole = is_there(fs::path(choices_.model) / "transformer");
    if (!whole && has_branch(transformer, /*conditional=*/false)) {
      return {transformer, base_of(kOther)};
    }
    for (const std::string& model : {choices_.base, choices_.fallback}) {
      if (const std::string found = base_dit(model, kOther); !found.empty()) return {found, ""};
    }
    check(!whole,
          "{}: there is no {}/config.json; name another model's as `unconditional_transformer`",
          choices_.model, kOther);
    fail(
        "{}: is a single network, and a guided image needs two; name the other as "
        "`unconditional_transformer`, or set `guidance` to 1",
        transformer);
  }

  // One transformer cannot be both, unless its file holds both.
  PartFiles checked(const std::string& path, const std::string& transformer) const {
    PartFiles files{part_in(path, kOther), base_of(kOther)};
    const auto holds = [&](bool conditional) { return has_branch(files.path, conditional); };
    const bool holds_both = holds(/*conditional=*/true) && holds(/*conditional=*/false);
    check(!is_same(files.path, transformer) || holds_both,
          "{}: was taken for both networks, but contains one; expected the file of the other as "
          "`unconditional_transformer`",
          files.path);
    const bool is_conditional =
        holds(/*conditional=*/true) || noted_branch(files.path).value_or(false);
    check(!is_conditional || holds_both,
          "{}: was taken for the unconditional network, but is the conditional one; expected the "
          "file of the other as `unconditional_transformer`",
          files.path);
    return files;
  }

  // Where `chosen` says, else in the model, else in its base and fallback.
  std::string part(const std::string& name) const {
    if (const std::string named = chosen(name); !named.empty()) return part_in(named, name);
    for (const std::string* model : {&choices_.model, &choices_.base, &choices_.fallback}) {
      if (model->empty()) continue;
      const fs::path inside = fs::path(*model) / name;
      if (has_config(inside) || has_checkpoint(inside.string())) return inside.string();
    }
    const std::string& whole = choices_.base.empty() ? choices_.model : choices_.base;
    check(is_folder(whole),
          "{}: is a file without the {}; give that as `{}`, or as `base` a model that has it",
          whole, name, name);
    return folder_in(whole, name);
  }

  std::string tokenizer(const std::string& text_encoder) const {
    if (const std::string named = chosen(std::string(kTokenizer)); !named.empty()) {
      return chosen_tokenizer(named);
    }
    const fs::path beside = fs::path(text_encoder).parent_path();
    std::vector<fs::path> candidates = {fs::path(choices_.model) / "tokenizer",
                                        beside / "tokenizer"};
    candidates.push_back(is_folder(text_encoder) ? fs::path(text_encoder) : beside);
    for (const std::string& model : {choices_.base, choices_.fallback}) {
      if (!model.empty()) candidates.push_back(fs::path(model) / "tokenizer");
    }
    for (const fs::path& candidate : candidates) {
      const fs::path file = candidate / "tokenizer.json";
      if (is_file(file)) return file.string();
    }
    fail(
        "{}: there is no tokenizer/tokenizer.json, neither there nor next to the text encoder; "
        "give it as `tokenizer`",
        choices_.model);
  }

  static std::string chosen_tokenizer(const std::string& named) {
    const fs::path path = named;
    check(is_there(path), "{}: there is no such file or folder", named);
    if (!is_folder(named)) return named;
    for (const fs::path& file : {path / "tokenizer.json", path / "tokenizer/tokenizer.json"}) {
      if (is_file(file)) return file.string();
    }
    fail("{}: there is no tokenizer.json in it", named);
  }

  const models::FileChoices& choices_;
};

}  // namespace

bool recognise(const std::string& model) {
  const fs::path index = fs::path(model) / "model_index.json";
  if (is_folder(model) && is_file(index)) {
    try {
      const auto root = read_json_file(index.string());
      return root.is_object() && root.contains("_class_name") &&
             root["_class_name"] == "Ideogram4Pipeline";
    } catch (const std::exception&) {
      return false;
    }
  }
  const fs::path inside = fs::path(model) / kTransformer;
  return is_dit(is_there(inside) ? inside.string() : model);
}

models::ModelFiles find_files(const models::FileChoices& choices) {
  check(!choices.model.empty(), "model: the name of its folder is empty");
  for (const std::string& model : {choices.model, choices.base}) {
    const fs::path index = fs::path(model) / "model_index.json";
    if (!model.empty() && is_folder(model) && is_file(index)) check_index(index.string());
  }
  check(choices.fallback.empty() || is_there(choices.fallback),
        "{}: there is no such file or folder", choices.fallback);
  return Search(choices).files();
}

std::vector<models::NetworkFiles> find_networks(const std::string& model, const std::string& base,
                                                std::string_view only) {
  const bool pipeline = is_there(fs::path(model) / kTransformer);
  const bool single_is_other = only == "unconditional";
  const std::string transformer(kTransformer);
  std::vector<models::NetworkFiles> found;
  const PartFiles first{part_in(model, transformer), base_dit(base, transformer)};
  if (pipeline) {
    found.push_back({0, first});
    if (is_there(fs::path(model) / kOther)) {
      found.push_back({1, {part_in(model, kOther), base_dit(base, kOther)}});
    }
  } else if (has_branch(first.path, /*conditional=*/false)) {
    if (!single_is_other || has_branch(first.path, /*conditional=*/true))
      found.push_back({0, first});
    found.push_back({1, {first.path, base_dit(base, kOther)}});
  } else if (single_is_other) {
    found.push_back({1, {first.path, base.empty() ? "" : part_in(base, kOther)}});
  } else {
    found.push_back({0, first});
  }
  return found;
}

}  // namespace octet::ideogram4
