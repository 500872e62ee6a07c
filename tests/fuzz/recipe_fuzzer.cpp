// libFuzzer target: any text is either refused as a recipe.json with an Error of one line, or gives
// an alpha from 0 to 1.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "weights/dialects/recipe_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const octet::weights::StoredRecipe recipe =
        octet::weights::parse_recipe(octet::parse_json(text, "fuzz"), "fuzz");
    if (recipe.alpha && !(*recipe.alpha >= 0 && *recipe.alpha <= 1)) std::abort();
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    if (!message.starts_with("fuzz") || message.find('\n') != message.npos) std::abort();
  }
  return 0;
}
