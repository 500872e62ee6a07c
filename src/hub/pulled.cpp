#include "hub/pulled.h"

#include <algorithm>
#include <filesystem>

#include "base/file_lock.h"
#include "base/invalid_request.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "hub/names.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

// Calls use(entry) for what is directly in a folder; nothing where it cannot be read.
template <class Use>
void for_each_in(const fs::path& folder, const Use& use) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    use(*it);
  }
}

void check_not_in_use(const RepoCache& cache, const std::string& repo) {
  for_each_in(cache.locks(), [&](const fs::directory_entry& entry) {
    std::error_code error;
    if (entry.path().extension() != ".lock" || !fs::is_regular_file(entry.symlink_status(error))) {
      return;
    }
    const FileLock lock(entry.path().string(), std::chrono::milliseconds(0));
    check(lock.is_held(), "{}: another program is fetching it; wait until that has ended", repo);
  });
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
  for_each_in(cache_folder(cache_dir), [&](const fs::directory_entry& entry) {
    std::string name = entry.path().filename().string();
    std::error_code error;
    if (!name.starts_with(kPrefix) || !entry.is_directory(error)) return;
    name.erase(0, kPrefix.size());
    const size_t dashes = name.find("--");
    if (dashes == name.npos) return;
    name.replace(dashes, 2, "/");
    if (is_repo_name(name)) repos.push_back(std::move(name));
  });
  std::sort(repos.begin(), repos.end());
  return repos;
}

uint64_t bytes_on_disk(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(it->symlink_status(ignored))) {
      const uint64_t size = it->file_size(ignored);
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
  for_each_in(cache.folder() / "snapshots", [&](const fs::directory_entry& entry) {
    std::error_code error;
    const fs::file_time_type time = entry.last_write_time(error);
    if (error || !entry.is_directory(error) || time < newest) return;
    newest = time;
    found = entry.path().string();
  });
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
