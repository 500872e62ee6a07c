// Results as JSON for programs and as text for people.
//
//   const octet::GemmBench bench = octet::bench_gemm(request);
//   octet::write_text_file("gemm.json", octet::to_json(bench));
//   std::cout << octet::to_text(bench);
//
// to_json() gives a whole document: two spaces of indentation, a line break at the end, and the
// name and version of its schema as the first field (docs/json.md). It is UTF-8 even where file
// names are not. to_text() gives whole lines, at most about 100 columns wide.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/caption.h"
#include "octet/devices.h"
#include "octet/export.h"
#include "octet/generate.h"
#include "octet/inspect.h"
#include "octet/local_models.h"
#include "octet/pull.h"
#include "octet/quantize.h"
#include "octet/tools/audit.h"
#include "octet/tools/bench.h"
#include "octet/tools/bench_e2e.h"
#include "octet/tools/bench_step.h"
#include "octet/tools/certify.h"
#include "octet/tools/compare.h"
#include "octet/tools/config.h"
#include "octet/tools/map.h"
#include "octet/tools/plan.h"
#include "octet/tools/predict.h"
#include "octet/tools/tune.h"
#include "octet/words.h"

namespace octet {

// How much of a result a text has: its main figure or file names, a page, or everything.
enum class Detail : uint8_t { brief, usual, full };
template <>
struct Words<Detail> {
  static constexpr Word<Detail> list[] = {
      {Detail::brief, "brief"}, {Detail::usual, "usual"}, {Detail::full, "full"}};
};

// --- devices and kernels ---

OCTET_API std::string to_json(const std::vector<DeviceInfo>& devices);
OCTET_API std::string to_text(const std::vector<DeviceInfo>& devices);

OCTET_API std::string to_json(const TuneReport& report);
OCTET_API std::string to_text(const TuneReport& report);

OCTET_API std::string to_json(const GemmBench& bench);
OCTET_API std::string to_text(const GemmBench& bench);

OCTET_API std::string to_json(const LinearComparison& comparison);
OCTET_API std::string to_text(const LinearComparison& comparison);

OCTET_API std::string to_json(const QuantizeBench& bench);
OCTET_API std::string to_text(const QuantizeBench& bench);

OCTET_API std::string to_json(const StepBench& bench);
OCTET_API std::string to_text(const StepBench& bench);

OCTET_API std::string to_json(const E2eBench& bench);
OCTET_API std::string to_text(const E2eBench& bench);

OCTET_API std::string to_json(const DeploymentMap& map);
OCTET_API std::string to_text(const DeploymentMap& map);

// Everything that is predicted for some cards.
struct Prediction {
  int text_tokens = 0;
  std::vector<CardPrediction> cards;
  std::vector<PredictedMemory> memory;
  std::vector<PublicFigure> figures;
  std::optional<LeaveOneOut> check;
};
OCTET_API std::string to_json(const Prediction& prediction);
OCTET_API std::string to_text(const Prediction& prediction, Detail detail = Detail::usual);

OCTET_API std::string to_json(const MemoryPlans& plans);
OCTET_API std::string to_text(const MemoryPlans& plans, Detail detail = Detail::usual);

// --- checkpoints ---

OCTET_API std::string to_json(const PullReport& report);
OCTET_API std::string to_text(const PullReport& report, Detail detail = Detail::usual);

// Models on this machine, and the small one that came with the program, if it is there.
struct ModelList {
  std::vector<LocalModel> models;
  std::optional<LocalModel> small;
  std::string cache_dir;  // where pulled ones are
};
OCTET_API std::string to_json(const ModelList& list);
OCTET_API std::string to_text(const ModelList& list, Detail detail = Detail::usual);

OCTET_API std::string to_json(const RemovedModel& removed);
OCTET_API std::string to_text(const RemovedModel& removed, Detail detail = Detail::usual);

OCTET_API std::string to_json(const Config& config);
OCTET_API std::string to_text(const Config& config);

// What is known about a file or a folder.
struct Inspection {
  std::optional<CheckpointSummary> checkpoint;
  ModelSummary model;
  std::vector<CertificateStamp> stamps;
};
OCTET_API std::string to_json(const Inspection& inspection);
OCTET_API std::string to_text(const Inspection& inspection, Detail detail = Detail::usual);

OCTET_API std::string to_json(const QuantizeReport& report);
OCTET_API std::string to_text(const QuantizeReport& report, const QuantizeRequest& request,
                              Detail detail = Detail::usual);

// --- pictures ---

OCTET_API std::string to_json(const CaptionReport& report);
OCTET_API std::string to_text(const CaptionReport& report, Detail detail = Detail::usual);

// What became of a caption.
struct RenderedCaption {
  std::string name, where;            // as in CaptionText
  std::string error;                  // why there are no pictures
  std::vector<std::string> pictures;  // files
  std::vector<uint64_t> seeds;
  std::vector<PictureLook> looks;
  std::optional<RenderReport> report;
};

// What was known before anything was loaded.
struct PlannedPictures {
  EngineInfo info;
  double step_ms = 0;  // predicted; 0: nobody knows
};
// Where weights go and what comes in each step, in lines.
OCTET_API std::string to_text(const PlannedPictures& planned);

// The pictures of one model, for one caption or several.
struct RenderedPictures {
  GenerateRequest request;
  std::vector<std::string> loras;  // as given
  std::vector<RenderedCaption> captions;
  std::optional<PlannedPictures> planned;  // none: no picture was begun
};
OCTET_API std::string to_json(const RenderedPictures& pictures);
OCTET_API std::string to_text(const RenderedPictures& pictures, Detail detail = Detail::full);

// A picture made by the small model.
struct DemoPicture {
  GenerateRequest request;
  RenderReport report;
  std::string file;
  std::vector<std::string> left_out;  // what of a plain text is not on it
  PlannedPictures planned;
};
OCTET_API std::string to_json(const DemoPicture& picture);

// Which kernels ran, how often and how fast, and where the time went. Detail::usual: the time and
// what ran, in one line.
OCTET_API std::string to_text(const RenderReport& report, Detail detail = Detail::full);

// Two models that were compared.
struct Comparison {
  CompareRequest request;
  std::vector<std::string> loras_a, loras_b;  // as given
  CompareReport report;
  std::vector<std::string> pictures;  // files
};
OCTET_API std::string to_json(const Comparison& comparison);
OCTET_API std::string to_text(const Comparison& comparison, Detail detail = Detail::usual);

// Its JSON is Certificate::json.
OCTET_API std::string to_text(const Certificate& certificate, Detail detail = Detail::usual);

// --- audits ---

OCTET_API std::string to_json(const AuditReport& report);
OCTET_API std::string to_text(const AuditReport& report, Detail detail = Detail::usual);

}  // namespace octet
