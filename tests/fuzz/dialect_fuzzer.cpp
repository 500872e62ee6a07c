// libFuzzer target: any text is either refused with an Error of one line as ComfyUI's description
// of a layer and as bitsandbytes' state of one, or says what the loaders may rely on.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "weights/dialects/comfy_quant.h"
#include "weights/dialects/nf4_state.h"

namespace {

using namespace octet::quant;  // NOLINT: this file is about it

void demand(bool condition) {
  if (!condition) std::abort();
}

template <class Call>
void one_line_at_most(Call&& call) {
  try {
    call();
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.starts_with("fuzz") && message.find('\n') == message.npos);
    demand(message.size() < 2000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  one_line_at_most([&] {
    const int64_t group = parse_comfy_quant(octet::parse_json(text, "fuzz"), "fuzz").rotation_group;
    demand(group == 0 || group == 4 || group == 16 || group == 64 || group == 256 || group == 1024);
  });
  one_line_at_most([&] {
    const weights::Nf4State state = parse_nf4_state(octet::parse_json(text, "fuzz"), "fuzz");
    demand(state.block > 0 && state.rows > 0 && state.k > 0 && state.nested_block >= 0);
    demand(std::isfinite(state.nested_offset));
  });
  return 0;
}
