#include "hub/pull.h"

#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/stopwatch.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/names.h"
#include "hub/partial_file.h"
#include "hub/remote.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr long kIdleSeconds = 30;
constexpr long kMostIdleSeconds = 3600;
constexpr int kMostConnections = 64;
constexpr int kMostRetries = 1000;
constexpr size_t kShownNames = 5;

long idle_seconds(const env::Hub& hub) {
  if (!hub.timeout) return kIdleSeconds;
  const std::string& text = *hub.timeout;
  const auto seconds = number_in<long>(text);
  check(seconds && *seconds > 0 && *seconds <= kMostIdleSeconds,
        "HF_HUB_DOWNLOAD_TIMEOUT is {}, expected seconds from 1 to {}", in_quotes(text),
        kMostIdleSeconds);
  return *seconds;
}

void check_request(const PullRequest& request) {
  check_repo_name(request.repo);
  check_revision(request.revision);
  check(request.connections >= 1 && request.connections <= kMostConnections,
        "pull: {} connections, expected 1 to {}", request.connections, kMostConnections);
  check(request.retries >= 0 && request.retries <= kMostRetries,
        "pull: {} retries, expected 0 to {}", request.retries, kMostRetries);
}

std::vector<RemoteFile> wanted_of(const Listing& listing, const PullRequest& request) {
  std::vector<RemoteFile> wanted;
  std::string names;
  for (size_t i = 0; i < listing.files.size(); ++i) {
    const RemoteFile& file = listing.files[i];
    if (is_wanted(file.path, request.include, request.exclude)) wanted.push_back(file);
    if (i < kShownNames) names += (i > 0 ? ", " : "") + in_quotes(file.path);
  }
  check(!listing.files.empty(), "{}: the repository has no files", request.repo);
  check(!wanted.empty(), "{}: none of its {} files is wanted by the patterns; it has {}{}",
        request.repo, listing.files.size(), names,
        listing.files.size() > kShownNames ? ", ..." : "");
  return wanted;
}

bool is_in_cache(const RepoCache& cache, const std::string& commit, const Blob& blob) {
  if (cache.has_blob(blob.etag, blob.size)) {
    // A pull that is ended right behind the renaming leaves its journal.
    PartialFile::remove_leftovers(cache.blob(blob.etag).string());
    for (const std::string& path : blob.paths) {
      if (!cache.has_file(commit, path, blob.size, blob.etag)) cache.link(commit, path, blob.etag);
    }
    return true;
  }
  return std::all_of(blob.paths.begin(), blob.paths.end(), [&](const std::string& path) {
    return cache.has_file(commit, path, blob.size, blob.etag);
  });
}

void check_space(const RepoCache& cache, const std::vector<Blob>& blobs) {
  uint64_t needed = 0;
  for (const Blob& blob : blobs) {
    const uint64_t there = PartialFile::bytes_on_disk(cache.blob(blob.etag).string());
    needed += blob.size - std::min(there, blob.size);
  }
  std::error_code error;
  const fs::space_info space = fs::space(cache.cache(), error);
  check(error || needed <= space.available,
        "{}: {} bytes are free, {} are needed; free some, or name another disk as `cache_dir` "
        "or HF_HUB_CACHE",
        cache.cache().string(), space.available, needed);
}

// What is there of a snapshot, without asking anybody whether that is all.
PullReport report_offline(const PullRequest& request, const RepoCache& cache) {
  PullReport report;
  report.repo = request.repo;
  report.revision = request.revision;
  report.commit = cache.commit_of(request.revision);
  std::error_code error;
  if (!report.commit.empty()) {
    const fs::path folder = cache.snapshot(report.commit);
    report.folder = folder.string();
    for (const std::string& path : files_below(report.folder, error)) {
      std::error_code no_file;
      if (!fs::is_regular_file(folder / path, no_file)) continue;
      if (!is_wanted(path, request.include, request.exclude)) continue;
      const auto bytes = static_cast<int64_t>(fs::file_size(folder / path, no_file));
      report.files.push_back({path, bytes, "", false});
      report.total_bytes += bytes;
    }
  }
  check(!report.files.empty(),
        "{}: is not in {}, and HF_HUB_OFFLINE forbids fetching it; unset that and pull again",
        request.repo, cache.cache().string());
  std::sort(report.files.begin(), report.files.end(),
            [](const PulledFile& a, const PulledFile& b) { return a.path < b.path; });
  return report;
}

}  // namespace

PullReport pull(const PullRequest& request, const OnPullStep& on_step) {
  const Stopwatch watch;
  check_request(request);
  const env::Hub hub = env::hub();
  const RepoCache cache(cache_folder(request.cache_dir), request.repo);
  if (hub.offline) return report_offline(request, cache);
  require_http();
  const Remote remote(hub.endpoint, read_token(), request.repo, request.revision);
  const DownloadSettings settings{request.connections, request.retries, idle_seconds(hub)};

  const auto goes_on = [&on_step] { return !on_step || on_step(PullStep()); };
  const Patience patience{request.retries, goes_on};
  HttpConnection connection({settings.idle_seconds, goes_on});
  Listing listing;
  const Patience at_first{request.retries, goes_on, /*is_first_contact=*/true};
  try_until_done(at_first, [&] { listing = remote.list(connection); });
  std::vector<RemoteFile> files = wanted_of(listing, request);
  for (RemoteFile& file : files) {
    if (!file.etag.empty()) continue;
    try_until_done(patience, [&] { remote.describe(connection, listing.commit, file); });
  }

  PullReport report;
  report.repo = request.repo;
  report.revision = request.revision;
  report.commit = listing.commit;
  report.folder = cache.snapshot(listing.commit).string();
  report.total_bytes = static_cast<int64_t>(total_bytes(files, request.repo));
  cache.commit_of(request.revision);  // an odd file in its place is said before all is fetched
  cache.make_folders(listing.commit);
  std::vector<Blob> missing = blobs_of(files);
  missing.erase(
      std::remove_if(missing.begin(), missing.end(),
                     [&](const Blob& blob) { return is_in_cache(cache, listing.commit, blob); }),
      missing.end());
  check_space(cache, missing);
  report.files = report_of(files, missing);
  if (!missing.empty()) {
    int64_t unique = 0, absent = 0;
    for (const Blob& blob : blobs_of(files)) unique += static_cast<int64_t>(blob.size);
    for (const Blob& blob : missing) absent += static_cast<int64_t>(blob.size);
    Download download(remote, cache, listing.commit, missing, settings, unique - absent);
    download.run(on_step);
    report.fetched_bytes = download.fetched_bytes();
  }
  // Last, so that a revision that is known leads to files that are there.
  cache.write_ref(request.revision, listing.commit);
  report.seconds = watch.microseconds() * 1e-6;
  return report;
}

}  // namespace octet::hub
