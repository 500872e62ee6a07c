// The models of a folder, checked as a whole and then loaded into a backend's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/vae.h"
#include "quant/fingerprint.h"
#include "quant/lora_request.h"

namespace octet::ideogram4 {

struct Loading {
  ThreadPool& pool;                                             // converts what the files hold
  quant::Fingerprint* fingerprint = nullptr;                    // of what was loaded is added
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes of files; may throw
  std::vector<quant::LoraRequest> loras = {};                   // merged into transformers
};

// One transformer: config.json and weights in `folder`. `int8`: large linears, see kKeptInFloat.
Dit load_dit(nn::Context& ctx, const std::string& folder, bool conditional, bool int8,
             const Loading& loading);

VaeDecoder load_vae(nn::Context& ctx, const std::string& folder, const Loading& loading);

// Whether the checkpoint of a folder has all that its config.json promises; reads no weights.
DitConfig check_dit(const std::string& folder, bool conditional);
VaeConfig check_vae(const std::string& folder);

}  // namespace octet::ideogram4
