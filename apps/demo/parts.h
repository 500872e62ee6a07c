// What the pictures of things consist of: nobody can have it taken away.
#pragma once

#include <string_view>

namespace octet::demo {

// Whether the model paints things of this noun with a part of this name, or may.
bool may_have(std::string_view noun, std::string_view part);

}  // namespace octet::demo
