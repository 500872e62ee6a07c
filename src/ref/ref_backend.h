// The meaning of right: every op in plain loops over plain memory. Slow on purpose.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace octet {

std::unique_ptr<Backend> make_ref_backend();

}  // namespace octet
