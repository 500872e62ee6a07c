// Patterns for names: '*' is any text, '?' any character, [a-z0] one of these. Case matters.
#pragma once

#include <string_view>

namespace octet::audit {

// Whether the whole text fits. Time grows with the product of both lengths at worst: pieces between
// two '*' are taken where they come first, and never looked for again. A '[' without ']' is itself.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace octet::audit
