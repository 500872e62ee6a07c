// What a repository holds, as the Hub's API lists it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace octet::hub
