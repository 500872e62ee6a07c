// What a repository holds, as the Hub's API lists it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/pull.h"

namespace octet::hub {

struct RemoteFile {
  std::string path;   // inside of the repository
  uint64_t size = 0;  // bytes
  // Names the blob in the cache and says what its content must be: the SHA-256 of a file in Git
  // LFS, else git's own blob id. Empty where the listing does not tell.
  std::string etag;
};

struct Listing {
  std::string commit;  // what the revision means now, 40 hexadecimal digits
  std::vector<RemoteFile> files;
};

// Validates the answer of /api/models/<repo>/revision/<revision>?blobs=true. Strict where a value
// becomes a path or a size; `what` begins the sentence of an Error.
Listing parse_listing(std::string_view text, const std::string& what);

// The sum of their sizes; an Error when no disk could hold it.
uint64_t total_bytes(const std::vector<RemoteFile>& files, const std::string& what);

// One content, and the paths of the repository that have it.
struct Blob {
  std::string etag;
  uint64_t size = 0;
  std::vector<std::string> paths;
};

// Files of equal content are one blob, in the order of the listing. Throws Error when one digest
// comes with two sizes.
std::vector<Blob> blobs_of(const std::vector<RemoteFile>& files);

// The files as a report lists them; those of the `missing` blobs are fetched.
std::vector<PulledFile> report_of(const std::vector<RemoteFile>& files,
                                  const std::vector<Blob>& missing);

}  // namespace octet::hub
