#include "quant/recipe.h"

#include "formats/boundary.h"
#include "octet/quantize.h"

namespace octet {

Recipe parse_recipe(const std::string& text) try { return quant::recipe_from(text); } catch (...) {
  rethrow_as_error();
}

std::string to_string(const Recipe& recipe) try { return quant::text_of(recipe); } catch (...) {
  rethrow_as_error();
}

Protection parse_protection(const std::string& text) try {
  return quant::protection_from(text);
} catch (...) {
  rethrow_as_error();
}

std::string to_string(const Protection& protection) try {
  return quant::text_of(protection);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
