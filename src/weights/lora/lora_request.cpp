#include "weights/lora/lora_request.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

constexpr std::string_view kForm = "expected FILE[:STRENGTH[:cond|uncond|both]]";

std::optional<LoraNetworks> networks_named(std::string_view text) {
  for (const auto networks :
       {LoraNetworks::conditional, LoraNetworks::unconditional, LoraNetworks::both}) {
    if (text == name_of(networks)) return networks;
  }
  return std::nullopt;
}

// Whether all of the text is a number, be it one that no strength may be.
std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

// The text behind the last colon, unless that colon belongs to the path.
std::optional<std::string_view> last_field(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const std::string_view field = text.substr(colon + 1);
  if (field.find_first_of("/\\") != field.npos) return std::nullopt;
  return field;
}

}  // namespace

std::string_view name_of(LoraNetworks networks) {
  switch (networks) {
    case LoraNetworks::conditional: return "cond";
    case LoraNetworks::unconditional: return "uncond";
    case LoraNetworks::both: return "both";
    default: return "as named";
  }
}

LoraRequest parse_lora_request(std::string_view text) {
  LoraRequest request;
  std::string_view rest = text;
  if (const auto field = last_field(rest)) {
    if (const auto networks = networks_named(*field)) {
      request.networks = *networks;
      rest.remove_suffix(field->size() + 1);
    }
  }
  if (const auto field = last_field(rest)) {
    if (const auto strength = number_in(*field)) {
      check_value(std::abs(*strength) <= kMaxLoraStrength,
                  "LoRA {}: strength {} is not a number from -{} to {}", in_quotes(text),
                  in_quotes(*field), kMaxLoraStrength, kMaxLoraStrength);
      request.strength = static_cast<float>(*strength);
      rest.remove_suffix(field->size() + 1);
    } else {
      // Behind a whole file name it can only have been meant as a strength.
      const size_t name_end = rest.rfind(".safetensors:");
      check_value(name_end == rest.npos || rest.find_first_of("/\\", name_end) != rest.npos,
                  "LoRA {}: {} is neither a strength nor networks; {}", in_quotes(text),
                  in_quotes(*field), kForm);
    }
  }
  check_value(!rest.empty(), "LoRA {}: the file name is empty; {}", in_quotes(text), kForm);
  request.path = rest;
  return request;
}

}  // namespace octet::weights
