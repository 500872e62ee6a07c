// octet::certify: a comparison with a verdict.
#include "octet/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "api/boundary.h"
#include "api/certificate.h"
#include "api/engine.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "base/utc.h"
#include "formats/checkpoint.h"
#include "formats/png.h"
#include "formats/tensor_digest.h"
#include "models/family.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

std::vector<CertifiedFile> digests_of(const std::vector<std::string>& paths) {
  std::vector<CertifiedFile> files(paths.size());
  ThreadPool pool;
  pool.run(static_cast<int64_t>(paths.size()), [&](int64_t index, int) {
    const auto i = static_cast<size_t>(index);
    files[i].path = paths[i];
    files[i].bytes = fs::file_size(paths[i]);
    files[i].sha256 = file_digest(paths[i]);
  });
  for (CertifiedFile& file : files) {
    const Checkpoint checkpoint(file.path);
    file.tensors_sha256 = tensor_digest(checkpoint.files().front(), pool);
  }
  return files;
}

// Small enough for a page: each pixel is the mean of a square of them.
std::vector<std::byte> small_png(const Picture& picture) {
  const int longest = std::max(picture.width, picture.height);
  const int by = (longest + kCertificateSide - 1) / kCertificateSide;
  if (by <= 1) return encode_png({picture.rgb, picture.width, picture.height});
  const int width = picture.width / by, height = picture.height / by;
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < 3 * width; ++x) {
      int sum = 0;
      for (int i = 0; i < by * by; ++i) {
        const int row = y * by + i / by, column = (x / 3) * by + i % by;
        sum += picture.rgb[static_cast<size_t>(3 * (row * picture.width + column) + x % 3)];
      }
      rgb.push_back(static_cast<uint8_t>((sum + by * by / 2) / (by * by)));
    }
  }
  return encode_png({rgb, width, height});
}

const char* words_for(PictureLook look) {
  return look == PictureLook::refusal ? "looks like a card of text in place of a picture"
                                      : "is nearly one colour";
}

// Pictures that the checkpoint alone spoils count against it; where the reference has the same, the
// caption or the model's makers want it so, and there is nothing to compare.
void judge_looks(Certificate& certificate) {
  const CompareReport& report = certificate.report;
  bool any_reference = false;
  for (const ComparedImage& image : report.images) {
    const std::string where =
        fmt::format("{}, seed {}", report.captions[image.caption].name, image.seed);
    any_reference = any_reference || image.look_a == PictureLook::ordinary;
    if (image.look_b != PictureLook::ordinary && image.look_a == PictureLook::ordinary) {
      certificate.reasons.push_back(fmt::format("{}: the picture {}, the reference's does not",
                                                where, words_for(image.look_b)));
    } else if (image.look_a != PictureLook::ordinary) {
      certificate.warnings.push_back(
          fmt::format("{}: the reference's picture {}", where, words_for(image.look_a)));
    }
  }
  if (!any_reference) {
    certificate.reasons.push_back(
        "All pictures of the reference are nearly one colour or cards of text: there is nothing to "
        "compare");
  }
}

void judge(Certificate& certificate) {
  const CompareReport& report = certificate.report;
  const CertifyRequest& request = certificate.request;
  const auto expect = [&](const char* what, const Statistic& statistic, double least) {
    if (statistic.count == 0 || statistic.mean >= least) return;
    certificate.reasons.push_back(
        fmt::format("{} is {:.2f} dB, expected at least {}", what, statistic.mean, least));
  };
  expect("The PSNR of the pictures", report.psnr_db, request.min_psnr_db);
  expect("The SNR of the first velocity", report.first_velocity.snr_db, request.min_snr_db);
  for (const ComparedImage& image : report.images) {
    const Difference& velocity = image.first_velocity;
    if (std::isfinite(velocity.snr_db) || velocity.max_abs == 0) continue;
    certificate.reasons.push_back(fmt::format("{}, seed {}: the reference's first velocity is zero",
                                              report.captions[image.caption].name, image.seed));
  }
  judge_looks(certificate);
  certificate.passed = certificate.reasons.empty();
}

// Hands pictures on, and keeps small ones for the page.
CompareCallbacks keeping_pictures(Certificate& certificate, const CompareCallbacks& others) {
  CompareCallbacks callbacks = others;
  const auto images = static_cast<size_t>(certificate.request.picture.images);
  certificate.pictures.resize(certificate.request.captions.size() * images);
  callbacks.picture = [&certificate, &others, images](const std::string& name, size_t caption,
                                                      const Picture& picture) {
    CertifiedPictures& kept =
        certificate.pictures[caption * images + static_cast<size_t>(picture.index)];
    (name == "a"   ? kept.reference
     : name == "b" ? kept.checkpoint
                   : kept.difference) = small_png(picture);
    if (others.picture) others.picture(name, caption, picture);
  };
  return callbacks;
}

}  // namespace

namespace api {

std::vector<std::string> network_files(const ModelOptions& options) {
  const ModelOptions paths = with_paths(options);
  const models::Family& family = models::family_of(paths.model);
  std::vector<std::string> files;
  const auto add = [&](const std::string& path) {
    const Checkpoint checkpoint(path);
    for (const TensorFile& file : checkpoint.files()) {
      if (std::find(files.begin(), files.end(), file.path()) == files.end()) {
        files.push_back(file.path());
      }
    }
  };
  std::set<size_t> elsewhere;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    if (paths.parts.contains(std::string(family.networks[i].part))) elsewhere.insert(i);
  }
  for (const auto& network : family.find_networks(paths.model, paths.base, "")) {
    if (!elsewhere.contains(network.network)) add(network.files.path);
  }
  if (elsewhere.empty()) return files;
  const models::ModelFiles found = family.find({.model = paths.model,
                                                .base = paths.base,
                                                .fallback = paths.fallback,
                                                .parts = paths.parts,
                                                .guided = paths.guided});
  for (const size_t network : elsewhere) {
    const auto part = found.find(family.networks[network].part);
    if (part != found.end()) add(part->second.path);
  }
  return files;
}

}  // namespace api

Certificate certify(const CertifyRequest& request, const CompareCallbacks& callbacks) try {
  check_value(std::isfinite(request.min_psnr_db), "min_psnr_db",
              "`min_psnr_db` is no number, expected decibels");
  check_value(std::isfinite(request.min_snr_db), "min_snr_db",
              "`min_snr_db` is no number, expected decibels");
  Certificate certificate{.request = request};
  CertifyRequest& asked = certificate.request;
  if (asked.captions.empty()) asked.captions = default_captions(asked.model.model);
  check_value(asked.picture.images >= 1 && asked.picture.images <= 1000, "images",
              "`images` is {}, expected 1 to 1000", asked.picture.images);
  CompareRequest compared{
      .a = asked.model, .b = asked.model, .picture = asked.picture, .captions = asked.captions};
  compared.a.linears = Linears::floating;
  compared.a.require_int8 = false;
  if (!asked.reference.empty()) compared.a.model = asked.reference;
  certificate.report = compare(compared, keeping_pictures(certificate, callbacks));
  certificate.date = utc_now();
  certificate.files = digests_of(api::network_files(asked.model));
  if (!asked.reference.empty()) {
    certificate.reference_files = digests_of(api::network_files(compared.a));
  }
  judge(certificate);
  api::write_certificate_json(certificate);
  return certificate;
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
