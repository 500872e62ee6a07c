// octet::certify: a comparison with a verdict.
#include "octet/tools/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file_identity.h"
#include "base/invalid_request.h"
#include "base/utc.h"
#include "engine/requests.h"
#include "formats/boundary.h"
#include "formats/checkpoint.h"
#include "formats/png.h"
#include "formats/tensor_digest.h"
#include "hub/cache.h"
#include "measure/certify/network_files.h"
#include "measure/compare/compare.h"
#include "measure/compare/difference.h"
#include "models/family.h"
#include "report/certificate.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

std::string digest_of_tensors(const std::string& path, ThreadPool& pool) {
  const Checkpoint checkpoint(path);
  return tensor_digest(checkpoint.files().front(), pool);
}

std::vector<CertifiedFile> digests_of(const std::vector<std::string>& paths) {
  std::vector<CertifiedFile> files(paths.size());
  ThreadPool pool;
  pool.run(static_cast<int64_t>(paths.size()), [&](int64_t index, int) {
    const auto i = static_cast<size_t>(index);
    files[i].path = paths[i];
    files[i].bytes = fs::file_size(paths[i]);
    files[i].sha256 = file_digest(paths[i]);
  });
  for (CertifiedFile& file : files) file.tensors_sha256 = digest_of_tensors(file.path, pool);
  return files;
}

// The files of a model's networks, whose digests are taken before they run.
class FilesThatRun {
 public:
  void take(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) identities_.push_back(identity_of(MappedFile(path)));
    files_ = digests_of(paths);
  }

  // Reads again only those that may be others by now.
  const std::vector<CertifiedFile>& unchanged() const {
    for (size_t i = 0; i < files_.size(); ++i) {
      const CertifiedFile& file = files_[i];
      if (identity_of(MappedFile(file.path)) == identities_[i]) continue;
      ThreadPool pool;
      check(digest_of_tensors(file.path, pool) == file.tensors_sha256,
            "{}: changed while it was certified; certify it again", file.path);
    }
    return files_;
  }

 private:
  std::vector<std::string> identities_;
  std::vector<CertifiedFile> files_;
};

// Small enough for a page: each pixel is the mean of a square of them.
std::vector<uint8_t> small_png(const Picture& picture) {
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
  return look == PictureLook::refusal ? "looks like a card of text instead of a picture"
                                      : "is nearly one colour";
}

// Pictures that only the checkpoint spoils count against it; where the reference has the same, the
// caption or the model's makers want it so, and there is nothing to compare.
void judge_looks(Certificate& certificate) {
  const CompareReport& report = certificate.report;
  for (const ComparedImage& image : report.images) {
    const std::string where = report::name_of(image, report);
    if (image.look_b != PictureLook::ordinary && image.look_a == PictureLook::ordinary) {
      certificate.reasons.push_back(fmt::format("{}: the picture {}, the reference's does not",
                                                where, words_for(image.look_b)));
    } else if (image.look_a != PictureLook::ordinary) {
      certificate.warnings.push_back(
          fmt::format("{}: the reference's picture {}", where, words_for(image.look_a)));
    }
  }
  if (certificate.judged_pictures == 0) {
    certificate.reasons.push_back(
        "All pictures of the reference are nearly one colour or cards of text: there is nothing to "
        "compare");
  }
}

// Two cards of text are alike, or are not, whatever the weights are.
void add_judged_pictures(Certificate& certificate) {
  measure::Groups groups(certificate.report.captions.size());
  for (const ComparedImage& image : certificate.report.images) {
    if (image.look_a != PictureLook::ordinary) continue;
    groups[image.caption].push_back(image.psnr_db);
    ++certificate.judged_pictures;
  }
  certificate.judged_psnr_db = measure::grouped_statistic(groups);
}

void judge(Certificate& certificate) {
  const CompareReport& report = certificate.report;
  const CertifyRequest& request = certificate.request;
  const auto expect = [&](const char* what, const Statistic& statistic, double least) {
    if (statistic.count == 0 || statistic.mean >= least) return;
    certificate.reasons.push_back(
        fmt::format("{} is {:.2f} dB, expected at least {}", what, statistic.mean, least));
  };
  add_judged_pictures(certificate);
  expect("The PSNR of the pictures", certificate.judged_psnr_db, request.min_psnr_db);
  expect("The SNR of the first velocity", report.first_velocity.snr_db, request.min_snr_db);
  for (const ComparedImage& image : report.images) {
    const Difference& velocity = image.first_velocity;
    if (std::isfinite(velocity.snr_db) || velocity.max_abs == 0) continue;
    certificate.reasons.push_back(
        fmt::format("{}: the reference's first velocity is zero", report::name_of(image, report)));
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

// The networks that were named are the checkpoint's: a reference runs its own.
void erase_networks(ModelOptions& reference) {
  const std::string folder = hub::find_model(reference.model);
  const models::Family& family = models::family_of(folder);
  for (const models::NetworkInfo& network : family.networks) {
    reference.parts.erase(std::string(network.part));
  }
}

}  // namespace

namespace measure {

std::vector<std::string> network_files(const ModelOptions& options) {
  const ModelOptions paths = engine::with_paths(options);
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
  const auto runs = [&](size_t network) {
    return paths.guided || models::runs_unguided(family.branches, network);
  };
  for (const auto& network : family.find_networks(paths.model, paths.base, "")) {
    if (!elsewhere.contains(network.network) && runs(network.network)) add(network.files.path);
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

}  // namespace measure

Certificate certify(const CertifyRequest& request, const CompareCallbacks& callbacks) try {
  check_value(std::isfinite(request.min_psnr_db), "min_psnr_db",
              "`min_psnr_db` is not a number, expected decibels");
  check_value(std::isfinite(request.min_snr_db), "min_snr_db",
              "`min_snr_db` is not a number, expected decibels");
  check_value(request.model.linears != Linears::floating || !request.reference.empty(), "linears",
              "`linears`: in floating point the checkpoint is its own reference and always passes; "
              "give another model as `reference`");
  Certificate certificate{.request = request};
  CertifyRequest& asked = certificate.request;
  if (asked.captions.empty()) asked.captions = default_captions(asked.model.model);
  check_value(asked.picture.images >= 1 && asked.picture.images <= 1000, "images",
              "`images` is {}, expected 1 to 1000", asked.picture.images);
  CompareRequest compared{
      .a = asked.model, .b = asked.model, .picture = asked.picture, .captions = asked.captions};
  compared.a.linears = Linears::floating;
  compared.a.require_int8 = false;
  if (!asked.reference.empty()) {
    compared.a.model = asked.reference;
    erase_networks(compared.a);
  }
  FilesThatRun files, reference_files;
  const auto on_checked = [&](const ModelOptions& reference, const ModelOptions& checkpoint) {
    files.take(measure::network_files(checkpoint));
    if (!asked.reference.empty()) reference_files.take(measure::network_files(reference));
  };
  certificate.report =
      measure::compare_models(compared, keeping_pictures(certificate, callbacks), on_checked,
                              {.command = "certify",
                               .a = "the reference",
                               .b = "the checkpoint",
                               .whole = "a certificate"});
  certificate.date = utc_now();
  certificate.files = files.unchanged();
  certificate.reference_files = reference_files.unchanged();
  judge(certificate);
  report::write_certificate_json(certificate);
  return certificate;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
