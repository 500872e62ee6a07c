#include "hub/cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/env.h"
#include "base/error.h"
#include "base/regular_file.h"
#include "hub/names.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error && fs::is_directory(folder, error), "{}: the folder cannot be made: {}",
        folder.string(), error ? error.message() : "a file of this name is there");
}

void write_whole(const fs::path& path, const std::string& text) {
  AtomicFile file(path.string(), AtLink::replace);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// By this tag programs for backups know what they may leave out; huggingface_hub writes it too.
void write_tag(const fs::path& cache) {
  const fs::path tag = cache / "CACHEDIR.TAG";
  std::error_code error;
  if (fs::exists(tag, error)) return;
  write_whole(tag,
              "Signature: 8a477f597d28d172789f06886806bc55\n"
              "# This file is a cache directory tag created by octet.\n"
              "# For information about cache directory tags, see:\n"
              "#\thttps://bford.info/cachedir/\n");
}

bool has_name_of_a_file(std::string_view text) {
  return text.ends_with(".safetensors") || text.ends_with(".gguf") || text.ends_with(".json");
}

bool has_size(const fs::path& path, uint64_t size) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == size;
}

}  // namespace

fs::path cache_folder(const std::string& given) {
  if (!given.empty()) return given;
  const auto cache = env::hub().cache_dir;
  check(cache.has_value(),
        "there is no folder for the files of the Hub: none of HF_HUB_CACHE, HF_HOME, "
        "XDG_CACHE_HOME and HOME is set; set one, or give `cache_dir`");
  return *cache;
}

RepoCache::RepoCache(fs::path cache, const std::string& repo) : cache_(std::move(cache)) {
  check_repo_name(repo);
  name_ = "models--" + repo;
  name_.replace(name_.find('/'), 1, "--");
  folder_ = cache_ / name_;
}

fs::path RepoCache::lock(const std::string& etag) const {
  return cache_ / ".locks" / name_ / (etag + ".lock");
}

fs::path RepoCache::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

void RepoCache::make_folders(const std::string& commit) const {
  make_folder(cache_);
  write_tag(cache_);
  make_folder(folder_ / "blobs");
  make_folder(snapshot(commit));
  make_folder(cache_ / ".locks" / name_);
}

bool RepoCache::has_file(const std::string& commit, const std::string& path, uint64_t size,
                         const std::string& etag) const {
  const fs::path file = snapshot(commit) / path;
  std::error_code is_no_link;
  const fs::path target = fs::read_symlink(file, is_no_link);
  return has_size(file, size) && (is_no_link || target.filename() == etag);
}

bool RepoCache::has_blob(const std::string& etag, uint64_t size) const {
  return has_size(blob(etag), size);
}

void RepoCache::link(const std::string& commit, const std::string& path,
                     const std::string& etag) const {
  fs::path folder = snapshot(commit);
  std::string up = "../../";
  for (const fs::path& part : fs::path(path).parent_path()) {
    folder /= part;
    up += "../";
    struct stat status = {};
    if (::mkdir(folder.c_str(), 0777) == 0) continue;
    const int error_number = errno;  // copying the path may set another
    check(error_number == EEXIST, "{}: the folder cannot be made: {}", folder.string(),
          system_error_text(error_number));
    check(::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode),
          "{}: is not a folder, though the repository has files in it; remove it and pull again",
          folder.string());
  }
  const std::string target = up + "blobs/" + etag;
  const fs::path name = folder / fs::path(path).filename();
  // A second attempt replaces a link that leads elsewhere, or a file of the wrong size.
  for (const bool is_last : {false, true}) {
    if (::symlink(target.c_str(), name.c_str()) == 0) return;
    const int error_number = errno;
    std::error_code error;
    if (error_number == EEXIST && fs::read_symlink(name, error) == target) return;
    const bool replaced = error_number == EEXIST && !is_last && ::unlink(name.c_str()) == 0;
    check(replaced, "{}: the link cannot be made: {}; remove what is there and pull again",
          name.string(), system_error_text(error_number));
  }
}

void RepoCache::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit || commit_of(revision) == commit) return;
  const fs::path path = folder_ / "refs" / revision;
  make_folder(path.parent_path());
  write_whole(path, commit);
}

std::string RepoCache::commit_of(const std::string& revision) const {
  if (is_sha1(revision)) return revision;
  std::string commit = read_start((folder_ / "refs" / revision).string(), 41).value_or("");
  if (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return is_sha1(commit) ? commit : "";
}

std::string find_snapshot(const std::string& repo, const std::string& revision,
                          const std::string& cache_dir) {
  check_revision(revision);
  const RepoCache cache(cache_folder(cache_dir), repo);
  const std::string commit = cache.commit_of(revision);
  std::error_code error;
  if (!commit.empty() && fs::is_directory(cache.snapshot(commit), error)) {
    return cache.snapshot(commit).string();
  }
  return {};
}

std::string find_model(const std::string& path_or_repo) {
  std::error_code error;
  const bool is_path = fs::exists(path_or_repo, error) || !is_repo_name(path_or_repo) ||
                       has_name_of_a_file(path_or_repo);
  // Not repeated: it may hold a password.
  check(fs::exists(path_or_repo, error) || path_or_repo.find("://") == path_or_repo.npos,
        "the model is named by an address, expected a path, or owner/name of what octet pull "
        "fetched from there");
  if (is_path) return path_or_repo;
  const std::string snapshot = find_snapshot(path_or_repo);
  if (!snapshot.empty()) return snapshot;
  // In a folder that is there it is rather a path with a slip.
  if (fs::is_directory(fs::path(path_or_repo).parent_path(), error)) return path_or_repo;
  fail(
      "{}: there is no such file or folder here, and no pulled repository of this name in {}; if "
      "it is on the Hub: octet pull {}",
      path_or_repo, cache_folder().string(), path_or_repo);
}

}  // namespace octet::hub
