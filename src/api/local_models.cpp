#include "octet/local_models.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/folder.h"
#include "formats/boundary.h"
#include "hub/cache.h"
#include "hub/pulled.h"
#include "models/family.h"
#include "octet/inspect.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// By the linears of the networks, which alone run in INT8.
std::string runs_of(const ModelSummary& summary) {
  size_t stored = 0, loaded = 0, others = 0;
  for (const ModelPart& part : summary.parts) {
    if (!part.part.ends_with("transformer")) continue;
    for (const StoredLinear& linear : part.linears) {
      ++(linear.runs == "int8" ? stored : linear.runs == "int8 on load" ? loaded : others);
    }
  }
  if (loaded > 0) return "INT8, quantized while loading";
  if (stored > 0) return "native INT8";
  return others > 0 ? "floating point" : "";
}

// Whether all of its parts are there; reads no weights.
bool is_whole(const std::string& path) {
  try {
    models::family_of(path).find({.model = path});
    return true;
  } catch (const Error&) {
    return false;
  }
}

void look_into(LocalModel& model) {
  try {
    const ModelSummary summary = inspect_model(model.folder);
    model.runs = runs_of(summary);
    model.problem = summary.problem;
    if (model.runs.empty() && model.problem.empty()) {
      model.problem = "it has no networks that Octet runs";
    }
    if (!model.runs.empty()) model.needs_base = !is_whole(model.folder);
  } catch (const Error& error) {
    model.problem = error.what();
  }
}

bool has_weights_name(const fs::path& path) {
  return path.extension() == ".safetensors" || path.extension() == ".gguf";
}

LocalModel folder_model(const std::string& path) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  LocalModel model{.name = path, .kind = "folder", .folder = path};
  model.bytes = is_file ? fs::file_size(path, error) : hub::bytes_on_disk(path);
  look_into(model);
  return model;
}

// A model itself, or those directly in a folder.
void add_folder(std::vector<LocalModel>& models, const std::string& path) {
  std::error_code error;
  check(fs::exists(path, error), "{}: there is no such file or folder", path);
  LocalModel itself = folder_model(path);
  if (!itself.runs.empty() || !fs::is_directory(path, error)) {
    models.push_back(std::move(itself));
    return;
  }
  std::vector<std::string> inside;
  for (const std::string& name : names_in(path, error)) {
    const fs::path each = fs::path(path) / name;
    std::error_code ignored;
    if (fs::is_directory(each, ignored) || has_weights_name(each)) inside.push_back(each.string());
  }
  check(!error, "{}: cannot be read: {}", path, error.message());
  std::sort(inside.begin(), inside.end());
  const size_t before = models.size();
  for (const std::string& each : inside) {
    LocalModel model = folder_model(each);
    if (!model.runs.empty()) models.push_back(std::move(model));
  }
  if (models.size() > before) return;
  itself.problem = "there are no models in it";
  models.push_back(std::move(itself));
}

}  // namespace

std::vector<LocalModel> list_models(const ListRequest& request) try {
  std::vector<LocalModel> models;
  std::vector<std::string> repos;
  if (request.pulled) repos = hub::pulled_repos(request.cache_dir);
  for (const std::string& repo : repos) {
    LocalModel model{.name = repo, .kind = "pulled"};
    const hub::RepoCache cache(hub::cache_folder(request.cache_dir), repo);
    model.bytes = hub::bytes_on_disk(cache.folder().string());
    try {
      model.folder = hub::any_snapshot(repo, request.cache_dir);
    } catch (const Error& error) {
      model.problem = error.what();
    }
    if (!model.problem.empty()) {
      model.folder = cache.folder().string();
    } else if (model.folder.empty()) {
      model.folder = cache.folder().string();
      model.problem = "nothing of it is complete; octet pull " + repo + " goes on";
    } else {
      look_into(model);
    }
    models.push_back(std::move(model));
  }
  for (const std::string& folder : request.folders) add_folder(models, folder);
  return models;
} catch (...) {
  rethrow_as_error();
}

std::string cache_of_pulled(const std::string& cache_dir) try {
  return hub::cache_folder(cache_dir).string();
} catch (...) {
  rethrow_as_error();
}

RemovedModel find_pulled(const std::string& repo, const std::string& cache_dir) try {
  return hub::find_pulled(repo, cache_dir);
} catch (...) {
  rethrow_as_error();
}

RemovedModel remove_model(const std::string& repo, const std::string& cache_dir) try {
  return hub::remove_pulled(repo, cache_dir);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
