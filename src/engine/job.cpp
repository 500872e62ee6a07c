#include "engine/job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/invalid_request.h"
#include "engine/lora_files.h"

namespace octet::engine {
namespace {

using models::BranchText;

// An error in a text is an error in its field.
template <class Read>
auto reading(const char* field, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw InvalidRequest(field, error.sentence());
  }
}

bool sees(const models::Family& family, const std::vector<size_t>& branches, BranchText text) {
  return std::ranges::any_of(branches,
                             [&](size_t branch) { return family.branches[branch].sees == text; });
}

// For a request that has a negative prompt.
void read_negative(const models::Family& family, const PictureRequest& request, Asked& asked) {
  const auto& branches = family.branches;
  const auto blind = std::ranges::find(branches, BranchText::none, &models::Branch::sees);
  check_value(models::sees_text(branches, BranchText::negative), "negative",
              "`negative`: {} takes no negative prompt, since {}; leave it out", family.title,
              blind == branches.end() ? std::string("none of its branches sees one")
                                      : fmt::format("its {} branch sees no text", blind->name));
  models::PromptText read = reading("negative", [&] {
    return family.read_prompt(request.negative, "negative", request.any_caption);
  });
  asked.negative = std::move(read.text);
  std::ranges::move(read.warnings, std::back_inserter(asked.warnings));
  if (!sees(family, models::running_branches(branches, asked.steps), BranchText::negative)) {
    asked.warnings.push_back(
        sentence("negative: no step is guided, so the negative prompt changes nothing; set "
                 "`guidance` to more than 1"));
  }
}

// One warning for all in which a request leaves what the model was trained for.
void warn_of_training(const models::Family& family, const models::TrainedFor& model,
                      const PictureRequest& request, Asked& asked) {
  std::vector<std::string> reasons;
  if (family.leaves_training != nullptr) reasons = family.leaves_training(asked.prompt, model);
  const PictureSize size = asked.schedule.size;
  if (!model.sizes.empty() && std::ranges::find(model.sizes, size) == model.sizes.end()) {
    reasons.push_back(fmt::format("the size {}", models::name_of(size)));
  }
  if (reasons.empty()) return;
  constexpr size_t kMostNamed = 4;
  std::string list;
  for (size_t i = 0; i < std::min(reasons.size(), kMostNamed); ++i) {
    list += (i == 0 ? "" : "; ") + reasons[i];
  }
  if (reasons.size() > kMostNamed)
    list += fmt::format("; and {} more", reasons.size() - kMostNamed);
  asked.warnings.push_back(sentence(
      "{}: the model was trained on {}, and may paint something else here: {}",
      request.caption_name.empty() ? "caption" : request.caption_name, model.summary, list));
}

// Networks that only guidance needs may not be open.
void check_guidance(const ModelFacts& model, const Job& job) {
  const models::Family& family = model.family;
  check_value(models::takes_guidance(family.branches) ||
                  std::ranges::all_of(job.schedule().guidance, [](float by) { return by == 1; }),
              "guidance", "guidance: {} does not use it; leave `guidance` out, or set it to 1",
              family.title);
  for (const size_t branch : job.branches) {
    const size_t network = family.branches[branch].network;
    check_value(network < model.networks, "guidance",
                "guidance: the model is loaded without the {} network, which this guidance needs; "
                "set `guidance` to 1",
                family.networks[network].name);
  }
}

// The pictures are right all the same.
void warn_of_idle_device(Job& job) {
  for (const std::vector<size_t>& share : job.model->shares) {
    const bool runs = std::ranges::any_of(
        share, [&](size_t branch) { return std::ranges::count(job.branches, branch) > 0; });
    if (runs) continue;
    job.warnings.push_back(
        sentence("device: the {} of {} has nothing to do, since no step runs the {} branch",
                 &share == &job.model->shares.front() ? "first" : "second",
                 job.model->options.device, job.model->family.branches[share.front()].name));
  }
}

void check_noise(const Job& job) {
  const std::vector<float>& noise = job.request.noise;
  if (noise.empty() && job.request.noise_name.empty()) return;
  check_value(job.request.images == 1, "images",
              "noise: given noise makes one picture, got {} images; leave the number out",
              job.request.images);
  check_value(noise.size() == job.elements(), "noise",
              "noise: {} numbers, expected {} for a picture of this size", noise.size(),
              job.elements());
  check_value(std::ranges::all_of(noise, [](float v) { return std::isfinite(v); }), "noise",
              "noise: contains a NaN or an infinity, expected numbers around 0");
}

}  // namespace

void Job::check_is_for(const std::shared_ptr<const ModelFacts>& facts) const {
  check(model == facts,
        "engine: the job was checked against another model, or before this one was loaded; check "
        "the request again");
}

Asked asked_of(const models::Family& family, const models::PictureDefaults& defaults,
               const PictureRequest& request, Convention convention) {
  Asked asked;
  asked.schedule = {.preset = models::preset_named(defaults.presets, request.preset),
                    .size = models::size_or_default(request.size, defaults),
                    .steps = request.steps,
                    .guidance = request.guidance,
                    .convention = convention};
  asked.steps = family.make_schedule(asked.schedule);
  models::PromptText read = reading("caption", [&] {
    return family.read_prompt(request.caption, request.caption_name, request.any_caption);
  });
  asked.prompt = std::move(read.text);
  asked.warnings = std::move(read.warnings);
  if (defaults.trained_for) warn_of_training(family, *defaults.trained_for, request, asked);
  if (!sees(family, models::running_branches(family.branches, asked.steps), BranchText::prompt)) {
    asked.warnings.push_back(
        sentence("guidance: it is 0 in all steps, so the caption changes nothing; set `guidance` "
                 "to 1 or more"));
  }
  if (!request.negative.empty()) read_negative(family, request, asked);
  return asked;
}

Asked asked_as_is(const models::Family& family, models::ScheduleRequest schedule,
                  std::string prompt) {
  Asked asked;
  asked.steps = family.make_schedule(schedule);
  asked.schedule = std::move(schedule);
  asked.prompt = std::move(prompt);
  return asked;
}

std::shared_ptr<const Job> make_job(const std::shared_ptr<const ModelFacts>& model,
                                    const PictureRequest& request, Asked asked) {
  const auto job = std::make_shared<Job>();
  job->model = model;
  job->request = request;
  job->asked = std::move(asked);
  check_value(request.images >= 1 && request.images <= kMostImages, "images",
              "images: {}, expected 1 to {}", request.images, kMostImages);
  models::check_image_size(job->size(), model->sizes);
  const int side = model->sizes.token_side;
  job->grid = {job->size().height / side, job->size().width / side};
  const models::Family& family = model->family;
  job->branches = models::running_branches(family.branches, job->schedule());
  check_guidance(*model, *job);
  if (request.loras) check_loras(*request.loras, family);
  for (const size_t branch : job->branches) {
    job->branch_names.emplace_back(family.branches[branch].name);
  }
  job->tokens = reading("caption", [&] { return model->tokenize(job->asked.prompt); });
  if (sees(family, job->branches, BranchText::negative)) {
    job->negative_tokens =
        reading("negative", [&] { return model->tokenize(job->asked.negative); });
  }
  check_noise(*job);
  job->warnings = job->asked.warnings;
  const std::string about_size = models::size_warning(job->size(), model->sizes);
  if (!about_size.empty()) job->warnings.push_back(about_size);
  warn_of_idle_device(*job);
  return job;
}

std::shared_ptr<const Job> make_job(const std::shared_ptr<const ModelFacts>& model,
                                    const PictureRequest& request) {
  return make_job(model, request,
                  asked_of(model->family, model->defaults, request, model->options.convention));
}

}  // namespace octet::engine
