// A short test of how faithfully a checkpoint runs: pictures of it and of a reference, compared,
// with a verdict that can be kept as JSON, as an HTML page, and in the checkpoint itself.
//
//   octet::CertifyRequest request;
//   request.model.model = "ideogram-4-int8";
//   request.picture.images = 2;
//   const octet::Certificate certificate = octet::certify(request);
//   octet::write_text_file("certificate.html", octet::certificate_page(certificate));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/compare.h"
#include "octet/export.h"

namespace octet {

// Low on purpose: they catch what is broken. Two pictures of uniform noise have a PSNR of 7.8 dB.
inline constexpr double kMinPsnrDb = 15, kMinSnrDb = 15;

struct CertifyRequest {
  ModelOptions model;  // the checkpoint, and how it runs
  // A model to measure it by; empty: the same checkpoint. Either way the reference's linears run in
  // floating point.
  std::string reference;
  PictureRequest picture;             // of each caption, whose words it lacks
  std::vector<CaptionText> captions;  // none: default_captions()
  double min_psnr_db = kMinPsnrDb;    // of the pictures that are judged, mean
  double min_snr_db = kMinSnrDb;      // of the first step's velocity, mean
};

struct CertifiedFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;          // of the file as it was read
  std::string tensors_sha256;  // of its tensors alone: metadata does not change it
};

// PNG files, at most kCertificateSide pixels on a side.
struct CertifiedPictures {
  std::vector<uint8_t> reference, checkpoint, difference;
};
inline constexpr int kCertificateSide = 512;

struct Certificate {
  CertifyRequest request;
  std::string date;                                   // UTC, ISO 8601
  CompareReport report;                               // a: the reference, b: the checkpoint
  std::vector<CertifiedFile> files, reference_files;  // of the networks; none of the same model
  std::vector<CertifiedPictures> pictures;            // as report.images
  // Those whose reference is neither nearly one colour nor a card of text: they alone decide by
  // their PSNR.
  size_t judged_pictures = 0;
  Statistic judged_psnr_db;
  bool passed = false;
  std::vector<std::string> reasons;   // sentences: why it did not pass
  std::vector<std::string> warnings;  // likewise: what to look at all the same
  // All but the pictures, see octet.certify/1 in docs/json.md. `digest` is the SHA-256 of the same
  // without the entry "digest", compact and with sorted keys.
  std::string json, digest;
};

// Throws Error for what compare() refuses.
OCTET_API Certificate certify(const CertifyRequest& request,
                              const CompareCallbacks& callbacks = {});

// One page without scripts that needs no other file.
OCTET_API std::string certificate_page(const Certificate& certificate);

// Of the folder "captions" in a model's folder, at most eight that are spread evenly; else those
// that the library brings along.
OCTET_API std::vector<CaptionText> default_captions(const std::string& model);

// --- stamps ---

// The metadata entry of a safetensors file that holds a stamp.
inline constexpr const char* kStampKey = "octet.certificate";

struct CertificateStamp {
  std::string file;
  std::string digest, date, verdict;  // verdict: "pass" or "fail"
  double psnr_db = 0, snr_db = 0;     // means; NaN: equal
  bool weights_unchanged = false;     // the tensors are those that were certified
  std::string problem;                // why the stamp cannot be read; nothing above holds then
};

// Throws Error where the files of the model's networks cannot take a stamp: GGUF files, links, and
// those in a folder that cannot be written to.
OCTET_API void check_takes_stamp(const CertifyRequest& request);

// Writes digest, date, verdict and main figures into each of them. Tensors stay as they are to the
// bit, and no file is ever half written. Throws Error where tensors are not those that were
// certified.
OCTET_API void stamp_checkpoint(const Certificate& certificate);

// Of all files of a checkpoint, or of the networks of a model's folder. Reads the tensors of those
// that have one.
OCTET_API std::vector<CertificateStamp> find_stamps(const std::string& path);

}  // namespace octet
