// Models on this machine, and the user's configuration.
#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const LocalModel& model) {
  json = joined({OCTET_FIELDS(model, name, kind, folder, bytes), OCTET_KNOWN_FIELDS(model, runs),
                 OCTET_KNOWN_FIELDS(model, problem), OCTET_FIELDS(model, needs_base)});
}

std::string to_json(const ModelList& list) try {
  Json models = Json::array();
  for (const LocalModel& model : list.models) models.push_back(model);
  if (list.small) models.push_back(*list.small);
  return document("octet.list/1", {{"cache_dir", known(list.cache_dir)}, {"models", models}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const ModelList& list, Detail detail) try {
  std::string names, problems, empty;
  Table table({"model", "runs", "size"}, 2);
  const auto add = [&](const LocalModel& model, const std::string& name) {
    if (model.kind == "folder" && model.runs.empty()) {
      empty += fmt::format("{}: {}\n", printable(model.name), printable(model.problem));
      return;  // what was named has no model: not a row, and told in any case
    }
    names += printable(model.name) + "\n";
    const std::string runs = model.runs + (model.needs_base ? ", needs --base" : "");
    table.add({name, model.runs.empty() ? "-" : runs, human_bytes(model.bytes)});
    if (!model.problem.empty()) {
      problems += fmt::format("{}: {}\n", printable(model.name), printable(model.problem));
    }
  };
  for (const LocalModel& model : list.models) add(model, printable(model.name));
  if (list.small) add(*list.small, "the small model of octet demo");
  if (detail == Detail::brief) return names;
  std::string text = table.text() + empty;
  if (std::ranges::all_of(list.models, [](const LocalModel& each) { return each.runs.empty(); })) {
    text += "Nothing was pulled; octet pull ideogram-ai/ideogram-4-fp8 fetches a model.\n";
  }
  text += fmt::format("Pulled models are in {}\n", printable(list.cache_dir));
  if (detail == Detail::full) text += problems;
  return text;
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const RemovedModel& removed) try {
  return document("octet.rm/1", OCTET_FIELDS(removed, repo, folder, bytes));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const RemovedModel& removed, Detail detail) try {
  if (detail == Detail::brief) return "";
  return fmt::format("removed {}: {} in {}\n", printable(removed.repo), human_bytes(removed.bytes),
                     printable(removed.folder));
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const Config& config) try {
  const auto text = [](const std::optional<std::string>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return document("octet.config/1", {{"file", known(config.file)},
                                     {"is_there", config.is_there},
                                     {"model", text(config.model)},
                                     {"base", text(config.base)},
                                     {"device", text(config.device)}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const Config& config) try {
  if (config.file.empty()) {
    return "No configuration file: OCTET_CONFIG is empty, or there is no HOME.\n";
  }
  std::string text = printable(config.file) + (config.is_there ? "" : " (not there)") + "\n";
  const auto add = [&](const char* key, const std::optional<std::string>& value,
                       const char* otherwise) {
    const std::string shown = value ? '"' + printable(*value) + '"' : otherwise;
    text += fmt::format("{} = {}\n", key, shown);
  };
  add("model", config.model, "# not set: --model is needed");
  add("base", config.base, "# not set: none");
  add("device", config.device, "# not set: auto");
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
