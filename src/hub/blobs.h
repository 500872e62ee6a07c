// The contents that a repository's files have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/listing.h"
#include "octet/pull.h"

namespace octet::hub {

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
