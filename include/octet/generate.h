// Makes images from a caption.
//
//   octet::GenerateRequest request;
//   request.model = "ideogram-4";
//   request.caption = octet::read_caption("poster.json");
//   octet::generate(request, {}, [](const octet::Picture& picture) {
//     octet::write_picture("poster.png", picture);
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "octet/export.h"

namespace octet {

// What a step of denoising did to one image: F32 [tokens, channels].
struct LatentStep {
  int image = 0;
  int step = 0, steps = 0;          // the first is 1
  std::span<const float> velocity;  // that the step went along, guided
  std::span<const float> latent;    // where it led to
};

struct GenerateRequest {
  // A folder as Hugging Face lays out a pipeline; or the conditional transformer alone, a folder or
  // a file, which may hold both branches.
  std::string model;
  std::string base;           // such a folder again, for parts and weights that `model` lacks
  std::string unconditional;  // parts from elsewhere: their own files or folders, or a pipeline's
  std::string text_encoder;
  std::string vae;
  std::string tokenizer;           // tokenizer.json, or a folder with it; none: beside the others
  std::vector<std::string> loras;  // FILE[:strength[:cond|uncond|both]]
  // Keep the INT8 codes of a model that is not stored so, for the next time; with LoRAs always.
  bool cache_weights = false;
  std::string fallback;      // another model, for parts that neither `model` nor these have
  std::string caption;       // JSON text, see octet/caption.h
  bool any_caption = false;  // warn of its errors, and run it all the same
  std::string caption_name = "caption";  // what begins a sentence about it
  std::string size = "1024x1024";
  std::string preset = "quality";  // quality, default, turbo, or their official names
  int steps = 0;                   // 0: the preset's
  // None: the preset's; one for all steps, or one for each. Where all are 1 the unconditional
  // transformer does not run, and need not be there.
  std::vector<float> guidance;
  // Of the first image; the others count on from it. Picture::seed as the seed of a request gives
  // that picture alone, to the last bit.
  uint64_t seed = 0;
  // In place of the seed's noise, for comparisons: a safetensors file with one tensor, F32 [tokens,
  // channels] (or [1, tokens, channels], as diffusers takes it), for one image.
  std::string noise_file;
  int images = 1;
  std::string device = "auto";
  int threads = 0;
  std::string tune = "missing";         // off, missing, all
  std::string dtype = "bf16";           // of activations: bf16, f32
  std::string linears = "int8";         // of the transformers' large ones: int8, float
  bool require_int8 = false;            // an Error when they would not run in native INT8
  std::string convention = "official";  // or diffusers: where these two differ
  std::function<void(const LatentStep&)> on_latent;  // for comparisons: called after each step
};

struct GenerateStep {
  std::string stage;            // "text", "load", "denoise", "decode"
  std::string unit;             // "layers", "bytes", "steps", "images"
  int64_t done = 0, total = 0;  // in this unit
  double seconds = 0;           // of the last step, when denoising
};

// False ends the work: images that are denoised by then are still decoded and handed over, and
// generate() throws an Error that says so.
using OnGenerateStep = std::function<bool(const GenerateStep&)>;

// What the linears of a class of layers ran on.
struct KernelUse {
  std::string layer;   // "attention.qkv"
  std::string path;    // "int8": native; "bf16" or "f32": unquantized
  std::string kernel;  // of the INT8 path
  int64_t launches = 0;
  double us = 0;  // of all launches
  double tops = 0;
};

struct OpShare {
  std::string op;  // "gemm", "attention", ...
  int64_t calls = 0;
  double us = 0;
};

struct GenerateReport {
  std::string device;
  int width = 0, height = 0;
  std::string caption;  // as the model got it
  int text_tokens = 0;
  int steps = 0;
  std::string checkpoint;  // a fingerprint of all weights that were read
  std::vector<KernelUse> kernels;
  std::vector<OpShare> ops;
  double text_s = 0, load_s = 0, denoise_s = 0, decode_s = 0;
  uint64_t peak_bytes = 0;  // of the device's memory, most that was taken
};

struct Picture {
  int index = 0;      // of the images of the request
  uint64_t seed = 0;  // its own; not with a noise_file
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top
  // What a file keeps beside the pixels: caption, seed, preset, checkpoint, kernels.
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Steps, guidance and times that Ideogram publishes; all of them run the same weights.
struct PresetInfo {
  std::string name;           // "quality"
  std::string official_name;  // "V4_QUALITY_48"
  int steps = 0;
};
OCTET_API std::vector<PresetInfo> list_presets();

// Throws Error with one sentence for a bad request, model or caption; before anything is loaded
// where that can be known. A size, preset or guidance that is none is an InvalidRequest; see
// octet/invalid_request.h. Each picture is handed over when it is ready.
OCTET_API GenerateReport generate(const GenerateRequest& request, const OnGenerateStep& on_step,
                                  const std::function<void(const Picture&)>& on_picture);

// As PNG. The file appears whole or not at all.
OCTET_API void write_picture(const std::string& path, const Picture& picture);

}  // namespace octet
