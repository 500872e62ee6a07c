// Renders the pictures of one request: text, networks, steps, pixels.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/side_by_side.h"
#include "nn/profile.h"

namespace octet::engine {

class Rendering {
 public:
  Rendering(Session& session, const Job& job, const SessionCallbacks& callbacks);

  RenderReport run();

 private:
  void prepare(const BranchTexts& texts);
  void warn_of_rows();
  void make_preview_map();
  PromptCache::Text encode(const PromptCache::Tokens& tokens);
  BranchTexts encode_texts();
  // Leaves the latents of all images in latents_, except those that can be decoded at once.
  void denoise();
  bool has_room_to_decode() const;
  void on_step(int image, const SamplerStep& step);
  void encode_upcoming();
  // Lets the backends spend a little of the time that steps take on making them faster.
  void refine(const SamplerStep& step);
  // Calls the callbacks that want a step's velocity and latent.
  void show_step(int image, const SamplerStep& step);
  bool shows_preview(const SamplerStep& step) const;
  void show_preview(int image, int done, std::span<const float> velocity,
                    std::span<const float> latent);
  void decode_waiting();
  void decode(int image, const std::function<void(double)>& progress = {});
  void end_use();
  void collect();
  void warn_of_memory();
  void check_what_ran() const;
  double eta_s(int image, const SamplerStep& step) const;
  void tell(const RenderProgress& progress) const { session_.tell(callbacks_.progress, progress); }
  Cancelled stopped() const;

  Session& session_;
  const Job& job_;
  const SessionCallbacks& callbacks_;
  nn::Profile profile_;
  nn::Context ctx_;
  SideBySide branches_;
  TextRecord texts_ran_;
  std::vector<std::vector<float>> latents_;  // of denoised images; empty once decoded
  int decoded_ = 0;
  bool stop_after_decoding_ = false;
  bool knows_upcoming_ = false;
  bool decoding_failed_ = false;  // and is not tried again
  RenderReport report_;
  Stopwatch watch_;
};

}  // namespace octet::engine
