// How requests of /sdapi/v1 are read.
#pragma once

#include <string>
#include <vector>

#include "octet/engine.h"
#include "server/routes/call.h"
#include "server/service/service.h"

namespace octet::server {

// What the request asks for that its picture does not say.
struct TextToImage {
  JobSpec spec = {};
  Json parameters = {};  // the request, as such servers repeat it
  std::vector<std::string> ignored = {};
};

// Throws Refused (400) for what makes no sense.
TextToImage read_text_to_image(const RequestLimits& limits, const EngineInfo& info,
                               const Call& call);

// A refusal that names the fields of the server's own requests, in the words of such front ends.
Failure in_their_words(Failure failure);

// "a fox <lora:style:0.8>" -> "a fox " and "style:0.8".
void take_loras(std::string& prompt, std::vector<std::string>& loras);

}  // namespace octet::server
