// Benchmark of whole pictures: caption, text encoder, denoising, decoding. Without a model the
// weights are random numbers in the published shapes; the time does not depend on their values.
//
//   octet::E2eBenchRequest request;
//   request.steps = 20;
//   octet::E2eBench bench = octet::bench_e2e(request);
//   std::cout << bench.median.whole_s << " s per picture\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/model_options.h"
#include "octet/picture.h"
#include "octet/tools/power_use.h"
#include "octet/tools/steadiness.h"

namespace octet {

struct E2eBenchRequest {
  // Empty: random weights. Otherwise a model's folder, whose parts are kept wherever there is room;
  // the picture uses its first caption (default_captions()).
  std::string model;
  PictureSize size = {1024, 1024};
  int steps = 48;
  // Of random weights:
  int64_t text_tokens = 512;  // 1 to 2048
  int64_t layers = 34;        // of each network; fewer to shorten it
  std::string family = "ideogram4";

  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::automatic;
  Tuning tuning = Tuning::missing;
  bool require_int8 = false;
  int pictures = 3;  // measured, 1 to 100, after one that is not counted
};

// Seconds spent in each stage of a picture.
struct E2eTimes {
  double text_s = 0;     // the caption through the text encoder
  double prepare_s = 0;  // preparing the caption and, once, the schedule's times for the networks
  double denoise_s = 0;
  double decode_s = 0;
  double whole_s = 0;  // by the host's clock, from the request to the picture
};

struct E2eBench {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  std::string model;   // empty: random weights
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::floating;  // what ran
  PictureSize size;
  int steps = 0, text_tokens = 0;
  std::string places;              // where the parts are, see RenderReport
  std::vector<E2eTimes> pictures;  // in the order they were made
  E2eTimes median;                 // of each column of these
  Steadiness steadiness;           // of the whole
  uint64_t peak_bytes = 0;         // peak device memory over all pictures
  PowerUse power;                  // over all of them

  double ms_per_step() const { return steps > 0 ? 1e3 * median.denoise_s / steps : 0; }
  double joules_per_picture() const {
    return pictures.empty() ? 0 : power.joules / static_cast<double>(pictures.size());
  }
};

// Called with the current phase and its progress; phases run one after the other.
using E2eProgress = std::function<void(const std::string& phase, int done, int total)>;

OCTET_API E2eBench bench_e2e(const E2eBenchRequest& request, const E2eProgress& progress = {});

}  // namespace octet
