// Parts of /sdapi/v1 that are tested by themselves.
#pragma once

#include <string>
#include <vector>

namespace octet::server {

// "a fox <lora:style:0.8>" -> "a fox " and "style:0.8".
void take_loras(std::string& prompt, std::vector<std::string>& loras);

}  // namespace octet::server
