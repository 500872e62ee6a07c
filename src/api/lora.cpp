// LoRAs as people write them.
#include "weights/lora/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/invalid_request.h"
#include "formats/boundary.h"
#include "formats/text.h"
#include "models/family.h"
#include "octet/model_options.h"

namespace octet {
namespace {

// With the shortest names of all networks: "expected FILE[:STRENGTH[:cond|uncond|both]]".
std::string lora_form() {
  std::string names;
  for (const models::Family* family : models::families()) {
    for (const auto& [name, part, aliases] : family->networks) {
      names += std::string(aliases.empty() ? name : aliases.front()) + "|";
    }
  }
  return "expected FILE[:STRENGTH[:" + names + "both]]";
}

bool names_network(std::string_view word) {
  if (word == "both" || word == "all") return true;
  for (const models::Family* family : models::families()) {
    for (const auto& [name, part, aliases] : family->networks) {
      if (word == name || std::find(aliases.begin(), aliases.end(), word) != aliases.end()) {
        return true;
      }
    }
  }
  return false;
}

// Whether the whole text is a number, even one that is not a valid strength.
std::optional<double> strength_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

// The text after the last colon, unless that colon belongs to the path.
std::optional<std::string_view> last_field(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const std::string_view field = text.substr(colon + 1);
  if (field.find_first_of("/\\") != field.npos) return std::nullopt;
  return field;
}

}  // namespace

Lora parse_lora(const std::string& text) try {
  Lora lora;
  std::string_view rest = text;
  if (const auto field = last_field(rest); field && names_network(*field)) {
    lora.networks = {*field == "both" ? "all" : std::string(*field)};
    rest.remove_suffix(field->size() + 1);
  }
  if (const auto field = last_field(rest)) {
    if (const auto strength = strength_in(*field)) {
      constexpr float kMost = weights::kMaxLoraStrength;
      check_value(std::abs(*strength) <= kMost, "loras",
                  "LoRA {}: strength {} is not a number from -{} to {}", in_quotes(text),
                  in_quotes(*field), kMost, kMost);
      lora.strength = static_cast<float>(*strength);
      rest.remove_suffix(field->size() + 1);
    } else {
      // After a complete file name it can only have been meant as a strength.
      const size_t name_end = rest.rfind(".safetensors:");
      check_value(name_end == rest.npos || rest.find_first_of("/\\", name_end) != rest.npos,
                  "loras", "LoRA {}: {} is neither a strength nor networks; {}", in_quotes(text),
                  in_quotes(*field), lora_form());
    }
  }
  check_value(!rest.empty(), "loras", "LoRA {}: the file name is empty; {}", in_quotes(text),
              lora_form());
  lora.file = rest;
  return lora;
} catch (...) {
  rethrow_as_error();
}

std::string to_string(const Lora& lora) try {
  std::string text = lora.file;
  if (lora.strength != 1 || !lora.networks.empty()) text += fmt::format(":{}", lora.strength);
  if (!lora.networks.empty()) text += fmt::format(":{}", fmt::join(lora.networks, "+"));
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
