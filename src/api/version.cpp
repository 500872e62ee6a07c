#include "octet/version.h"

#include "octet_commit.h"

namespace octet {

std::string version() { return OCTET_VERSION; }

std::string commit() { return OCTET_COMMIT; }

}  // namespace octet
