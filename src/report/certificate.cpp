// A certificate as JSON with its digest, and as text.
#include "report/certificate.h"

#include <fmt/format.h>

#include <cmath>

#include "base/sha256.h"
#include "formats/boundary.h"
#include "formats/canonical_json.h"
#include "octet/model_options.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/nested.h"
#include "report/text.h"

namespace octet {

static void to_json(report::Json& json, const CertifiedFile& file) {
  json = report::joined(
      {report::field("file", file.path), OCTET_FIELDS(file, bytes, sha256, tensors_sha256)});
}

namespace report {
namespace {

Json certified_side(const std::string& model, Linears linears, const RenderReport& report,
                    const std::vector<CertifiedFile>& files) {
  auto kernels = Json::array();
  for (const KernelUse& use : report.kernels) {
    kernels.push_back(joined({OCTET_FIELDS(use, layer, path), OCTET_KNOWN_FIELDS(use, kernel),
                              OCTET_FIELDS(use, launches)}));
  }
  return {{"model", model},
          {"linears", linears},
          {"fingerprint", report.checkpoint},
          {"device", report.device},
          {"linears_ran", report.linears},
          {"kernels", kernels},
          {"files", files}};
}

}  // namespace

std::string name_of(const ComparedImage& image, const CompareReport& report) {
  const std::string& caption = report.captions[image.caption].name;
  return report.seeded ? fmt::format("{}, seed {}", caption, image.seed) : caption;
}

void write_certificate_json(Certificate& certificate) {
  const CertifyRequest& request = certificate.request;
  const PictureRequest& picture = request.picture;
  const CompareReport& report = certificate.report;
  const bool same = request.reference.empty();
  auto loras = Json::array();
  for (const Lora& lora : request.model.loras) loras.push_back(to_string(lora));
  Json document =
      joined({{{"schema", "octet.certify/1"}, {"version", version()}, {"commit", commit()}},
              OCTET_FIELDS(certificate, date),
              field("verdict", certificate.passed ? "pass" : "fail"),
              OCTET_FIELDS(certificate, reasons, warnings),
              OCTET_FIELDS(request, min_psnr_db, min_snr_db),
              OCTET_FIELDS(certificate, judged_pictures, judged_psnr_db),
              {{"size", fmt::format("{}x{}", report.b.width, report.b.height)},
               {"preset", report.b.preset},
               {"guidance", picture.guidance.empty() ? Json(nullptr) : Json(picture.guidance)},
               {"noise", picture.noise.empty() ? Json(nullptr) : Json(picture.noise_name)},
               {"dtype", request.model.activations},
               {"convention", request.model.convention},
               {"loras", loras},
               {"checkpoint", certified_side(request.model.model, request.model.linears, report.b,
                                             certificate.files)},
               {"reference",
                certified_side(same ? request.model.model : request.reference, Linears::floating,
                               report.a, same ? certificate.files : certificate.reference_files)}},
              report});
  certificate.digest = sha256_of(canonical_json(nlohmann::json::parse(valid_text(document, -1))));
  document["digest"] = certificate.digest;
  certificate.json = valid_text(document, 2);
}

}  // namespace report

namespace {

using report::interval_of;

std::string statistic_text(const Statistic& statistic, int decimals) {
  if (statistic.count == 0) return "equal";
  std::string text = fmt::format("{:.{}f}", statistic.mean, decimals);
  if (!std::isfinite(statistic.low)) return text;
  return text + fmt::format(" (95 % interval {}, median {:.{}f})", interval_of(statistic, decimals),
                            statistic.median, decimals);
}

std::string psnr_text(const Certificate& certificate) {
  const size_t judged = certificate.judged_pictures, all = certificate.report.images.size();
  if (judged == 0) return "no picture counts";
  const std::string text = statistic_text(certificate.judged_psnr_db, 2);
  return judged == all ? text : text + fmt::format(", over the {} that count", judged);
}

}  // namespace

std::string to_text(const Certificate& certificate, Detail detail) try {
  const CompareReport& report = certificate.report;
  std::string text;
  if (detail != Detail::brief) {
    text += fmt::format("{} of {}, on {}\n", counted(report.images.size(), "picture"),
                        counted(report.captions.size(), "caption"), report.b.device);
    text += fmt::format("PSNR of the pictures, dB: {}\n", psnr_text(certificate));
    text += fmt::format("SSIM of the pictures: {}\n", statistic_text(report.ssim, 4));
    text += fmt::format("SNR of the first velocity, dB: {}\n",
                        statistic_text(report.first_velocity.snr_db, 2));
    text += fmt::format("SNR of the final latents, dB: {}\n",
                        statistic_text(report.steps.back().snr_db, 2));
  }
  for (const std::string& warning : certificate.warnings) {
    text += fmt::format("Warning: {}\n", printable(warning));
  }
  for (const std::string& reason : certificate.reasons) text += printable(reason) + "\n";
  return text + fmt::format("{}, certificate {}\n", certificate.passed ? "PASS" : "FAIL",
                            certificate.digest);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
