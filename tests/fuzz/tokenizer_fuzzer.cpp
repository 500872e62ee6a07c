// libFuzzer target: a tokenizer.json, a NUL byte and a text. The file is refused with an Error of
// one line, or encodes the text to ids that it has; so does Octet's own tokenizer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "models/byte_tokenizer.h"
#include "models/tokenizer/tokenizer.h"

namespace {

using octet::tokenizer::Tokenizer;

void demand(bool condition) {
  if (!condition) std::abort();
}

template <class Call>
void one_line_at_most(Call&& call) {
  try {
    call();
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.find('\n') == message.npos && message.size() < 2000);
  }
}

void encode(const Tokenizer& tokenizer, std::string_view text) {
  for (const int32_t id : tokenizer.encode(text)) {
    demand(id >= 0 && id <= tokenizer.largest_id());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const std::string_view text = nul == input.npos ? input : input.substr(nul + 1);
  one_line_at_most([&] {
    static const Tokenizer own =
        Tokenizer::from_json(octet::test::make_byte_tokenizer_json(), "own");
    encode(own, text);
  });
  one_line_at_most([&] { encode(Tokenizer::from_json(input.substr(0, nul), "fuzz"), text); });
  return 0;
}
