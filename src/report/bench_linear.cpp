// One linear on three paths.
#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const LinearPath& path) {
  return {{"name", path.name}, {"us", path.us}, {"relative_error", path.relative_error}};
}

}  // namespace

std::string to_json(const LinearComparison& comparison) try {
  Json fields = {{"device", comparison.device}, {"kernel", comparison.kernel},
                 {"m", comparison.shape.m},     {"n", comparison.shape.n},
                 {"k", comparison.shape.k},     {"paths", list_of(comparison.paths, json_of)}};
  add_steadiness(fields, comparison.steadiness);
  return document("octet.bench.linear/1", fields);
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const LinearComparison& comparison) try {
  double longest = 0;
  double native = 0;
  for (const auto& path : comparison.paths) {
    longest = std::max(longest, path.us);
    native = path.us;  // the last one
  }
  Table table({"path", "", "how", "ms", "native is", "error"}, 3);
  const auto figure = [&](const std::string& text) { return marked(text, comparison.steadiness); };
  for (const auto& path : comparison.paths) {
    table.add({path.name, bar(path.us / longest), path.how,
               figure(fmt::format("{:.2f}", path.us * 1e-3)),
               &path == &comparison.paths.back()
                   ? "-"
                   : figure(fmt::format("{:.2f}x faster", path.us / native)),
               fmt::format("{:.2f} %", path.relative_error * 100)});
  }
  return fmt::format(
      "One linear of a diffusion transformer, {} tokens, {} -> {} channels, on\n{}\n\n{}"
      "\nThe native path ran the kernel {}. Error: against the exact product.\n{}",
      comparison.shape.m, comparison.shape.k, comparison.shape.n, comparison.device, table.text(),
      comparison.kernel, comparison.steadiness.reliable ? "" : kUnreliableLine);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
