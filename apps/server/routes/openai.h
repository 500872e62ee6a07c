// What the two ways of answering POST /v1/images/generations have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/engine.h"
#include "server/routes/context.h"
#include "server/routes/json.h"

namespace octet::server {

struct ImageRequest {
  JobSpec spec = {};
  int token_side = 1;            // of the model
  std::string quality = "auto";  // as asked for
  bool url = false;              // links instead of pictures
  bool stream = false;
  int partial_images = 0;
  std::vector<std::string> ignored = {};  // fields that change nothing
};

// Throws Refused (400) for what makes no sense.
ImageRequest read_image_request(const RequestLimits& limits, const std::string& model_id,
                                const EngineInfo& info, const Call& call);

// The preset that OpenAI's word stands for; a preset's own name does, too. Empty: the model's own.
// Throws Refused (400) for other words.
std::string preset_of_quality(const std::string& quality, const std::vector<PresetInfo>& presets);

// Steps between two of `partial_images` previews, evenly over the steps; the last step is followed
// by the picture itself.
int preview_every(int steps, int partial_images);

// Text fit for a header: names that are none become "?", since a client may have written anything.
std::string ignored_header(const std::vector<std::string>& names);

Json usage_json(const JobSpec& spec, int pictures, int token_side);
// What happened to a job without pictures, for a client that waits for them.
Failure failure_of(const JobView& view);

void stream_images(Context& context, const CallPtr& call, const ImageRequest& request,
                   const std::shared_ptr<Job>& job);

// Cancels the job when the client leaves: nobody will ask for it again. One with an
// Idempotency-Key goes on, since its client means to ask again.
void cancel_with_client(Context& context, const CallPtr& call,
                        const std::shared_ptr<Follower>& follower);

}  // namespace octet::server
