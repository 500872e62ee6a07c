#include "hub/blobs.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "formats/text.h"

namespace octet::hub {

std::vector<Blob> blobs_of(const std::vector<RemoteFile>& files) {
  std::vector<Blob> blobs;
  std::unordered_map<std::string_view, size_t> place;
  for (const RemoteFile& file : files) {
    const auto [found, is_new] = place.try_emplace(file.etag, blobs.size());
    if (is_new) blobs.push_back({file.etag, file.size, {}});
    Blob& blob = blobs[found->second];
    check(blob.size == file.size, "{} and {} have one digest and different sizes",
          in_quotes(blob.paths.empty() ? file.path : blob.paths.front()), in_quotes(file.path));
    blob.paths.push_back(file.path);
  }
  return blobs;
}

std::vector<PulledFile> report_of(const std::vector<RemoteFile>& files,
                                  const std::vector<Blob>& missing) {
  std::unordered_set<std::string_view> fetched;
  for (const Blob& blob : missing) fetched.insert(blob.etag);
  std::vector<PulledFile> report;
  report.reserve(files.size());
  for (const RemoteFile& file : files) {
    report.push_back(
        {file.path, static_cast<int64_t>(file.size), file.etag, fetched.contains(file.etag)});
  }
  return report;
}

}  // namespace octet::hub
