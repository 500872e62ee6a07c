#include "hub/pulled.h"

#include <algorithm>
#include <filesystem>

#include "base/file_lock.h"
#include "base/folder.h"
#include "base/invalid_request.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "hub/names.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

// What is directly in a folder; nothing where it cannot be read.
std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const std::string& name : names_in(folder.string(), error)) paths.push_back(folder / name);
  return paths;
}

void check_not_in_use(const RepoCache& cache, const std::string& repo) {
  for (const fs::path& path : paths_in(cache.locks())) {
    std::error_code error;
    if (path.extension() != ".lock" || !fs::is_regular_file(fs::symlink_status(path, error))) {
      continue;
    }
    const FileLock lock(path.string(), std::chrono::milliseconds(0));
    check(lock.is_held(), "{}: another program is fetching it; wait until that has ended", repo);
  }
}

// Throws as find_pulled() does.
RepoCache cache_of(const std::string& repo, const std::string& cache_dir) {
  check_value(is_repo_name(repo), "repo",
              "{} is not owner/name of a pulled repository; only those are removed, other folders "
              "are yours to delete",
              in_quotes(repo));
  RepoCache cache(cache_folder(cache_dir), repo);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(cache.folder(), error);
  check(fs::exists(status), "{}: is not in {}; octet list shows what is", repo,
        cache.cache().string());
  check(fs::is_directory(status), "{}: is a link or a file, expected a folder; remove it yourself",
        cache.folder().string());
  check_not_in_use(cache, repo);
  return cache;
}

}  // namespace

std::vector<std::string> pulled_repos(const std::string& cache_dir) {
  std::vector<std::string> repos;
  for (const fs::path& path : paths_in(cache_folder(cache_dir))) {
    std::string name = path.filename().string();
    std::error_code error;
    if (!name.starts_with(kPrefix) || !fs::is_directory(path, error)) continue;
    name.erase(0, kPrefix.size());
    const size_t dashes = name.find("--");
    if (dashes == name.npos) continue;
    name.replace(dashes, 2, "/");
    if (is_repo_name(name)) repos.push_back(std::move(name));
  }
  std::sort(repos.begin(), repos.end());
  return repos;
}

uint64_t bytes_on_disk(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const std::string& name : files_below(folder, error)) {
    const fs::path path = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(fs::symlink_status(path, ignored))) {
      const uint64_t size = fs::file_size(path, ignored);
      if (!ignored) bytes += size;
    }
  }
  return bytes;
}

std::string any_snapshot(const std::string& repo, const std::string& cache_dir) {
  std::string found = find_snapshot(repo, "main", cache_dir);
  if (!found.empty()) return found;
  const RepoCache cache(cache_folder(cache_dir), repo);
  fs::file_time_type newest = fs::file_time_type::min();
  for (const fs::path& path : paths_in(cache.folder() / "snapshots")) {
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(path, error);
    if (error || !fs::is_directory(path, error) || time < newest) continue;
    newest = time;
    found = path.string();
  }
  return found;
}

RemovedModel find_pulled(const std::string& repo, const std::string& cache_dir) {
  const std::string folder = cache_of(repo, cache_dir).folder().string();
  return {repo, folder, bytes_on_disk(folder)};
}

RemovedModel remove_pulled(const std::string& repo, const std::string& cache_dir) {
  const RemovedModel found = find_pulled(repo, cache_dir);
  const RepoCache cache(cache_folder(cache_dir), repo);
  std::error_code error;
  fs::remove_all(cache.folder(), error);  // links as such
  check(!error, "{}: cannot be removed: {}", found.folder, error.message());
  fs::remove_all(cache.locks(), error);  // leftovers do no harm
  return found;
}

}  // namespace octet::hub
