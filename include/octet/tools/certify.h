// A short test of how faithfully a checkpoint runs: its pictures compared with those of a
// reference, with a verdict that can be kept as JSON, as an HTML page, and in the checkpoint
// itself.
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

#include "octet/export.h"
#include "octet/tools/compare.h"

namespace octet {

// Low on purpose: they catch broken models. Two pictures of uniform noise have a PSNR of 7.8 dB.
inline constexpr double kMinPsnrDb = 15, kMinSnrDb = 15;

struct CertifyRequest {
  ModelOptions model;  // the checkpoint, and how it runs
  // A model to compare it with; empty: the same checkpoint. Either way the reference's linears run
  // in floating point.
  std::string reference;
  PictureRequest picture;             // for each caption; its own caption is ignored
  std::vector<CaptionText> captions;  // none: default_captions()
  double min_psnr_db = kMinPsnrDb;    // mean over the judged pictures
  double min_snr_db = kMinSnrDb;      // mean of the first step's velocity
};

struct CertifiedFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;          // of the file as it was read
  std::string tensors_sha256;  // of its tensors alone, independent of metadata
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
  std::vector<CertifiedFile> files, reference_files;  // of the networks; empty if the same
  std::vector<CertifiedPictures> pictures;            // as report.images
  // Those whose reference is neither nearly one colour nor a card of text: only their PSNR decides.
  size_t judged_pictures = 0;
  Statistic judged_psnr_db;
  bool passed = false;
  std::vector<std::string> reasons;   // sentences: why it failed
  std::vector<std::string> warnings;  // sentences: what else deserves a look
  // Everything except the pictures, see octet.certify/1 in docs/json.md. `digest` is the SHA-256 of
  // the same without the entry "digest", compact and with sorted keys.
  std::string json, digest;
};

// Throws Error for what compare() refuses.
OCTET_API Certificate certify(const CertifyRequest& request,
                              const CompareCallbacks& callbacks = {});

// A self-contained page without scripts.
OCTET_API std::string certificate_page(const Certificate& certificate);

// Those in the folder "captions" of a model's folder, at most eight, evenly spaced; otherwise those
// built into the library.
OCTET_API std::vector<CaptionText> default_captions(const std::string& model);

// --- stamps ---

// The metadata entry of a safetensors file that holds a stamp.
inline constexpr const char* kStampKey = "octet.certificate";

struct CertificateStamp {
  std::string file;
  std::string digest, date, verdict;  // verdict: "pass" or "fail"
  double psnr_db = 0, snr_db = 0;     // means; NaN: equal
  bool weights_unchanged = false;     // the tensors are those that were certified
  std::string problem;                // why it cannot be read; the fields above are then unset
};

// Throws Error if the files of the model's networks cannot be stamped: GGUF files, links, and files
// in a folder that is not writable.
OCTET_API void check_takes_stamp(const CertifyRequest& request);

// Writes digest, date, verdict and main figures into each of them. Tensors keep every bit, and no
// file is ever half written. Throws Error if tensors are not the certified ones.
OCTET_API void stamp_checkpoint(const Certificate& certificate);

// The stamps in all files of a checkpoint, or of the networks in a model's folder. Reads the
// tensors of stamped files.
OCTET_API std::vector<CertificateStamp> find_stamps(const std::string& path);

}  // namespace octet
