// One repository on the Hub: its URLs, its listing, and what its refusals mean.
#pragma once

#include <string>

#include "hub/http.h"
#include "hub/listing.h"

namespace octet::hub {

class Remote {
 public:
  // `endpoint` may have a name and a password; `token` may be empty.
  Remote(const std::string& endpoint, std::string token, std::string repo, std::string revision);

  Listing list(HttpConnection& connection) const;

  // Asks for size and etag of one file, where the listing did not tell them.
  void describe(HttpConnection& connection, const std::string& commit, RemoteFile& file) const;

  // A request for a file, without its range. `url` is the file's own, or where it led to before.
  HttpRequest request(const std::string& url) const;
  std::string file_url(const std::string& commit, const std::string& path) const;

  // Throws what a status that is not success means: Transient where waiting may help. `what` is
  // the file's path, or the repository's name.
  [[noreturn]] void refuse(const HttpAnswer& answer, const std::string& what) const;

 private:
  Address endpoint_;
  std::string token_, repo_, revision_;
};

// HF_TOKEN, else the content of the token file; empty when there is neither. A token with anything
// in it that does not belong into a header is an Error, which does not show it.
std::string read_token();

}  // namespace octet::hub
