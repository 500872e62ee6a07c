// Where weights are kept: of an engine, and of devices by their memory.
#include "octet/tools/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/engine.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/nested.h"
#include "report/text.h"

namespace octet {

using namespace report;

void to_json(Json& json, const PartPlace& place) {
  json = joined({OCTET_FIELDS(place, part), field("where", word_of(place.where)),
                 OCTET_KNOWN_FIELDS(place, device),
                 OCTET_FIELDS(place, bytes, device_bytes, host_bytes, file_bytes, layers,
                              layers_on_device, layers_on_host)});
}

static void to_json(Json& json, const BudgetPlan& plan) {
  json = joined(
      {OCTET_FIELDS(plan, memory_bytes, fits), OCTET_KNOWN_FIELDS(plan, least_bytes),
       OCTET_FIELDS(plan, layers, layers_here, weight_bytes, host_bytes, file_bytes, buffer_bytes,
                    rows_at_once, work_bytes, context_bytes, streamed_bytes, read_bytes),
       OCTET_KNOWN_FIELDS(plan, step_ms), field("parts", plan.plan)});
}

namespace {

double gigabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

const char* words_for(Residency where) {
  switch (where) {
    case Residency::device: return "on the device";
    case Residency::host: return "in host memory";
    default: return "streamed from its files";
  }
}

// "on the device", "21 of 34 layers on the device, 13 in host memory"
std::string where_text(const PartPlace& place) {
  if (place.layers_on_device == 0 || place.layers_on_device == place.layers) {
    return words_for(place.where);
  }
  std::string text =
      fmt::format("{} of {} layers on the device", place.layers_on_device, place.layers);
  const int read = place.layers - place.layers_on_device - place.layers_on_host;
  if (place.layers_on_host > 0) text += fmt::format(", {} in host memory", place.layers_on_host);
  if (read > 0) text += fmt::format(", {} streamed from its files", read);
  return text;
}

std::string places_text(const std::vector<PartPlace>& places) {
  size_t width = 0;
  for (const PartPlace& place : places) width = std::max(width, place.part.size());
  std::string text;
  for (const PartPlace& place : places) {
    text += fmt::format("{:<{}}  {:>8.3f} GB  {}{}{}\n", place.part, width, gigabytes(place.bytes),
                        where_text(place), place.device.empty() ? "" : ", ", place.device);
  }
  return text;
}

// Nothing where all weights stay.
std::string streamed_text(uint64_t streamed, uint64_t read) {
  if (streamed == 0) return "";
  return fmt::format("{:.1f} GB of weights come to the device in each step{}\n",
                     gigabytes(streamed),
                     read == 0 ? "" : fmt::format(", {:.1f} of them from files", gigabytes(read)));
}

std::string rows_text(const MemoryPlans& plans) {
  Table table({"memory", "layers here", "weights", "buffers", "work", "context", "on host",
               "streamed", "ms/step", "slower"},
              0);
  const auto gb = [](uint64_t bytes) {
    return bytes == 0 ? "-" : fmt::format("{:.1f} GB", gigabytes(bytes));
  };
  for (const BudgetPlan& plan : plans.plans) {
    if (!plan.fits) continue;
    const bool is_known = plan.step_ms > 0;
    table.add({fmt::format("{:.4g} GB", gigabytes(plan.memory_bytes)),
               fmt::format("{} of {}", plan.layers_here, plan.layers), gb(plan.weight_bytes),
               gb(plan.buffer_bytes), gb(plan.work_bytes), gb(plan.context_bytes),
               gb(plan.host_bytes), gb(plan.streamed_bytes),
               is_known ? fmt::format("{:.0f}", plan.step_ms) : "-",
               is_known ? fmt::format("{:.2f}x", plan.step_ms / plans.resident_ms) : "-"});
  }
  const bool any = std::ranges::any_of(plans.plans, &BudgetPlan::fits);
  return any ? table.text() : "";
}

std::string too_few_text(const MemoryPlans& plans) {
  std::string text;
  for (const BudgetPlan& plan : plans.plans) {
    if (plan.fits) continue;
    // Up, so that what is said is enough.
    text += fmt::format("{:.4g} GB are too few: at least {:.2f} GB\n", gigabytes(plan.memory_bytes),
                        gigabytes(plan.least_bytes) + 0.005);
  }
  return text;
}

}  // namespace

std::string to_json(const MemoryPlans& plans) try {
  return document(
      "octet.plan/1",
      joined({OCTET_KNOWN_FIELDS(plans, model, card),
              field("size", fmt::format("{}x{}", plans.size.width, plans.size.height)),
              OCTET_FIELDS(plans, text_tokens), field("predicted", true),
              OCTET_KNOWN_FIELDS(plans, host_gbs, resident_ms), OCTET_FIELDS(plans, plans)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const MemoryPlans& plans, Detail detail) try {
  std::string text = rows_text(plans) + too_few_text(plans);
  if (detail == Detail::brief) return text;
  if (plans.plans.size() == 1 && plans.plans.front().fits) {
    text += "\n" + places_text(plans.plans.front().plan);
  }
  const std::string model = plans.model.empty() ? "Ideogram 4 in INT8" : printable(plans.model);
  text += fmt::format("\n{}, a picture of {}x{} with {} text tokens.{}\n", model, plans.size.width,
                      plans.size.height, plans.text_tokens,
                      plans.plans.size() == 1 ? "" : " --max-memory shows one by parts.");
  if (plans.resident_ms > 0) {
    text += fmt::format("PREDICTED for {}, {:.1f} GB/s from its host, not measured.\n",
                        printable(plans.card), plans.host_gbs);
  } else if (plans.card.empty()) {
    text += "No times: no known GPU is here; --card names one, such as 3090.\n";
  } else {
    text += fmt::format("No times: a step of this model on {} is not predicted.\n",
                        printable(plans.card));
  }
  text +=
      "on host: pinned memory that has to be free; without it, layers are read from files in each "
      "step,\nwhich is much slower. streamed: comes to the card in each step, while others run.\n";
  return text;
} catch (...) {
  rethrow_as_error();
}

Json report::json_of(const PlannedPictures& planned) {
  return joined({OCTET_FIELDS(planned.info, plan, planned_bytes, buffer_bytes, work_bytes,
                              context_bytes, streamed_bytes, read_bytes),
                 field("predicted_step_ms", known(planned.step_ms))});
}

std::string to_text(const PlannedPictures& planned) try {
  std::string text = plan_text(planned.info);
  if (planned.step_ms > 0) {
    text += fmt::format("{:.0f} ms a step, predicted\n", planned.step_ms);
  }
  return text;
} catch (...) {
  rethrow_as_error();
}

std::string plan_text(const EngineInfo& info) try {
  std::string text = places_text(info.plan) + streamed_text(info.streamed_bytes, info.read_bytes);
  if (info.buffer_bytes > 0) {
    text += fmt::format("{:.3f} GB of buffers for them\n", gigabytes(info.buffer_bytes));
  }
  return text + fmt::format(
                    "{:.3f} GB of memory at hand, about {:.1f} GB of it for the work on a "
                    "picture of 1024 x 1024 pixels\n",
                    gigabytes(info.available_bytes), gigabytes(info.work_bytes));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
