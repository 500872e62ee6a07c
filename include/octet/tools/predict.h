// Predicts other cards with an analytic model, fitted to the one card that was measured. Everything
// here is predicted and must be shown as such.
//
//   octet::PredictRequest request;
//   request.cards = {"rtx3090", "rtx4090"};
//   for (const octet::CardPrediction& card : octet::predict_cards(request)) { ... }
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/tools/gemm_shape.h"
#include "octet/tools/heat_map.h"

namespace octet {

struct PredictRequest {
  // From known_cards(), or as drivers call them ("NVIDIA A100-SXM4-80GB"), each once; empty, and
  // no files: all.
  std::vector<std::string> cards;
  std::vector<std::string> card_files;         // of users' cards: docs/deployment-map.md
  std::vector<GemmShape> shapes;               // linears of any model, besides those of `sizes`
  std::vector<int> sizes = {768, 1024, 2048};  // pixels of a square image
  int text_tokens = 512;                       // of the conditional branch
};

// One linear of the measured family, from bf16 to bf16, so including the quantization of its
// activations; under load, at the clock that the power limit allows. 0: the card cannot run it.
struct PredictedLinear {
  GemmShape shape;
  std::string layer;  // "attention.qkv"; empty: a shape of the request
  int size = 0;       // pixels, or 0; m is the number of tokens of the unconditional branch
  double int8_us = 0, bf16_us = 0, fp8_us = 0, nf4_us = 0, fake_us = 0;
  double int8_tops = 0, bf16_tops = 0;  // of the product alone
  double int8_ghz = 0, bf16_ghz = 0;    // the clocks
  std::string tile;                     // from Octet's table
  std::string best;                     // int8, bf16, fp8
};

// A denoising step of both networks, by path: linears in that format, bf16 attention;
// int8_attention: INT8 linears and INT8 scores. 0: the card does not support it.
struct PredictedStep {
  int size = 0;  // pixels
  double int8_ms = 0, int8_attention_ms = 0, bf16_ms = 0, fp8_ms = 0, nf4_ms = 0, fake_ms = 0;
  double linears_ms = 0, attention_ms = 0, rows_ms = 0;  // of int8_ms
  std::string best;                                      // int8, bf16, fp8
};

// The steps of a picture, without text encoder and decoder.
struct PredictedPicture {
  int size = 0, steps = 0;
  double int8_s = 0, bf16_s = 0, fp8_s = 0, nf4_s = 0, fake_s = 0;
};

// Device memory of a picture at a size: both networks at once, and the conditional one alone while
// the other stays in host memory (or is not used).
struct PredictedMemory {
  std::string path;  // int8, bf16, fp8, nf4, fake
  int size = 0;
  double both_bytes = 0, one_bytes = 0;
  std::vector<int> fits_both, fits_one;  // of kMapCards, less kMapReserve (octet/tools/map.h)
};

struct CardPrediction {
  std::string card;  // "rtx3090"
  std::string name;  // "NVIDIA GeForce RTX 3090"
  double memory_gib = 0;
  double host_gbs = 0;       // of copies from pinned memory of its host
  std::string kernels;       // the instruction Octet uses: "mma.sync", "wgmma"; empty: none
  std::string not_run;       // why Octet does not run on it; empty: it does
  bool is_measured = false;  // the card the model was fitted to
  // Constants of the card for which no public figure was found, by their names in
  // src/measure/predict/cards.json: "int8_mma".
  std::vector<std::string> estimates;
  std::vector<PredictedLinear> linears;
  std::vector<PredictedStep> steps;
  std::vector<PredictedPicture> pictures;  // of kMapPictureSteps
};

// A published figure, and what the model says.
struct PublicFigure {
  std::string what;    // "RTX 3090, bf16 GEMM"
  std::string source;  // URL
  std::string unit;
  double published = 0, predicted = 0;
  double error = 0;    // predicted / published - 1
  std::string remark;  // assumptions of the model, if the figure is from another kernel
};

// A figure of the measured card, predicted from a fit that leaves out all figures of its shape,
// except two times of the quantization alone, which are part of INT8 linears of 4096 rows. For a
// step, the fit leaves out all steps.
struct HeldOutFigure {
  std::string what;
  std::string unit;
  double measured = 0, predicted = 0;
  double error = 0;
};

struct LeaveOneOut {
  std::vector<HeldOutFigure> figures;
  double worst_linear = 0, worst_step = 0;  // largest |error|; worst_step: of whole steps
  double mean_linear = 0;                   // mean |error|
};

OCTET_API std::vector<std::string> known_cards();

// Throws InvalidRequest for an unknown card, listing the known ones, and Error for a size that is
// not a multiple of 16 from 256 to 2048, and for text tokens outside 0 to 8192.
OCTET_API std::vector<CardPrediction> predict_cards(const PredictRequest& request);

// By size; the same for every card.
OCTET_API std::vector<PredictedMemory> predict_memory(const std::vector<int>& sizes);

OCTET_API std::vector<PublicFigure> check_public_figures();

// Takes a few seconds: the model is fitted once per shape.
OCTET_API LeaveOneOut leave_one_out();

// Steps by card, size and path; colours are speeds relative to bf16.
OCTET_API HeatMap heat_map_of(const std::vector<CardPrediction>& cards);

}  // namespace octet
