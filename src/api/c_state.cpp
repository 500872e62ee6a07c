// What octet/octet.h tells about engines and jobs, without waiting for a running call.
#include <fmt/ranges.h>

#include <memory>

#include "api/c_engine.h"
#include "api/engine_table.h"

namespace octet::c_api {
namespace {

std::string engine_text(const EngineInfo& info, int32_t what) {
  switch (what) {
    case OCTET_TEXT_FAMILY: return info.family;
    case OCTET_TEXT_DEVICE: return info.device;
    case OCTET_TEXT_PLAN: return plan_text(info);
    case OCTET_TEXT_NETWORKS: return fmt::format("{}", fmt::join(info.networks, "\n"));
    case OCTET_TEXT_PRESETS: {
      std::vector<std::string> names;
      for (const PresetInfo& preset : info.presets) names.push_back(preset.name);
      return fmt::format("{}", fmt::join(names, "\n"));
    }
    case OCTET_TEXT_BRANCHES: return fmt::format("{}", fmt::join(info.branches, "\n"));
    default: break;
  }
  throw InvalidRequest("what", sentence("`what` is {}, which is not an OCTET_TEXT_...", what));
}

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

octet_status octet_stop_create(octet_stop** stop) {
  if (stop != nullptr) *stop = nullptr;
  return c_api::guarded([&] {
    c_api::check_given(stop, "stop");
    *stop = new octet_stop;
  });
}

void octet_stop_request(octet_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}

void octet_stop_free(octet_stop* stop) { delete stop; }

void octet_engine_free(octet_engine* engine) {
  // Of several calls, one finds an engine.
  if (engine != nullptr && octet::api::end_engine(engine->engine)) delete engine;
}

octet_status octet_job_create(const octet_engine* engine, const octet_request* request,
                              octet_job** job) {
  if (job != nullptr) *job = nullptr;
  return c_api::guarded_on(engine, [&](const octet::Engine& on) {
    c_api::check_given(job, "job");
    const octet_request given = c_api::read_struct(request, "request");
    *job = new octet_job{on.check(c_api::request_of(given))};
  });
}

void octet_job_free(octet_job* job) { delete job; }

octet_status octet_job_describe(const octet_job* job, octet_job_info* info) {
  return c_api::guarded([&] {
    c_api::check_given(job, "job");
    c_api::check_struct(info, "info");
    c_api::write_struct(octet_job_info{.tokens = job->job.latents().tokens,
                                       .channels = job->job.latents().channels,
                                       .width = job->job.size().width,
                                       .height = job->job.size().height,
                                       .steps = job->job.steps(),
                                       .text_tokens = job->job.text_tokens()},
                        info);
  });
}

octet_status octet_engine_estimate(const octet_engine* engine, const octet_job* job,
                                   octet_estimate* estimate) {
  return c_api::guarded_on(engine, [&](const octet::Engine& on) {
    c_api::check_given(job, "job");
    c_api::check_struct(estimate, "estimate");
    const octet::Estimate known = on.estimate(job->job);
    c_api::write_struct(octet_estimate{.seconds = known.seconds,
                                       .device_bytes = known.device_bytes,
                                       .host_bytes = known.host_bytes},
                        estimate);
  });
}

octet_status octet_engine_state(const octet_engine* engine, octet_state* state) {
  return c_api::guarded_on(engine, [&](const octet::Engine& on) {
    c_api::check_struct(state, "state");
    const octet::EngineState known = on.state();
    c_api::write_struct(octet_state{.used_bytes = known.used_bytes,
                                    .peak_bytes = known.peak_bytes,
                                    .free_bytes = known.free_bytes,
                                    .done = known.progress.done,
                                    .total = known.progress.total,
                                    .fraction = known.progress.fraction,
                                    .eta_s = known.progress.eta_s,
                                    .stage = static_cast<int32_t>(known.progress.stage),
                                    .loaded = known.loaded ? 1 : 0,
                                    .busy = known.busy ? 1 : 0,
                                    .joules = known.joules},
                        state);
  });
}

octet_status octet_engine_info(const octet_engine* engine, octet_info* info) {
  return c_api::guarded_on(engine, [&](const octet::Engine& on) {
    c_api::check_struct(info, "info");
    const octet::EngineInfo known = on.info();
    c_api::write_struct(octet_info{.work_bytes = known.work_bytes,
                                   .available_bytes = known.available_bytes,
                                   .used_bytes = known.used_bytes,
                                   .token_side = known.token_side,
                                   .width = known.size.width,
                                   .height = known.size.height,
                                   .takes_negative = known.takes_negative ? 1 : 0},
                        info);
  });
}

size_t octet_engine_text(const octet_engine* engine, int32_t what, char* text, size_t size) {
  return c_api::guarded_text(text, size, [&] {
    c_api::check_given(engine, "engine");
    return c_api::engine_text(engine->engine.info(), what);
  });
}

octet_status octet_engine_presets(const octet_engine* engine, octet_on_preset on_preset,
                                  void* user) {
  return c_api::guarded_on(engine, [&](const octet::Engine& on) {
    octet::check_value(on_preset != nullptr, "on_preset", "`on_preset` is NULL");
    for (const octet::PresetInfo& preset : on.info().presets) {
      octet_preset given = {};
      given.struct_size = sizeof(given);
      given.name = preset.name.c_str();
      given.official_name = preset.official_name.c_str();
      given.steps = preset.steps;
      on_preset(user, &given);
    }
  });
}
