#include "models/ideogram4/model_folders.h"

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/json.h"

namespace octet::ideogram4 {
namespace {

namespace fs = std::filesystem;
using ideogram4::DitFiles;

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
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string suffix = it->path().extension().string();
    if (suffix == ".safetensors" || suffix == ".gguf") return true;
  }
  return false;
}

// The part's folder inside of `folder`, else `folder` itself when it is the part. In this order:
// repositories may have a config.json of their own beside those of their parts.
std::string folder_in(const std::string& folder, const std::string& part) {
  const fs::path inside = fs::path(folder) / part;
  if (has_config(inside)) return inside.string();
  check(has_config(folder),
        "{}: there is no {}/config.json; expected a folder as Hugging Face lays out a pipeline, or "
        "that of the part itself, or a model that has it with --base",
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

constexpr const char* kOther = "unconditional_transformer";

// The transformer of a base: empty where it has not that branch, so that no weight of the one
// stands in for the other's.
std::string base_dit(const std::string& base, const std::string& part) {
  if (base.empty()) return "";
  check(is_there(base), "{}: there is no such file or folder", base);
  const bool whole = is_there(fs::path(base) / "transformer") || is_there(fs::path(base) / kOther);
  if (whole) return is_there(fs::path(base) / part) ? part_in(base, part) : "";
  if (is_folder(base) && !has_config(base) && !has_checkpoint(base)) return "";
  const std::string only = part_in(base, part);
  const bool usable = part != kOther || ideogram4::has_branch(only, /*conditional=*/false);
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
  explicit Search(const FolderChoices& choices) : choices_(choices) {}

  ModelFolders folders() const {
    ModelFolders found;
    found.transformer = {part_in(choices_.model, "transformer"), base_of("transformer")};
    check(ideogram4::noted_branch(found.transformer.path).value_or(true),
          "{}: was taken for the conditional transformer, but is the unconditional one; expected "
          "the file of the other with --model",
          found.transformer.path);
    if (choices_.guided) found.unconditional = unconditional(found.transformer.path);
    found.text_encoder = part(choices_.text_encoder, "text_encoder", "--text-encoder");
    found.vae = part(choices_.vae, "vae", "--vae");
    found.tokenizer = tokenizer(found.text_encoder);
    return found;
  }

 private:
  std::string base_of(const char* name) const { return base_dit(choices_.base, name); }

  DitFiles unconditional(const std::string& transformer) const {
    if (!choices_.unconditional.empty()) return checked(choices_.unconditional, transformer);
    if (is_there(fs::path(choices_.model) / kOther)) return checked(choices_.model, transformer);
    const bool whole = is_there(fs::path(choices_.model) / "transformer");
    if (!whole && ideogram4::has_branch(transformer, /*conditional=*/false)) {
      return {transformer, base_of(kOther)};
    }
    for (const std::string& model : {choices_.base, choices_.fallback}) {
      if (const std::string found = base_dit(model, kOther); !found.empty()) return {found};
    }
    check(!whole, "{}: there is no {}/config.json; name another model's with --uncond",
          choices_.model, kOther);
    fail(
        "{}: is one transformer, and a guided image takes two; name the other with --uncond, or "
        "set --guidance 1",
        transformer);
  }

  // One transformer cannot be both, unless its file holds both.
  DitFiles checked(const std::string& path, const std::string& transformer) const {
    DitFiles files{part_in(path, kOther), base_of(kOther)};
    const auto holds = [&](bool conditional) {
      return ideogram4::has_branch(files.path, conditional);
    };
    const bool holds_both = holds(/*conditional=*/true) && holds(/*conditional=*/false);
    check(!is_same(files.path, transformer) || holds_both,
          "{}: was taken for both transformers, and holds one; expected the file of the other with "
          "--uncond",
          files.path);
    const bool is_conditional =
        holds(/*conditional=*/true) || ideogram4::noted_branch(files.path).value_or(false);
    check(!is_conditional || holds_both,
          "{}: was taken for the unconditional transformer, but is the conditional one; expected "
          "the file of the other with --uncond",
          files.path);
    return files;
  }

  // Where `chosen` says, else in the model, else in those that stand in for it.
  std::string part(const std::string& chosen, const char* name, const char* flag) const {
    if (!chosen.empty()) return part_in(chosen, name);
    for (const std::string* model : {&choices_.model, &choices_.base, &choices_.fallback}) {
      if (model->empty()) continue;
      const fs::path inside = fs::path(*model) / name;
      if (has_config(inside) || has_checkpoint(inside.string())) return inside.string();
    }
    const std::string& whole = choices_.base.empty() ? choices_.model : choices_.base;
    check(is_folder(whole),
          "{}: is a file without the {}; give that with {}, or with --base a model that has it",
          whole, name, flag);
    return folder_in(whole, name);
  }

  std::string tokenizer(const std::string& text_encoder) const {
    if (!choices_.tokenizer.empty()) return chosen_tokenizer();
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
        "{}: there is no tokenizer/tokenizer.json, neither there nor beside the text encoder; give "
        "it with --tokenizer",
        choices_.model);
  }

  std::string chosen_tokenizer() const {
    const fs::path chosen = choices_.tokenizer;
    check(is_there(chosen), "{}: there is no such file or folder", choices_.tokenizer);
    if (!is_folder(choices_.tokenizer)) return choices_.tokenizer;
    for (const fs::path& file : {chosen / "tokenizer.json", chosen / "tokenizer/tokenizer.json"}) {
      if (is_file(file)) return file.string();
    }
    fail("{}: there is no tokenizer.json in it", choices_.tokenizer);
  }

  const FolderChoices& choices_;
};

}  // namespace

ModelFolders find_folders(const FolderChoices& choices) {
  check(!choices.model.empty(), "model: the name of its folder is empty");
  for (const std::string& model : {choices.model, choices.base}) {
    const fs::path index = fs::path(model) / "model_index.json";
    if (!model.empty() && is_folder(model) && is_file(index)) check_index(index.string());
  }
  return Search(choices).folders();
}

Transformers find_transformers(const std::string& model, const std::string& base,
                               bool single_is_unconditional) {
  const bool pipeline = is_there(fs::path(model) / "transformer");
  Transformers found;
  found.conditional = {part_in(model, "transformer"), base_dit(base, "transformer")};
  if (pipeline) {
    if (is_there(fs::path(model) / kOther)) {
      found.unconditional = {part_in(model, kOther), base_dit(base, kOther)};
    }
  } else if (ideogram4::has_branch(found.conditional.path, /*conditional=*/false)) {
    found.unconditional = {found.conditional.path, base_dit(base, kOther)};
    const bool both = ideogram4::has_branch(found.conditional.path, /*conditional=*/true);
    if (single_is_unconditional && !both) found.conditional = {};
  } else if (single_is_unconditional) {
    found.unconditional = {found.conditional.path, base.empty() ? "" : part_in(base, kOther)};
    found.conditional = {};
  }
  return found;
}

}  // namespace octet::ideogram4
