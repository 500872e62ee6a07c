#include "octet/pull.h"

#include "base/env.h"
#include "base/invalid_request.h"
#include "formats/boundary.h"
#include "hub/names.h"
#include "hub/pull.h"

namespace octet {
namespace {

// The repository's name, even if its URL was given.
PullRequest by_name(PullRequest request) {
  const std::string default_revision = PullRequest().revision;
  const hub::RepoAddress address = hub::parse_repo_address(request.repo, env::hub().endpoint);
  request.repo = address.repo;
  if (address.revision.empty()) return request;
  check_value(request.revision == default_revision || request.revision == address.revision,
              "revision",
              "{}: its URL names the revision {}, but {} was given as well; name only one",
              address.repo, address.revision, request.revision);
  request.revision = address.revision;
  return request;
}

}  // namespace

PullReport pull(const PullRequest& request, const OnPullStep& on_step) try {
  return hub::pull(by_name(request), on_step);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
