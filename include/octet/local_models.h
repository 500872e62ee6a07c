// The models on this machine: what was pulled, and folders that a program names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct LocalModel {
  std::string name = {};    // what --model takes: "owner/name", or the path
  std::string kind = {};    // "pulled" or "folder"; programs may add others
  std::string folder = {};  // of its files; for a pulled one of the newest snapshot
  uint64_t bytes = 0;       // on disk; for a pulled one of all snapshots
  // How its networks' large linears run: "native INT8", "INT8, quantized while loading", "floating
  // point"; empty: it has no networks that Octet knows.
  std::string runs = {};
  std::string problem = {};  // why it does not run; empty if it does
  // It has networks alone, as octet quantize makes them: text encoder, VAE or another network come
  // from the model that is its base.
  bool needs_base = false;
};

struct ListRequest {
  bool pulled = true;                     // those in the Hub's cache
  std::string cache_dir = {};             // empty: as set by the environment
  std::vector<std::string> folders = {};  // models, or folders with models in them
};

// Pulled ones first, each list sorted by name. Reads headers, no weights.
OCTET_API std::vector<LocalModel> list_models(const ListRequest& request);

// The folder of what was pulled.
OCTET_API std::string cache_of_pulled(const std::string& cache_dir = {});

struct RemovedModel {
  std::string repo = {}, folder = {};
  uint64_t bytes = 0;  // that became free
};

// What remove_model() would remove. Throws Error if nothing of this name was pulled, or another
// program is fetching it; InvalidRequest for what is not owner/name: only what was pulled is
// removed.
OCTET_API RemovedModel find_pulled(const std::string& repo, const std::string& cache_dir = {});

// Removes all that was fetched of a repository. Symbolic links are removed, never followed.
OCTET_API RemovedModel remove_model(const std::string& repo, const std::string& cache_dir = {});

}  // namespace octet
