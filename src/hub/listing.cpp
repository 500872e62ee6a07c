#include "hub/listing.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"
#include "hub/names.h"

namespace octet::hub {
namespace {

using nlohmann::json;

constexpr uint64_t kLargestFile = std::numeric_limits<int64_t>::max();

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

uint64_t size_of(const json& value, const std::string& path, const std::string& what) {
  check(value.is_number_unsigned() && value.get<uint64_t>() <= kLargestFile,
        "{}: the size of {} is {}, expected a number of bytes", what, in_quotes(path),
        describe(value));
  return value.get<uint64_t>();
}

std::string text_of(const json& value, const char* key, const std::string& what) {
  check(value.is_string(), "{}: {} is {}, expected a text", what, key, describe(value));
  return value.get<std::string>();
}

RemoteFile parse_file(const json& entry, const std::string& what) {
  check(entry.is_object() && member(entry, "rfilename") != nullptr,
        "{}: an entry of siblings has no rfilename", what);
  RemoteFile file;
  file.path = text_of(entry["rfilename"], "rfilename", what);
  check_file_path(file.path, what);
  const json* size = member(entry, "size");
  const json* blob = member(entry, "blobId");
  if (size != nullptr) file.size = size_of(*size, file.path, what);
  if (blob != nullptr && size != nullptr) file.etag = text_of(*blob, "blobId", what);
  bool is_lfs = false;
  if (const json* lfs = member(entry, "lfs"); lfs != nullptr) {
    check(lfs->is_object() && member(*lfs, "sha256") != nullptr && member(*lfs, "size") != nullptr,
          "{}: the lfs entry of {} has no sha256 or no size", what, in_quotes(file.path));
    file.etag = text_of((*lfs)["sha256"], "sha256", what);
    file.size = size_of((*lfs)["size"], file.path, what);
    is_lfs = true;
  }
  check(file.etag.empty() || (is_lfs ? is_sha256(file.etag) : is_sha1(file.etag)),
        "{}: {} is the {} of {}, expected {} hexadecimal digits", what, in_quotes(file.etag),
        is_lfs ? "sha256" : "blobId", in_quotes(file.path), is_lfs ? 64 : 40);
  return file;
}

// '/' before all other characters: what lies in a folder comes right behind a file of its name.
bool comes_before(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<uint8_t>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

// A name that is both a file and a folder would make a link where a folder must be.
void check_tree(const Listing& listing, const std::string& what) {
  std::vector<std::string_view> paths;
  for (const RemoteFile& file : listing.files) paths.push_back(file.path);
  std::sort(paths.begin(), paths.end(), comes_before);
  for (size_t i = 1; i < paths.size(); ++i) {
    const std::string_view before = paths[i - 1], path = paths[i];
    check(path != before, "{}: the file {} is listed twice", what, in_quotes(path));
    check(!path.starts_with(before) || path[before.size()] != '/',
          "{}: {} is listed as a file and as a folder", what, in_quotes(before));
  }
}

}  // namespace

Listing parse_listing(std::string_view text, const std::string& what) {
  const json root = parse_json(text, what);
  check(root.is_object() && member(root, "sha") != nullptr && member(root, "siblings") != nullptr,
        "{}: there is no sha or no siblings in the answer; is HF_ENDPOINT a mirror of the Hub?",
        what);
  Listing listing;
  listing.commit = text_of(root["sha"], "sha", what);
  check(is_sha1(listing.commit), "{}: sha is {}, expected 40 hexadecimal digits", what,
        in_quotes(listing.commit));
  const json& siblings = root["siblings"];
  check(siblings.is_array(), "{}: siblings is {}, expected an array", what, describe(siblings));
  for (const json& entry : siblings) listing.files.push_back(parse_file(entry, what));
  check_tree(listing, what);
  return listing;
}

uint64_t total_bytes(const std::vector<RemoteFile>& files, const std::string& what) {
  uint64_t total = 0;
  for (const RemoteFile& file : files) {
    const auto sum = checked_add(total, file.size);
    check(sum && *sum <= kLargestFile, "{}: the files are said to be more than {} bytes together",
          what, kLargestFile);
    total = *sum;
  }
  return total;
}

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
