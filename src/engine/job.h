// A request as it is rendered: checked against the facts of a model, with its text, tokens and
// schedule. Made once, on any thread, even while the model's session is at work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/family.h"
#include "models/footprint.h"
#include "models/presets.h"
#include "octet/picture.h"

namespace octet::engine {

// What is known about an open model without its weights. It never changes.
struct ModelFacts {
  const models::Family& family;
  models::PictureDefaults defaults;
  ModelOptions options;  // names of the Hub resolved to paths
  models::SizeLimits sizes;
  int64_t latent_channels = 0;
  size_t networks = 0;                      // how many of the family's are open
  std::vector<std::vector<size_t>> shares;  // the branches of each device
  std::function<std::vector<int32_t>(const std::string& prompt)> tokenize;
};

// What a request says, in the terms of its family.
struct Asked {
  models::ScheduleRequest schedule;
  models::Schedule steps;
  std::string prompt;    // as passed to the tokenizer
  std::string negative;  // likewise; empty: none
  std::vector<Sentence> warnings;
};
// Needs no files: a wrong request is refused before any is opened. Throws InvalidRequest.
Asked asked_of(const models::Family& family, const models::PictureDefaults& defaults,
               const PictureRequest& request, Convention convention);
// The same with a prompt that is taken as it is, for tests and benchmarks.
Asked asked_as_is(const models::Family& family, models::ScheduleRequest schedule,
                  std::string prompt);

struct Job {
  std::shared_ptr<const ModelFacts> model;
  PictureRequest request;
  Asked asked;
  std::vector<int32_t> tokens;           // of the prompt
  std::vector<int32_t> negative_tokens;  // empty if no branch that runs sees them
  models::Grid grid;
  std::vector<size_t> branches;  // of Family::branches, those that run in any step
  std::vector<std::string> branch_names;
  std::vector<Sentence> warnings;  // all

  const models::Schedule& schedule() const { return asked.steps; }
  PictureSize size() const { return asked.schedule.size; }
  size_t elements() const { return static_cast<size_t>(grid.tokens() * model->latent_channels); }
  models::Extent extent() const {
    return {.grid = grid,
            .text_tokens = static_cast<int64_t>(tokens.size() + negative_tokens.size()),
            .steps = schedule().steps()};
  }
  // Throws Error for a model that it was not checked against.
  void check_is_for(const std::shared_ptr<const ModelFacts>& facts) const;
  LatentShape latents() const {
    return {grid.tokens(), model->latent_channels, schedule().steps()};
  }
};

// Bounded because latents wait for the decoder, 8 MB each at 2048 x 2048 pixels.
inline constexpr int kMostImages = 1000;

// Throws InvalidRequest.
std::shared_ptr<const Job> make_job(const std::shared_ptr<const ModelFacts>& model,
                                    const PictureRequest& request, Asked asked);
std::shared_ptr<const Job> make_job(const std::shared_ptr<const ModelFacts>& model,
                                    const PictureRequest& request);

}  // namespace octet::engine
