#include "hub/remote.h"

#include <algorithm>
#include <utility>

#include "base/env.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/text.h"
#include "hub/names.h"

namespace octet::hub {
namespace {

constexpr size_t kLongestToken = 4096;
constexpr long kMostSeconds = 600;  // for anything but files: listings have some kilobytes

// "W/"abc"" and ""abc"" are abc.
std::string plain_etag(std::string etag) {
  if (etag.rfind("W/", 0) == 0) etag.erase(0, 2);
  etag.erase(std::remove(etag.begin(), etag.end(), '"'), etag.end());
  return etag;
}

}  // namespace

std::string read_token() {
  const env::Hub hub = env::hub();
  std::string token = hub.token;
  if (token.empty() && hub.token_file) {
    token = read_start(hub.token_file->string(), kLongestToken + 1).value_or("");
  }
  const char* const spaces = " \t\r\n";
  token.erase(0, std::min(token.find_first_not_of(spaces), token.size()));
  token.erase(token.find_last_not_of(spaces) + 1);
  check(token.size() <= kLongestToken &&
            std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; }),
        "the token in HF_TOKEN or its file is not valid: it has spaces or other characters that do "
        "not belong there; create a new one at https://huggingface.co/settings/tokens");
  return token;
}

Remote::Remote(const std::string& endpoint, std::string token, std::string repo,
               std::string revision)
    : token_(std::move(token)), repo_(std::move(repo)), revision_(std::move(revision)) {
  try {
    endpoint_ = address_of(endpoint);
  } catch (const Error& error) {
    fail("HF_ENDPOINT: {}", error.sentence());
  }
}

HttpRequest Remote::request(const std::string& url) const {
  HttpRequest request;
  request.url = url;
  request.token = token_;
  request.user = endpoint_.user;
  request.password = endpoint_.password;
  request.home = endpoint_.url;
  return request;
}

std::string Remote::file_url(const std::string& commit, const std::string& path) const {
  return fmt::format("{}/{}/resolve/{}/{}", endpoint_.url, repo_, commit, escape_url(path, true));
}

Listing Remote::list(HttpConnection& connection) const {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_.url,
                                      repo_, escape_url(revision_, false));
  const std::string what = "the Hub's listing of " + repo_;
  std::string text;
  HttpRequest listing = request(url);
  listing.most_seconds = kMostSeconds;
  const HttpAnswer answer = connection.send(
      listing, [](const HttpAnswer& head) { return head.status == 200; },
      [&](std::span<const std::byte> bytes) {
        check(text.size() + bytes.size() <= kMaxJsonBytes, "{}: is longer than {} bytes", what,
              kMaxJsonBytes);
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      });
  if (answer.status != 200) refuse(answer, repo_);
  return parse_listing(text, what);
}

void Remote::describe(HttpConnection& connection, const std::string& commit,
                      RemoteFile& file) const {
  HttpRequest head = request(file_url(commit, file.path));
  head.head_only = true;
  head.most_seconds = kMostSeconds;
  const HttpAnswer answer = connection.send(head, [](const HttpAnswer&) { return false; }, {});
  const std::string linked_etag = answer.header("x-linked-etag");
  const std::string linked_size = answer.header("x-linked-size");
  // A redirect to where the content lies is as good, when it tells about that.
  if (answer.status != 200 && (answer.status / 100 != 3 || linked_etag.empty())) {
    refuse(answer, repo_ + "/" + file.path);
  }
  file.etag = plain_etag(linked_etag.empty() ? answer.header("etag") : linked_etag);
  const std::string size = linked_size.empty() ? answer.header("content-length") : linked_size;
  const auto bytes = number_in<uint64_t>(size);
  check(bytes && (is_sha1(file.etag) || is_sha256(file.etag)),
        "{}/{}: the server gives no size or no digest (size {}, etag {}); is HF_ENDPOINT a mirror "
        "of the Hub?",
        repo_, file.path, in_quotes(size), in_quotes(file.etag));
  file.size = *bytes;
}

void Remote::refuse(const HttpAnswer& answer, const std::string& what) const {
  const std::string name = one_line(what);
  const std::string code = answer.header("x-error-code");
  const std::string page = fmt::format("{}/{}", endpoint_.url, repo_);
  switch (answer.status) {
    case 0: throw Stopped();
    case 401:
      if (!token_.empty()) {
        fail(
            "{}: the Hub does not accept the token (401); is the name right? Set HF_TOKEN to a "
            "valid token of an account that may read {}",
            name, page);
      }
      fail(
          "{}: is gated, private or not there (401); accept the licence at {} if there is one, "
          "and set HF_TOKEN to a token of the account that did",
          name, page);
    case 403:
      fail(
          "{}: access is refused (403); accept the licence at {} and set HF_TOKEN to a token of "
          "the account that did, with the right to read gated repositories",
          name, page);
    case 404:
    case 410:
      if (code == "RevisionNotFound") {
        fail("{}: has no revision {}; {}/tree/main lists them", repo_, in_quotes(revision_), page);
      }
      if (code == "EntryNotFound" || what != repo_) {
        fail("{}: the file is not there ({}), though it is listed; pull again", name,
             answer.status);
      }
      fail("{}: there is no such repository, or no revision {} of it (404); look for it at {}",
           name, in_quotes(revision_), page);
    case 416:
      fail("{}: is shorter on the server than its listing says (416); pull again later", name);
    case 429:
      throw Transient(fmt::format("{}: the Hub asks for fewer requests (429); pull again {}, and "
                                  "set HF_TOKEN, which raises the limit",
                                  name,
                                  answer.retry_after_seconds > 0
                                      ? fmt::format("in {:.0f} s", answer.retry_after_seconds)
                                      : "in some minutes"),
                      answer.retry_after_seconds);
    default: break;
  }
  const std::string sentence = fmt::format(
      "{}: the server answers {}; pull again later, what was fetched is kept", name, answer.status);
  if (answer.status / 100 == 5 || answer.status == 408) {
    throw Transient(sentence, answer.retry_after_seconds);
  }
  throw Error(sentence);
}

}  // namespace octet::hub
