// The meaning of right: every op in plain loops over plain memory. Slow on purpose.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace octet {

// threads: of Backend::pool(), 0: one per physical core. Ops run on the calling thread alone.
std::unique_ptr<Backend> make_ref_backend(int threads = 0);

}  // namespace octet
