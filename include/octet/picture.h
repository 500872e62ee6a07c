// Pictures: what is asked for, what is made, and what is said about it. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "octet/model_options.h"

namespace octet {

struct PictureSize {
  int width = 0, height = 0;  // pixels
  bool operator==(const PictureSize&) const = default;
};

struct PictureRequest {
  std::string caption;                   // JSON text, see octet/caption.h
  bool any_caption = false;              // warn of its errors, and run it all the same
  std::string caption_name = "caption";  // what begins a sentence about it
  // What the picture is led away from, for models that take such a prompt; empty: none.
  std::string negative;
  PictureSize size;    // 0 x 0: the model's own, EngineInfo::size
  std::string preset;  // of EngineInfo::presets, by either name; empty: the first
  int steps = 0;       // 0: the preset's
  // None: the preset's; one for all steps, or one for each. A branch that it gives no weight does
  // not run: where all are 1, there is one alone.
  std::vector<float> guidance;
  // Of the first image; the others count on from it. Picture::seed as the seed of a request gives
  // that picture alone, to the last bit.
  uint64_t seed = 0;
  // In place of the seed's, for one image and for comparisons: [tokens, channels].
  std::vector<float> noise;
  std::string noise_name;  // where it comes from, for the picture's metadata
  int images = 1;
  // In place of the model's, for these pictures alone; none: the model's own. Files that were used
  // once stay open, and weights that no change concerns stay as they are.
  std::optional<std::vector<Lora>> loras;
  // Ends the call with Cancelled, also one that has not begun or waits for its turn.
  std::stop_token stop;
};

// Steps, guidance and times that go with a model; all of them run the same weights.
struct PresetInfo {
  std::string name;           // "quality"
  std::string official_name;  // "V4_QUALITY_48"; may be empty
  int steps = 0;
};

struct LatentShape {
  int64_t tokens = 0, channels = 0;
  int steps = 0;  // that lead to it
  bool operator==(const LatentShape&) const = default;
};

// What a text encoder made of a caption: F32 [tokens, channels].
struct TextFeatures {
  int64_t tokens = 0, channels = 0;
  std::span<const float> values;
};

// What a step of denoising did to one image: F32 [tokens, channels].
struct LatentStep {
  int image = 0;
  int step = 0, steps = 0;          // the first is 1
  std::span<const float> velocity;  // that the step went along, of all branches
  std::span<const float> latent;    // where it led to
};

// A small, rough picture of a latent.
struct Preview {
  int image = 0;
  int step = 0, steps = 0;
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top
};

// What can be told of a picture without knowing what was asked for.
enum class PictureLook : uint8_t {
  ordinary,
  constant,  // nearly all of it has one colour
  // A flat background with a small block in the middle that is wider than high and cut by as many
  // strokes as a line of letters: perhaps the card that a model paints in place of what it refuses.
  // A guess, made without a sample of such a card.
  refusal,
};

struct Picture {
  int index = 0;      // of the images of the request
  uint64_t seed = 0;  // its own; not with noise
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top
  PictureLook look = PictureLook::ordinary;
  // What a file keeps beside the pixels: caption, seed, preset, checkpoint, kernels.
  std::vector<std::pair<std::string, std::string>> metadata;
};

// --- the report ---

// What the linears of a class of layers ran on.
struct KernelUse {
  std::string layer;     // "attention.qkv"
  std::string path;      // "int8": native; "bf16" or "f32": unquantized; "fake int8": Linears::fake
  std::string kernel;    // of the INT8 path
  int64_t launches = 0;  // 0: its result was kept from an earlier picture
  double us = 0;         // of all launches
  double tops = 0;
};

struct OpShare {
  std::string op;  // "gemm", "attention", ...
  int64_t calls = 0;
  double us = 0;
};

// How linears ran, by number of linears.
struct LinearCount {
  int int8 = 0;        // native INT8
  int protected_ = 0;  // large ones that their checkpoint keeps in floating point
  int kept = 0;        // small ones, which the family keeps there
  int floating = 0;    // large ones that were asked for in floating point
  int fake = 0;        // large ones that were rounded to INT8, and multiplied in floating point
};

// A branch: one evaluation of a network within a step.
struct BranchUse {
  std::string name;     // "unconditional"
  std::string network;  // that it evaluates
  int steps = 0;        // of all pictures, in which it ran
  double seconds = 0;   // that these took
};

struct RenderReport {
  std::string device;
  int width = 0, height = 0;
  std::string caption;   // as the model got it
  std::string negative;  // likewise; empty: none
  std::string preset;    // its name, also where the request has none
  int text_tokens = 0;
  int steps = 0;
  std::string checkpoint;    // a fingerprint of all weights
  LinearCount linears;       // of the networks
  LinearCount text_linears;  // of the text encoder, when it last ran
  std::string places;  // of the parts: "text_encoder streamed, transformer on the device, ..."
  // Steps of all pictures that a GPU ran as they were recorded; kernels and ops are of the others.
  int recorded_steps = 0;
  std::vector<BranchUse> branches;  // that ran, in their order
  std::vector<KernelUse> kernels;
  std::vector<OpShare> ops;
  bool text_cached = false;           // the caption was encoded for an earlier picture
  std::vector<std::string> warnings;  // sentences about the request
  double text_s = 0, load_s = 0, denoise_s = 0, decode_s = 0;
  uint64_t peak_bytes = 0;  // of the device's memory, the most that was taken
};

}  // namespace octet
