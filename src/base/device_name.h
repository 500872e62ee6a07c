// Names of devices as drivers and profilers print them, against names as people say them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// Letters and digits in lower case: "NVIDIA A100-SXM4-80GB" has nvidia, a100, sxm4 and 80gb.
std::vector<std::string> words_of_device(std::string_view text);

// Whether a device of these words is what is called `name`. Words around the name may only be of
// those that say nothing about a card's constants: any other, as "ti", "pcie" or "laptop", names a
// different card.
bool is_called(std::span<const std::string> device, std::string_view name);

}  // namespace octet
