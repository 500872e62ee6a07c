// What says whether a file arrived as it was sent: the SHA-256 of a file in Git LFS, or git's blob
// id, which is the SHA-1 of "blob <size>", a NUL byte and the content.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace octet::hub {

// The digest, in hexadecimal digits, of the open file's first `size` bytes; of the kind that `etag`
// is by its length. `go_on` is asked now and then: false ends it with an empty answer.
std::string digest_like(const std::string& etag, int fd, uint64_t size, const std::string& path,
                        const std::function<bool()>& go_on);

}  // namespace octet::hub
