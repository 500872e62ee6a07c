// Defines correct results: every op in plain loops over plain memory. Slow on purpose.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace octet {

// threads: of Backend::pool(); 0: one per physical core. Ops run only on the calling thread.
std::unique_ptr<Backend> make_ref_backend(int threads = 0);

}  // namespace octet
