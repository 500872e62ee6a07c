// Pictures: requests, results and reports. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "octet/model_options.h"
#include "octet/sentence.h"
#include "octet/words.h"

namespace octet {

struct PictureSize {
  int width = 0, height = 0;  // pixels
  bool operator==(const PictureSize&) const = default;
};

struct PictureRequest {
  std::string caption = {};              // JSON text, see octet/caption.h
  bool any_caption = false;              // run it despite errors, with warnings
  std::string caption_name = "caption";  // what messages call it
  // What the picture is guided away from, for models that take a negative prompt; empty: none.
  std::string negative = {};
  PictureSize size = {};    // 0 x 0: the model's default, EngineInfo::size
  std::string preset = {};  // in EngineInfo::presets, by either name; empty: the first
  int steps = 0;            // 0: the preset's
  // Empty: the preset's; one value for all steps, or one per step. A branch to which it
  // gives no weight does not run: at 1, only one branch does.
  std::vector<float> guidance = {};
  // Of the first image; the others count up from it. A request with Picture::seed as its seed gives
  // exactly that picture, to the last bit.
  uint64_t seed = 0;
  // Replaces the seed's noise, for one image and for comparisons: [tokens, channels].
  std::vector<float> noise = {};
  std::string noise_name = {};  // where it comes from, for the picture's metadata
  int images = 1;
  // Instead of the model's, for these pictures only; none: the model's own. Files that were used
  // once stay open, and weights that do not change stay as they are.
  std::optional<std::vector<Lora>> loras = {};
  // Ends the call with Cancelled, even if it has not begun or waits for its turn.
  std::stop_token stop = {};
};

// Steps, guidance and times defined by a model; all presets run the same weights.
struct PresetInfo {
  std::string name = {};           // "quality"
  std::string official_name = {};  // "V4_QUALITY_48"; may be empty
  int steps = 0;
};

struct LatentShape {
  int64_t tokens = 0, channels = 0;
  int steps = 0;  // denoising steps
  bool operator==(const LatentShape&) const = default;
};

// A text encoder's features of a caption: F32 [tokens, channels].
struct TextFeatures {
  int64_t tokens = 0, channels = 0;
  std::span<const float> values = {};
};

// The result of one denoising step of one image: F32 [tokens, channels].
struct LatentStep {
  int image = 0;
  int step = 0, steps = 0;               // the first is 1
  std::span<const float> velocity = {};  // of the step, all branches combined
  std::span<const float> latent = {};    // after the step
};

// A small, rough rendering of a latent.
struct Preview {
  int image = 0;
  int step = 0, steps = 0;
  int width = 0, height = 0;
  std::vector<uint8_t> rgb = {};  // rows from the top
};

// What a picture looks like, judged without its caption.
enum class PictureLook : uint8_t {
  ordinary,
  constant,  // nearly all of one colour
  // A flat background with a small block in the middle that is wider than high and crossed by as
  // many strokes as a line of letters: perhaps the card that a model paints when it refuses. A
  // heuristic, made without a sample of such a card.
  refusal,
};
template <>
struct Words<PictureLook> {
  static constexpr Word<PictureLook> list[] = {{PictureLook::ordinary, "ordinary"},
                                               {PictureLook::constant, "constant"},
                                               {PictureLook::refusal, "refusal"}};
};

struct Picture {
  int index = 0;      // among the images of the request
  uint64_t seed = 0;  // of this picture; unused with noise
  int width = 0, height = 0;
  std::vector<uint8_t> rgb = {};  // rows from the top
  PictureLook look = PictureLook::ordinary;
  // Stored in files along with the pixels: caption, seed, preset, checkpoint, kernels.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// --- the report ---

// How the linears of a class of layers ran.
struct KernelUse {
  std::string layer = {};  // "attention.qkv"
  std::string path =
      {};  // "int8": native; "bf16" or "f32": unquantized; "fake int8": Linears::fake
  std::string kernel = {};  // of the INT8 path
  int64_t launches = 0;     // 0: its result was reused from an earlier picture
  double us = 0;            // of all launches
  double tops = 0;
};

struct OpShare {
  std::string op = {};  // "gemm", "attention", ...
  int64_t calls = 0;
  double us = 0;
};

// How linears ran, by number of linears.
struct LinearCount {
  int int8 = 0;        // native INT8
  int protected_ = 0;  // large ones that the checkpoint keeps in floating point
  int kept = 0;        // small ones that the family keeps in floating point
  int floating = 0;    // large ones requested in floating point
  int fake = 0;        // large ones rounded to INT8 and multiplied in floating point
};

// A branch: one evaluation of a network within a step.
struct BranchUse {
  std::string name = {};     // "unconditional"
  std::string network = {};  // the one it evaluates
  int steps = 0;             // in which it ran, over all pictures
  double seconds = 0;        // its time in these steps
};

struct RenderReport {
  std::string device = {};
  int width = 0, height = 0;
  std::string caption = {};   // as passed to the model
  std::string negative = {};  // likewise; empty: none
  std::string preset = {};    // its name, even if the request has none
  int text_tokens = 0;
  int steps = 0;
  std::string checkpoint = {};    // a fingerprint of all weights
  LinearCount linears = {};       // of the networks
  LinearCount text_linears = {};  // of the text encoder, when it last ran
  std::string places = {};  // of the parts: "text_encoder streamed, transformer on the device, ..."
  // Steps of all pictures that a GPU replayed from a recording; kernels and ops cover the others.
  int recorded_steps = 0;
  std::vector<BranchUse> branches = {};  // those that ran, in the family's order
  std::vector<KernelUse> kernels = {};
  std::vector<OpShare> ops = {};
  bool text_cached = false;             // the caption was encoded for an earlier picture
  std::vector<Sentence> warnings = {};  // about the request, and a budget that was not kept
  double text_s = 0, load_s = 0, denoise_s = 0, decode_s = 0;
  double ahead_s = 0;       // for the text of a request that comes next, in none of the others
  uint64_t peak_bytes = 0;  // peak device memory
};

}  // namespace octet
