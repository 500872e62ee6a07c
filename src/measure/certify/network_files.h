// Which files a certificate is about.
#pragma once

#include <string>
#include <vector>

#include "octet/model_options.h"

namespace octet::measure {

// The files of the networks that a model brings itself, or that were named in their place; not
// those that come from its base, and not those that guide where it is not guided.
std::vector<std::string> network_files(const ModelOptions& options);

}  // namespace octet::measure
