#include "octet/pull.h"

#include "hub/pull.h"

namespace octet {

PullReport pull(const PullRequest& request, const OnPullStep& on_step) {
  return hub::pull(request, on_step);
}

}  // namespace octet
