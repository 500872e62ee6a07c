#include "hub/partial_file.h"

#if OCTET_HAS_CURL
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>
#endif

#include "base/error.h"
#include "hub/names.h"

namespace octet::hub {

#if OCTET_HAS_CURL

std::string PartialFile::digest_like(const std::string& etag,
                                     const std::function<bool()>& go_on) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto require = [](bool done) { check(done, "OpenSSL cannot compute a digest"); };
  const bool is_lfs = is_sha256(etag);
  require(context != nullptr &&
          EVP_DigestInit_ex(context.get(), is_lfs ? EVP_sha256() : EVP_sha1(), nullptr) == 1);
  const auto add = [&](const void* bytes, size_t count) {
    require(EVP_DigestUpdate(context.get(), bytes, count) == 1);
  };
  if (!is_lfs) {
    const std::string head = fmt::format("blob {}", size_);
    add(head.c_str(), head.size() + 1);
  }
  std::vector<char> buffer(std::min<uint64_t>(size_, 1 << 20));
  for (uint64_t at = 0; at < size_;) {
    if (!go_on()) return {};
    const auto count = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size_ - at));
    const ssize_t got = ::pread(fd_, buffer.data(), count, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    check(got > 0, "{}: cannot be read: {}", path_,
          got == 0 ? "it is shorter than expected" : system_error_text(errno));
    add(buffer.data(), static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  require(EVP_DigestFinal_ex(context.get(), bytes, &count) == 1);
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

#else

std::string PartialFile::digest_like(const std::string&, const std::function<bool()>&) const {
  fail("this build has no OpenSSL; install libssl-dev and build again");
}

#endif

}  // namespace octet::hub
