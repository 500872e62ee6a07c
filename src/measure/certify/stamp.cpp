// Stamps: what a certificate leaves in the checkpoint's files.
#include <limits>

#include "base/error.h"
#include "formats/boundary.h"
#include "formats/checkpoint.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "formats/safetensors_metadata.h"
#include "formats/tensor_digest.h"
#include "hub/cache.h"
#include "measure/certify/network_files.h"
#include "octet/tools/files.h"
#include "octet/version.h"
#include "report/certificate.h"

namespace octet {
namespace {

// JSON has no NaN: what is equal has no decibels.
nlohmann::json mean_of(const Statistic& statistic) {
  return statistic.count > 0 ? nlohmann::json(statistic.mean) : nlohmann::json(nullptr);
}

std::string stamp_text(const Certificate& certificate, const std::string& tensors_sha256) {
  const CompareReport& report = certificate.report;
  return nlohmann::json{{"digest", certificate.digest},
                        {"date", certificate.date},
                        {"verdict", certificate.passed ? "pass" : "fail"},
                        {"psnr_db", mean_of(certificate.judged_psnr_db)},
                        {"snr_db", mean_of(report.first_velocity.snr_db)},
                        {"captions", report.captions.size()},
                        {"pictures", report.images.size()},
                        {"version", version()},
                        {"tensors_sha256", tensors_sha256}}
      .dump();
}

double decibels_in(const nlohmann::json& stamp, const char* key) {
  const nlohmann::json& value = stamp.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

CertificateStamp read_stamp(const TensorFile& file, const std::string& text, ThreadPool& pool) {
  CertificateStamp stamp{.file = file.path()};
  try {
    const nlohmann::json found = parse_json(text, file.path() + ": its stamp");
    stamp.digest = found.at("digest").get<std::string>();
    stamp.date = found.at("date").get<std::string>();
    stamp.verdict = found.at("verdict").get<std::string>();
    stamp.psnr_db = decibels_in(found, "psnr_db");
    stamp.snr_db = decibels_in(found, "snr_db");
    const std::string certified = found.at("tensors_sha256").get<std::string>();
    stamp.weights_unchanged = tensor_digest(file, pool) == certified;
  } catch (const nlohmann::json::exception&) {
    stamp = {.file = file.path(), .problem = "an entry is missing, or of another type"};
  } catch (const Error& error) {
    file.check_intact();
    stamp = {.file = file.path(), .problem = error.what()};
  }
  return stamp;
}

// A checkpoint by itself, even if it is not a model; else the networks of a model's folder, if it
// has any.
std::vector<std::string> stampable_files(const std::string& path) {
  std::vector<std::string> files;
  try {
    const Checkpoint checkpoint(hub::find_model(path));
    for (const TensorFile& file : checkpoint.files()) files.push_back(file.path());
    return files;
  } catch (const Error&) {
  }
  try {
    return measure::network_files({.model = path});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void check_takes_stamp(const CertifyRequest& request) try {
  ModelOptions model = request.model;
  if (model.fallback.empty()) model.fallback = request.reference;  // as compare() has it
  for (const std::string& file : measure::network_files(model)) {
    check_takes_metadata(file);
    check_writable(file);
  }
} catch (...) {
  rethrow_as_error();
}

void stamp_checkpoint(const Certificate& certificate) try {
  ThreadPool pool;
  // All are looked at before any is changed.
  for (const CertifiedFile& file : certificate.files) {
    check_takes_metadata(file.path);
    check(tensor_digest(SafetensorsFile(file.path), pool) == file.tensors_sha256,
          "{}: changed since it was certified; certify it again", file.path);
  }
  for (const CertifiedFile& file : certificate.files) {
    set_safetensors_metadata(file.path, kStampKey, stamp_text(certificate, file.tensors_sha256));
  }
} catch (...) {
  rethrow_as_error();
}

std::vector<CertificateStamp> find_stamps(const std::string& path) try {
  std::vector<CertificateStamp> stamps;
  ThreadPool pool;
  for (const std::string& name : stampable_files(path)) {
    if (!name.ends_with(".safetensors")) continue;
    const SafetensorsFile file(name);
    const auto entry = file.metadata().find(kStampKey);
    if (entry != file.metadata().end()) stamps.push_back(read_stamp(file, entry->second, pool));
  }
  return stamps;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
