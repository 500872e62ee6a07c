// A certificate as JSON, and its digest.
#include "base/sha256.h"
#include "engine/requests.h"
#include "formats/canonical_json.h"
#include "models/image_size.h"
#include "octet/version.h"
#include "report/certificate.h"
#include "report/compare_json.h"

namespace octet::report {
namespace {

using CertificateJson = nlohmann::ordered_json;

CertificateJson file_list(const std::vector<CertifiedFile>& files) {
  auto list = CertificateJson::array();
  for (const CertifiedFile& file : files) {
    list.push_back({{"file", file.path},
                    {"bytes", file.bytes},
                    {"sha256", file.sha256},
                    {"tensors_sha256", file.tensors_sha256}});
  }
  return list;
}

CertificateJson side(const std::string& model, Linears linears, const RenderReport& report,
                     const std::vector<CertifiedFile>& files) {
  auto kernels = CertificateJson::array();
  for (const KernelUse& use : report.kernels) {
    kernels.push_back(
        {{"layer", use.layer},
         {"path", use.path},
         {"kernel", use.kernel.empty() ? CertificateJson(nullptr) : CertificateJson(use.kernel)},
         {"launches", use.launches}});
  }
  return {{"model", model},
          {"linears", word_of(linears)},
          {"fingerprint", report.checkpoint},
          {"device", report.device},
          {"linears_ran",
           {{"int8", report.linears.int8},
            {"protected", report.linears.protected_},
            {"kept", report.linears.kept},
            {"floating", report.linears.floating},
            {"fake", report.linears.fake}}},
          {"kernels", kernels},
          {"files", file_list(files)}};
}

// File names need not be UTF-8, and JSON must be.
std::string valid_text(const CertificateJson& document, int indent) {
  return document.dump(indent, ' ', false, CertificateJson::error_handler_t::replace);
}

}  // namespace

void write_certificate_json(Certificate& certificate) {
  const CertifyRequest& request = certificate.request;
  const PictureRequest& picture = request.picture;
  const CompareReport& report = certificate.report;
  const bool same = request.reference.empty();
  auto loras = CertificateJson::array();
  for (const Lora& lora : request.model.loras) loras.push_back(engine::lora_text(lora));
  CertificateJson document = {
      {"schema", "octet.certify/1"},
      {"version", version()},
      {"commit", commit()},
      {"date", certificate.date},
      {"verdict", certificate.passed ? "pass" : "fail"},
      {"reasons", certificate.reasons},
      {"warnings", certificate.warnings},
      {"min_psnr_db", request.min_psnr_db},
      {"min_snr_db", request.min_snr_db},
      {"judged_pictures", certificate.judged_pictures},
      {"judged_psnr_db", json_of(certificate.judged_psnr_db)},
      {"size", models::name_of({report.b.width, report.b.height})},
      {"preset", report.b.preset},
      {"guidance",
       picture.guidance.empty() ? CertificateJson(nullptr) : CertificateJson(picture.guidance)},
      {"noise",
       picture.noise.empty() ? CertificateJson(nullptr) : CertificateJson(picture.noise_name)},
      {"dtype", word_of(request.model.activations)},
      {"convention", word_of(request.model.convention)},
      {"loras", loras},
      {"checkpoint", side(request.model.model, request.model.linears, report.b, certificate.files)},
      {"reference", side(same ? request.model.model : request.reference, Linears::floating,
                         report.a, same ? certificate.files : certificate.reference_files)}};
  document.update(json_of(report));
  certificate.digest = sha256_of(canonical_json(nlohmann::json::parse(valid_text(document, -1))));
  document["digest"] = certificate.digest;
  certificate.json = valid_text(document, 2);
}

}  // namespace octet::report
