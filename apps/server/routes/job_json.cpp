#include "server/routes/job_json.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "octet/tools/report.h"
#include "server/routes/error_objects.h"

namespace octet::server {
namespace {

Json known_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json time_or_null(double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); }

Json lora_list(const JobSpec& spec) {
  Json list = Json::array();
  for (const std::string& text : spec.loras) {
    const size_t colon = text.rfind(':');
    list.push_back({{"name", text.substr(0, colon)},
                    {"strength", std::strtod(text.c_str() + colon + 1, nullptr)}});
  }
  return list;
}

Json request_json(const JobSpec& spec) {
  const PictureRequest& picture = spec.picture;
  return {{"prompt", known_text(spec.prompt)},
          {"json_prompt", known_text(picture.caption)},
          {"negative_prompt", picture.negative},
          {"size", size_text(spec.size)},
          {"seed", picture.seed},
          {"steps", spec.steps},
          {"guidance", picture.guidance.empty() ? Json(nullptr) : Json(picture.guidance)},
          {"preset", spec.preset},
          {"n", picture.images},
          {"lora", lora_list(spec)},
          {"output_format", word_of(spec.format)},
          {"output_compression", spec.quality},
          {"preview_every", spec.preview_every},
          {"priority", word_of(spec.priority)}};
}

std::vector<std::string> warnings_of(const JobSpec& spec, const RenderReport* report) {
  std::vector<std::string> warnings = spec.warnings;
  if (report == nullptr) return warnings;
  for (const Sentence& each : report->warnings) {
    const bool is_known = std::ranges::find(warnings, each.text()) != warnings.end();
    if (!is_known) warnings.push_back(each.text());
  }
  return warnings;
}

Json pictures_json(const Job& job, const JobView& view) {
  Json list = Json::array();
  for (const FinishedPicture& each : view.pictures) list.push_back(picture_json(job, each));
  return list;
}

}  // namespace

std::string size_text(PictureSize size) { return fmt::format("{}x{}", size.width, size.height); }

const char* media_type(PictureFormat format) {
  switch (format) {
    case PictureFormat::jpeg: return "image/jpeg";
    case PictureFormat::webp: return "image/webp";
    default: return "image/png";
  }
}

std::string picture_path(const Job& job, int index) {
  return fmt::format("/v1/jobs/{}/pictures/{}", job.id(), index);
}

Json seconds_or_null(double seconds) { return seconds < 0 ? Json(nullptr) : Json(seconds); }

Json picture_json(const Job& job, const FinishedPicture& picture) {
  return {{"index", picture.index},        {"url", picture_path(job, picture.index)},
          {"seed", picture.seed},          {"width", picture.width},
          {"height", picture.height},      {"format", word_of(picture.format)},
          {"bytes", picture.file->size()}, {"look", word_of(picture.look)}};
}

Json progress_json(const RenderProgress& progress) {
  return {{"stage", word_of(progress.stage)},
          {"done", progress.done},
          {"total", progress.total},
          {"fraction", progress.fraction}};
}

Json report_json(const JobSpec& spec, const RenderReport& report) {
  RenderedPictures rendered{.request = {.model = {}, .picture = spec.picture},
                            .loras = spec.loras,
                            .captions = {RenderedCaption{.report = report}}};
  rendered.request.picture.loras.reset();
  Json json = Json::parse(to_json(rendered));
  for (const char* of_files : {"schema", "model", "noise", "pictures", "seeds", "captions"}) {
    json.erase(of_files);
  }
  return json;
}

Json job_json(const Service& service, const Job& job) {
  const JobView view = job.view();
  const JobSpec& spec = job.spec();
  const bool is_waiting = view.state == JobState::queued;
  const bool is_running = view.state == JobState::running;
  const int position = is_waiting ? service.position(job) : 0;
  return {{"id", view.id},
          {"object", "job"},
          {"state", word_of(view.state)},
          {"position", position > 0 ? Json(position) : Json(nullptr)},
          {"eta_s", has_ended(view.state) ? Json(nullptr) : seconds_or_null(service.eta_s(job))},
          {"created_at", view.created_at},
          {"started_at", time_or_null(view.started_at)},
          {"ended_at", time_or_null(view.ended_at)},
          {"cancelling", is_running && job.is_cancelling()},
          {"worker", known_text(view.worker)},
          {"progress", is_running ? progress_json(view.progress) : Json(nullptr)},
          {"request", request_json(spec)},
          {"warnings", warnings_of(spec, view.report.get())},
          {"pictures", pictures_json(job, view)},
          {"report", view.report ? report_json(spec, *view.report) : Json(nullptr)},
          {"error", view.failure ? error_json(*view.failure) : Json(nullptr)}};
}

}  // namespace octet::server
