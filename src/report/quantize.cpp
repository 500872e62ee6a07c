// What became of a quantization, and its errors as one HTML page without scripts: bars, the worst
// first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/json.h"
#include "report/page.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Octet: quantization errors</title>
<style>
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:100rem;padding:0 1rem}
h1{font-size:1.4rem}table{border-collapse:collapse;width:100%}
td,th{padding:.15rem .5rem;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td:first-child,th:first-child{text-align:left}th{border-bottom:1px solid #8888}
td.bars{width:40%;min-width:16rem}td:nth-child(n+7){white-space:normal;font-size:.85em}
.bar{height:.42rem;border-radius:2px;margin:1px 0;min-width:1px}
.rowwise{background:#c9692c}.smoothquant{background:#3b7dc4}.convrot{background:#2f9e6b}
.bf16{background:#8a8a8a}.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;
vertical-align:-.1rem;margin:0 .3rem 0 1rem}tr.protected td:first-child{font-weight:600}
p.note{color:#777}
</style></head><body>
)";

// The worst by the chosen recipe first.
std::vector<const LinearError*> worst_first(const QuantizeReport& report) {
  std::vector<const LinearError*> sorted;
  for (const LinearError& error : report.errors) sorted.push_back(&error);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
    return a->of(report.recipe.kind) > b->of(report.recipe.kind);
  });
  return sorted;
}

Json places_json(const std::vector<ErrorPlace>& list, const char* key) {
  Json json = Json::array();
  for (const ErrorPlace& place : list) json.push_back({{"index", place.index}, {key, place.value}});
  return json;
}

}  // namespace

static void to_json(Json& json, const QuantizedNetwork& network) {
  json = {{"branch", network.network},
          {"int8", network.int8},
          {"protected", network.protected_},
          {"kept", network.kept},
          {"protected_modules", network.protected_modules}};
}

static void to_json(Json& json, const LinearError& error) {
  json = joined({field("branch", error.network),
                 OCTET_FIELDS(error, module, n, k, rowwise, smoothquant, convrot),
                 {{"bf16", error.unquantized},
                  {"protected", error.is_protected},
                  {"worst_rows", places_json(error.worst_rows, "share")},
                  {"worst_columns", places_json(error.worst_columns, "reach")}}});
}

namespace {

std::string error_percent(double value) { return fmt::format("{:.2f} %", 100 * value); }

std::string first_place(const std::vector<ErrorPlace>& list, double factor, const char* unit) {
  if (list.empty()) return "-";
  return fmt::format("{} ({:.0f}{})", list.front().index, factor * list.front().value, unit);
}

// The worst first, within 100 columns; everything is in the JSON and on the page.
std::string worst_errors(const QuantizeReport& report) {
  constexpr size_t kShown = 24;
  const auto sorted = worst_first(report);
  Table table({"linear", "rowwise", "smoothq.", "convrot", "bf16", "row", "column"}, 1);
  bool stars = false;
  for (size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    const LinearError& error = *sorted[i];
    stars = stars || error.is_protected;
    table.add({linear_title(report, error) + (error.is_protected ? " *" : ""),
               error_percent(error.rowwise), error_percent(error.smoothquant),
               error_percent(error.convrot), error_percent(error.unquantized),
               first_place(error.worst_rows, 100, " %"), first_place(error.worst_columns, 1, "x")});
  }
  std::string text = table.text();
  if (sorted.size() > kShown) text += fmt::format("... and {} more\n", sorted.size() - kShown);
  return text + fmt::format(
                    "NRMSE of the outputs (activations: {}), the worst by {} first{}.\n"
                    "row: the output channel with the largest share of the squared error; column: "
                    "the input\nchannel with the largest range, relative to the median.\n",
                    printable(report.activations), to_string(report.recipe),
                    stars ? "; * is protected" : "");
}

std::string error_bar(const char* kind, double value, double most) {
  return fmt::format(R"(<div class="bar {}" style="width:{:.2f}%" title="{} {:.3f} %"></div>)",
                     kind, most > 0 ? 100 * value / most : 0.0, kind, 100 * value);
}

std::string places_text(const std::vector<ErrorPlace>& list, double factor, const char* unit) {
  std::string text;
  for (const ErrorPlace& place : list) {
    text += fmt::format("{}{} ({:.0f}{})", text.empty() ? "" : ", ", place.index,
                        factor * place.value, unit);
  }
  return text;
}

// Geometric, so that no layer counts for more than another.
double mean_error(const QuantizeReport& report, double LinearError::*value) {
  double sum = 0;
  for (const LinearError& error : report.errors) {
    sum += std::log(std::max(error.*value, 1e-12));
  }
  return report.errors.empty() ? 0 : std::exp(sum / static_cast<double>(report.errors.size()));
}

}  // namespace

std::string linear_title(const QuantizeReport& report, const LinearError& error) try {
  constexpr size_t kLetters = 6;
  const bool is_first = report.networks.empty() || error.network == report.networks.front().network;
  return (is_first ? "" : error.network.substr(0, kLetters) + ". ") + error.module;
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const QuantizeReport& report) try {
  Json fields = joined({OCTET_FIELDS(report, device), field("recipe", to_string(report.recipe)),
                        OCTET_FIELDS(report, activations, files, source_bytes, output_bytes,
                                     resumed_tensors, verified, seconds)});
  if (!report.networks.empty()) fields["branches"] = report.networks;
  fields["errors"] = report.errors;
  return document("octet.quantize/1", fields);
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const QuantizeReport& report, const QuantizeRequest& request,
                    Detail detail) try {
  const bool quiet = detail == Detail::brief;
  std::string text;
  const bool asked_for_errors = request.measure || request.out.empty();
  if (!report.errors.empty() && (asked_for_errors || !quiet)) text += worst_errors(report) + "\n";
  for (const QuantizedNetwork& network : report.networks) {
    if (quiet) break;
    text += fmt::format("{}: {} linears {}in INT8 ({}), {} protected, {} small ones kept\n",
                        network.network, network.int8, report.files.empty() ? "would be " : "",
                        to_string(report.recipe), network.protected_, network.kept);
  }
  for (const std::string& file : report.files) text += printable(file) + "\n";
  if (!report.files.empty() && !quiet) {
    text += fmt::format("{} from {} in {:.1f} s{}{}\n", human_bytes(report.output_bytes),
                        human_bytes(report.source_bytes), report.seconds,
                        report.resumed_tensors > 0
                            ? fmt::format(", {} kept from an earlier run",
                                          counted(report.resumed_tensors, "tensor"))
                            : "",
                        report.verified ? ", verified" : "");
  }
  if (!report.files.empty() && !quiet) {
    // Text encoder, tokenizer and VAE are not copied.
    text += fmt::format(
        "To make pictures with it{}: octet generate --model {} --base {} --prompt 'a red heart'\n",
        report.base.empty() ? ", with a MODEL that has the rest" : "",
        shell_word(printable(request.out)),
        report.base.empty() ? "MODEL" : shell_word(printable(report.base)));
  }
  return text;
} catch (...) {
  rethrow_as_error();
}

std::string error_page(const QuantizeReport& report) try {
  double most = 0;
  for (const LinearError& error : report.errors) {
    most = std::max({most, error.rowwise, error.smoothquant, error.convrot});
  }
  std::string page = kHead;
  page += fmt::format(
      "<h1>Quantization errors, {}</h1>\n<p>NRMSE of each linear's output in INT8 against F32 on "
      "{} (activations: {}). Geometric means: row-wise {:.3f} %, SmoothQuant {:.3f} %, ConvRot "
      "{:.3f} %, BF16 {:.3f} %.</p>\n",
      html_text(to_string(report.recipe)), html_text(report.device), html_text(report.activations),
      100 * mean_error(report, &LinearError::rowwise),
      100 * mean_error(report, &LinearError::smoothquant),
      100 * mean_error(report, &LinearError::convrot),
      100 * mean_error(report, &LinearError::unquantized));
  page +=
      "<p>The worst under the chosen recipe come first. Output channels are listed with their "
      "share of the squared error, input channels with their range relative to the median "
      "channel.</p>\n<p>";
  for (const char* kind : {"rowwise", "smoothquant", "convrot", "bf16"}) {
    page += fmt::format(R"(<span class="key {0}"></span>{0})", kind);
  }
  page +=
      "</p>\n<table><tr><th>linear</th><th>error</th><th>row-wise</th><th>SmoothQuant</th>"
      "<th>ConvRot</th><th>BF16</th><th>worst output channels</th><th>widest input channels"
      "</th></tr>\n";
  for (const LinearError* error : worst_first(report)) {
    page += fmt::format(
        "<tr{}><td>{}{}</td><td class=\"bars\">{}{}{}{}</td><td>{:.3f} %</td><td>{:.3f} %</td>"
        "<td>{:.3f} %</td><td>{:.3f} %</td><td>{}</td><td>{}</td></tr>\n",
        error->is_protected ? " class=\"protected\"" : "", html_text(linear_title(report, *error)),
        error->is_protected ? " (protected)" : "", error_bar("rowwise", error->rowwise, most),
        error_bar("smoothquant", error->smoothquant, most),
        error_bar("convrot", error->convrot, most), error_bar("bf16", error->unquantized, most),
        100 * error->rowwise, 100 * error->smoothquant, 100 * error->convrot,
        100 * error->unquantized, places_text(error->worst_rows, 100, " %"),
        places_text(error->worst_columns, 1, "x"));
  }
  return page + fmt::format("</table>\n<p class=\"note\">Octet {} ({})</p></body></html>\n",
                            version(), commit());
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
