// How much longer other paths take than native INT8 for one linear, on a card that may not be here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet::predict {

// Time of the path over that of native INT8, each with its quantization, without pause. 0: the card
// cannot, or it is unknown.
struct LinearRatio {
  double bf16 = 0, fp8 = 0, nf4 = 0, fake = 0;
  bool measured = false;  // bf16 and fp8: of products that were measured; else all are predicted
  std::string card;       // "NVIDIA GeForce RTX 3090"
};

// `device`: the id of a card, or its name as profilers print it. Nothing for an unknown card or a
// shape that is none.
std::optional<LinearRatio> int8_ratio(std::string_view device, int64_t m, int64_t n, int64_t k);

}  // namespace octet::predict
