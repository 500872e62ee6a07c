#include "pipeline/model_folders.h"

#include <filesystem>

#include "base/error.h"
#include "formats/json.h"

namespace octet::pipeline {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void check_folder(const std::string& folder) {
  check(is_there(folder), "{}: there is no such folder", folder);
  std::error_code ignored;
  check(fs::is_directory(folder, ignored),
        "{}: is a file, expected a folder as Hugging Face lays out a pipeline", folder);
}

// The part's folder inside of `folder`, else `folder` itself when it is the part. In this order:
// repositories may have a config.json of their own beside those of their parts.
std::string part_in(const std::string& folder, const std::string& part) {
  check_folder(folder);
  const fs::path inside = fs::path(folder) / part;
  if (is_there(inside / "config.json")) return inside.string();
  check(is_there(fs::path(folder) / "config.json"),
        "{}: there is no {}/config.json; expected a folder as "
        "Hugging Face lays out a pipeline, or that of the part itself",
        folder, part);
  return folder;
}

void check_index(const std::string& path) {
  const auto index = read_json_file(path);
  check(index.is_object() && index.contains("_class_name"),
        "{}: is not the index of a pipeline: it has no _class_name", path);
  check(index["_class_name"] == "Ideogram4Pipeline",
        "{}: _class_name is {}, expected \"Ideogram4Pipeline\"", path,
        describe(index["_class_name"]));
}

}  // namespace

ModelFolders find_folders(const FolderChoices& choices) {
  check(!choices.model.empty(), "model: the name of its folder is empty");
  check_folder(choices.model);
  const fs::path index = fs::path(choices.model) / "model_index.json";
  if (is_there(index)) check_index(index.string());
  const auto part = [&](const std::string& chosen, const char* name) {
    if (!chosen.empty()) return part_in(chosen, name);
    const bool own =
        choices.fallback.empty() || is_there(fs::path(choices.model) / name / "config.json");
    return part_in(own ? choices.model : choices.fallback, name);
  };
  ModelFolders folders;
  // --model may be the folder of the transformer when all other parts are named.
  folders.transformer = part_in(choices.model, "transformer");
  folders.unconditional = part(choices.unconditional, "unconditional_transformer");
  folders.text_encoder = part(choices.text_encoder, "text_encoder");
  folders.vae = part(choices.vae, "vae");
  check(folders.unconditional != folders.transformer,
        "{}: is one transformer, and an image takes two; name the other with --uncond",
        folders.transformer);
  const fs::path beside = fs::path(folders.text_encoder).parent_path() / "tokenizer";
  for (const fs::path& candidate :
       {fs::path(choices.model) / "tokenizer", beside, fs::path(folders.text_encoder)}) {
    const fs::path file = candidate / "tokenizer.json";
    if (!is_there(file)) continue;
    folders.tokenizer = file.string();
    return folders;
  }
  fail("{}: there is no tokenizer/tokenizer.json, neither there nor beside the text encoder",
       choices.model);
}

}  // namespace octet::pipeline
