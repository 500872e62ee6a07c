// Repositories in the cache as a whole: their list, sizes and removal.
#pragma once

#include <string>
#include <vector>

#include "octet/local_models.h"

namespace octet::hub {

// The names of all that have a folder, sorted.
std::vector<std::string> pulled_repos(const std::string& cache_dir);

// Of a folder, links not followed.
uint64_t bytes_on_disk(const std::string& folder);

// The newest snapshot: of main, else of any revision; empty: none is complete.
std::string any_snapshot(const std::string& repo, const std::string& cache_dir);

RemovedModel find_pulled(const std::string& repo, const std::string& cache_dir);
RemovedModel remove_pulled(const std::string& repo, const std::string& cache_dir);

}  // namespace octet::hub
