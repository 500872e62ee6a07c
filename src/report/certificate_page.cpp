// A certificate as one HTML page without scripts and without other files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/boundary.h"
#include "octet/version.h"
#include "report/certificate.h"
#include "report/page.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

constexpr const char* kCertificateStyle = R"(
.line{fill:none;stroke:var(--accent);stroke-width:2}.dot{fill:var(--accent)}
.band{fill:var(--accent);opacity:.18}
.row{display:grid;grid-template-columns:repeat(3,1fr);gap:.7rem;margin-bottom:1.4rem}
.row h3{grid-column:1/-1;font-size:1rem;font-weight:600;margin:0}
figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:.5rem;
padding:.4rem}
figure img{width:100%;display:block;border-radius:.3rem}figcaption{font-size:.85rem;
padding-top:.3rem}details pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);
border:1px solid var(--edge);border-radius:.5rem;padding:.7rem;font-size:.8rem})";

std::string name_of_model(const CertifyRequest& request) {
  return request.reference.empty() ? "the same checkpoint, linears in floating point"
                                   : request.reference + ", linears in floating point";
}

std::string verdict_box(const Certificate& certificate) {
  const char* const verdict = certificate.passed ? "pass" : "fail";
  std::string items = html_items(certificate.reasons) + html_items(certificate.warnings);
  if (!items.empty()) items = "<ul>" + items + "</ul>";
  return fmt::format(R"(<div class="verdict {}"><strong>{}</strong>{}</div>)", verdict,
                     certificate.passed ? "PASS" : "FAIL", items);
}

std::string cells(const Statistic& statistic, int decimals) {
  if (statistic.count == 0) return "<td>equal or undefined</td><td>–</td><td>–</td>";
  return fmt::format("<td>{:.{}f}</td><td>{}</td><td>{:.{}f}</td>", statistic.mean, decimals,
                     interval_of(statistic, decimals, "–"), statistic.median, decimals);
}

std::string error_table(const Certificate& certificate) {
  const CompareReport& report = certificate.report;
  const CertifyRequest& request = certificate.request;
  const auto row = [](const char* name, const Statistic& statistic, int decimals,
                      const std::string& least) {
    return fmt::format(R"(<tr><th scope="row">{}</th>{}<td>{}</td></tr>)", name,
                       cells(statistic, decimals), least);
  };
  std::string rows;
  rows += row("PSNR of the pictures, dB", certificate.judged_psnr_db, 2,
              fmt::format("at least {}", request.min_psnr_db));
  rows += row("SSIM of the pictures", report.ssim, 4, "");
  rows += row("SNR of the first velocity, dB", report.first_velocity.snr_db, 2,
              fmt::format("at least {}", request.min_snr_db));
  rows += row("SNR of the final latents, dB", report.steps.back().snr_db, 2, "");
  rows += row("cosine of the final latents", report.steps.back().cosine, 6, "");
  return html_table({"measure", "mean", "95 % interval", "median", "required"}, rows);
}

constexpr double kPlotWidth = 640, kPlotHeight = 240, kPlotLeft = 48, kPlotRight = 12,
                 kPlotTop = 12, kPlotBottom = 40;

// From decibels and steps to places.
struct Axes {
  double low = 0, high = 0;
  size_t steps = 0;

  double x(size_t step) const {
    const double inside = kPlotWidth - kPlotLeft - kPlotRight;
    return steps < 2
               ? kPlotLeft + inside / 2
               : kPlotLeft + inside * static_cast<double>(step) / static_cast<double>(steps - 1);
  }
  double y(double decibels) const {
    const double inside = kPlotHeight - kPlotTop - kPlotBottom;
    return kPlotTop + inside * (high - decibels) / (high - low);
  }
};

bool has_interval(const Statistic& statistic) { return std::isfinite(statistic.low); }

std::string point(double x, double y) { return fmt::format("{:.1f},{:.1f} ", x, y); }

// SNR after each step as an inline picture; empty where nothing can be drawn.
std::string snr_plot(const CompareReport& report) {
  Axes axes{.low = 1e9, .high = -1e9, .steps = report.steps.size()};
  for (const DifferenceStatistics& step : report.steps) {
    const Statistic& snr = step.snr_db;
    if (snr.count == 0) return "";
    axes.low = std::min(axes.low, has_interval(snr) ? snr.low : snr.mean);
    axes.high = std::max(axes.high, has_interval(snr) ? snr.high : snr.mean);
  }
  if (report.steps.empty()) return "";
  constexpr double kGrid = 5;  // decibels
  axes.low = kGrid * std::floor((axes.low - 1) / kGrid);
  axes.high = kGrid * std::ceil((axes.high + 1) / kGrid);
  std::string svg = svg_begin(
      kPlotWidth, kPlotHeight,
      fmt::format("SNR of the latents after each step, from {:.1f} dB after the first to {:.1f} dB "
                  "after the last",
                  report.steps.front().snr_db.mean, report.steps.back().snr_db.mean));
  const double every = kGrid * std::ceil((axes.high - axes.low) / kGrid / 6);
  for (double value = axes.low; value <= axes.high + 0.1; value += every) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)"
                       R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.0f}</text>)",
                       kPlotLeft, kPlotWidth - kPlotRight, axes.y(value), axes.y(value),
                       kPlotLeft - 8, axes.y(value) + 4, value);
  }
  const size_t label_every = (axes.steps + 11) / 12;
  for (size_t i = 0; i < axes.steps; i += label_every) {
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
                       axes.x(i), kPlotHeight - kPlotBottom + 18, i + 1);
  }
  svg += fmt::format(R"(<text class="tick" x="{}" y="{}" text-anchor="middle">step</text>)",
                     (kPlotLeft + kPlotWidth - kPlotRight) / 2, kPlotHeight - 4);
  std::string line, upper, lower;
  for (size_t i = 0; i < axes.steps; ++i) {
    const Statistic& snr = report.steps[i].snr_db;
    line += point(axes.x(i), axes.y(snr.mean));
    if (!has_interval(snr)) continue;
    upper += point(axes.x(i), axes.y(snr.high));
    lower.insert(0, point(axes.x(i), axes.y(snr.low)));
  }
  if (!upper.empty()) svg += fmt::format(R"(<polygon class="band" points="{}"/>)", upper + lower);
  svg += fmt::format(R"(<polyline class="line" points="{}"/>)", line);
  for (size_t i = 0; i < axes.steps; ++i) {
    const Statistic& snr = report.steps[i].snr_db;
    svg += fmt::format(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3">)"
                       "<title>step {}: {:.2f} dB</title></circle>",
                       axes.x(i), axes.y(snr.mean), i + 1, snr.mean);
  }
  return svg + "</svg>";
}

std::string figure(const std::vector<uint8_t>& png, const std::string& what,
                   const std::string& where) {
  return fmt::format(R"(<figure><img src="{}" alt="{}: {}"><figcaption>{}</figcaption></figure>)",
                     png_uri(std::as_bytes(std::span(png))), html_text(what), html_text(where),
                     html_text(what));
}

std::string picture_rows(const Certificate& certificate) {
  const CompareReport& report = certificate.report;
  std::string rows;
  for (size_t i = 0; i < report.images.size(); ++i) {
    const ComparedImage& image = report.images[i];
    const CertifiedPictures& shown = certificate.pictures[i];
    const std::string where = report::name_of(image, report);
    std::string numbers =
        std::isfinite(image.psnr_db) ? fmt::format("PSNR {:.2f} dB", image.psnr_db) : "equal";
    if (std::isfinite(image.ssim)) numbers += fmt::format(", SSIM {:.4f}", image.ssim);
    rows += fmt::format(
        R"(<section class="row"><h3>{} <span class="dim">{}</span></h3>{}{}{})"
        "</section>\n",
        html_text(where), numbers, figure(shown.reference, "Reference", where),
        figure(shown.checkpoint, "Checkpoint", where),
        figure(shown.difference,
               fmt::format("Difference, {} times as bright", kDifferenceAmplification), where));
  }
  return rows;
}

std::string kernel_table(const char* title, const RenderReport& report) {
  std::string rows;
  for (const KernelUse& use : report.kernels) {
    rows +=
        fmt::format("<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>", html_text(use.layer),
                    html_text(use.path), use.kernel.empty() ? "–" : html_text(use.kernel));
  }
  return fmt::format("<details><summary>{}: {}</summary>{}</details>", title,
                     html_text(report.device), html_table({"layer", "path", "kernel"}, rows));
}

std::string file_table(const Certificate& certificate) {
  std::string rows;
  const auto add = [&](const char* of, const std::vector<CertifiedFile>& files) {
    for (const CertifiedFile& file : files) {
      rows += fmt::format(
          "<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td><code>{}</code>"
          "</td></tr>",
          of, html_text(file.path), file.sha256, file.tensors_sha256);
    }
  };
  add("checkpoint", certificate.files);
  add("reference", certificate.reference_files);
  return html_table({"of", "file", "SHA-256", "of the tensors alone"}, rows);
}

std::string caption_details(const CompareReport& report) {
  std::string details;
  for (size_t i = 0; i < report.captions.size(); ++i) {
    details += fmt::format("<details><summary>{}</summary><pre>{}</pre></details>",
                           html_text(report.captions[i].name), html_text(report.prompts[i]));
  }
  return details;
}

}  // namespace

std::string certificate_page(const Certificate& certificate) try {
  const CertifyRequest& request = certificate.request;
  const CompareReport& report = certificate.report;
  const auto row = [](const char* name, const std::string& value) {
    return html_row(name, html_text(value));
  };
  std::string page = page_head("Fidelity certificate: " + request.model.model, kCertificateStyle);
  page += fmt::format("<main><h1>Fidelity certificate</h1><p class=\"dim\"><code>{}</code></p>{}",
                      html_text(request.model.model), verdict_box(certificate));
  page += "<h2>Errors</h2>" + error_table(certificate);
  page += fmt::format(
      "<p class=\"dim\">Pictures: {}; captions: {}. The PSNR is over the {} whose reference is "
      "neither nearly one colour nor a card of text. Intervals are for the mean, by bootstrap "
      "over captions (2000 resamples).</p>",
      report.images.size(), report.captions.size(), certificate.judged_pictures);
  if (const std::string plot = snr_plot(report); !plot.empty()) {
    page += "<h2>SNR of the latents after each step, dB</h2>" + plot;
  }
  page += "<h2>Pictures</h2>" + picture_rows(certificate);
  page += "<h2>What ran</h2><div class=\"scroll\"><table><tbody>";
  page += row("Reference", name_of_model(request));
  page += row("Weights",
              fmt::format("checkpoint {}, reference {}", report.b.checkpoint, report.a.checkpoint));
  page += row("Linears of the checkpoint",
              fmt::format("{} INT8, {} protected, {} kept, {} floating, {} fake INT8",
                          report.b.linears.int8, report.b.linears.protected_, report.b.linears.kept,
                          report.b.linears.floating, report.b.linears.fake));
  page += row("Size",
              fmt::format("{} x {}, {} steps", report.b.width, report.b.height, report.b.steps));
  page += row("Program", fmt::format("Octet {} ({})", version(), commit()));
  page += row("Date", certificate.date);
  page += row("Digest", certificate.digest);
  page += "</tbody></table></div>";
  page += kernel_table("Kernels of the checkpoint", report.b);
  page += kernel_table("Kernels of the reference", report.a);
  page += "<h2>Files</h2>" + file_table(certificate);
  page += "<h2>Captions</h2>" + caption_details(report);
  return page + "</main></body></html>\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
