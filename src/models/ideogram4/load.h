// The models of a folder, checked as a whole and then loaded into a backend's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/flux2_vae/vae.h"
#include "models/flux2_vae/vae_source.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/dit_source.h"
#include "weights/fingerprint.h"
#include "weights/lora/lora_request.h"

namespace octet::ideogram4 {

struct Loading {
  ThreadPool& pool;                                             // converts what the files hold
  weights::Fingerprint* fingerprint = nullptr;                  // of what was loaded is added
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes of files; may throw
  std::vector<weights::LoraRequest> loras = {};                 // merged into transformers
  // INT8 codes of weights that are not stored so are kept on disk for the next time; with LoRAs
  // always.
  bool keep_converted = false;
};

// One transformer. `int8`: linears that its file has in INT8; where it has none, the large ones,
// see kKeptInFloat.
Dit load_dit(nn::Context& ctx, const DitFiles& files, bool conditional, bool int8,
             const Loading& loading);
Dit load_dit(nn::Context& ctx, const DitSource& source, bool conditional, bool int8,
             const Loading& loading);

// `path` as open_vae() takes it.
flux2_vae::VaeDecoder load_vae(nn::Context& ctx, const std::string& path, const Loading& loading);

// Throws what load_dit() would about LoRAs.
void check_loras(const std::vector<weights::LoraRequest>& requests, const DitConfig& config);

// Whether a checkpoint has all that its configuration promises, and nothing else; reads no weights.
DitConfig check_dit(const DitFiles& files, bool conditional);
flux2_vae::VaeConfig check_vae(const std::string& path);

}  // namespace octet::ideogram4
