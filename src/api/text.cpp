#include "octet/tools/text.h"

#include "formats/text.h"

namespace octet {

std::string printable(std::string_view text) { return without_controls(text); }

}  // namespace octet
