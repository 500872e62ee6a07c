// The errors of a quantization as one HTML page without scripts: bars, the worst first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/boundary.h"
#include "octet/quantize.h"
#include "octet/version.h"
#include "report/html.h"

namespace octet {
namespace {

using report::html_text;

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

std::string bar(const char* kind, double value, double most) {
  return fmt::format(R"(<div class="bar {}" style="width:{:.2f}%" title="{} {:.3f} %"></div>)",
                     kind, most > 0 ? 100 * value / most : 0.0, kind, 100 * value);
}

std::string places(const std::vector<ErrorPlace>& list, double factor, const char* unit) {
  std::string text;
  for (const ErrorPlace& place : list) {
    text += fmt::format("{}{} ({:.0f}{})", text.empty() ? "" : ", ", place.index,
                        factor * place.value, unit);
  }
  return text;
}

// Geometric, so that no layer counts for more than another.
double mean(const QuantizeReport& report, double LinearError::*value) {
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

std::string error_page(const QuantizeReport& report) try {
  std::vector<const LinearError*> sorted;
  double most = 0;
  for (const LinearError& error : report.errors) {
    sorted.push_back(&error);
    most = std::max({most, error.rowwise, error.smoothquant, error.convrot});
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
    return a->of(report.recipe.kind) > b->of(report.recipe.kind);
  });
  std::string page = kHead;
  page += fmt::format(
      "<h1>Quantization errors, {}</h1>\n<p>NRMSE of each linear's output in INT8 against F32 on "
      "{} (activations: {}). Geometric means: row-wise {:.3f} %, SmoothQuant {:.3f} %, ConvRot "
      "{:.3f} %, BF16 {:.3f} %.</p>\n",
      html_text(to_string(report.recipe)), html_text(report.device), html_text(report.activations),
      100 * mean(report, &LinearError::rowwise), 100 * mean(report, &LinearError::smoothquant),
      100 * mean(report, &LinearError::convrot), 100 * mean(report, &LinearError::unquantized));
  page +=
      "<p>The worst under the chosen recipe come first. Output channels are listed with their "
      "share of the squared error, input channels with their range relative to the median "
      "channel.</p>\n<p>";
  for (const char* kind : {"rowwise", "smoothquant", "convrot", "bf16"}) {
    page += fmt::format(R"(<span class="key {0}"></span>{0})", kind);
  }
  page +=
      "</p>\n<table><tr><th>linear</th><th>error</th><th>row-wise</th><th>SmoothQuant</th>"
      "<th>ConvRot</th><th>BF16</th><th>worst output channels</th><th>widest input "
      "channels</th></tr>\n";
  for (const LinearError* error : sorted) {
    page += fmt::format(
        "<tr{}><td>{}{}</td><td class=\"bars\">{}{}{}{}</td><td>{:.3f} %</td><td>{:.3f} %</td>"
        "<td>{:.3f} %</td><td>{:.3f} %</td><td>{}</td><td>{}</td></tr>\n",
        error->is_protected ? " class=\"protected\"" : "", html_text(linear_title(report, *error)),
        error->is_protected ? " (protected)" : "", bar("rowwise", error->rowwise, most),
        bar("smoothquant", error->smoothquant, most), bar("convrot", error->convrot, most),
        bar("bf16", error->unquantized, most), 100 * error->rowwise, 100 * error->smoothquant,
        100 * error->convrot, 100 * error->unquantized, places(error->worst_rows, 100, " %"),
        places(error->worst_columns, 1, "x"));
  }
  return page + fmt::format("</table>\n<p class=\"note\">Octet {} ({})</p></body></html>\n",
                            version(), commit());
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
