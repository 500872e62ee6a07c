// octet::pull, see octet/pull.h.
#pragma once

#include "octet/pull.h"

namespace octet::hub {

PullReport pull(const PullRequest& request, const OnPullStep& on_step);

}  // namespace octet::hub
