// Which model to load and how to run it: plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/words.h"

namespace octet {

enum class Activations : uint8_t { bf16, f32 };  // type of activations, and of weights not in INT8
template <>
struct Words<Activations> {
  static constexpr Word<Activations> list[] = {{Activations::bf16, "bf16"},
                                               {Activations::f32, "f32"}};
};

// The large linears of the networks.
enum class Linears : uint8_t {
  int8,
  floating,
  // Weights and activations are rounded to INT8 as for `int8`, then dequantized and multiplied in
  // floating point: what is often called INT8. No faster than `floating`; for comparisons.
  fake,
  // Each in INT8, unless the device's plan file says that it is faster in floating point, as
  // measured by `octet tune` or `octet map`. Without such plans the same as `int8`.
  automatic,
};
template <>
struct Words<Linears> {
  static constexpr Word<Linears> list[] = {{Linears::automatic, "auto"},
                                           {Linears::int8, "int8"},
                                           {Linears::floating, "float"},
                                           {Linears::fake, "fake"}};
};

// Precision of the networks' attention: its scores, q times k, and its values, v.
enum class AttentionMode : uint8_t {
  automatic,  // known to cost no quality: floating point, see docs/kernels/attention.md
  floating,
  int8,       // scores: codes with a scale per row and head; keys minus their mean
  int8_full,  // values, too: codes with a scale per 128 keys of a head, and weights in 8 bits
};
template <>
struct Words<AttentionMode> {
  static constexpr Word<AttentionMode> list[] = {{AttentionMode::automatic, "auto"},
                                                 {AttentionMode::floating, "bf16"},
                                                 {AttentionMode::int8, "int8"},
                                                 {AttentionMode::int8_full, "int8-full"}};
};

// Which GEMM kernels are chosen by measurement.
enum class Tuning : uint8_t {
  off,      // none: by the plan file, plans that come with the library, or an estimate
  missing,  // those missing from the plan file: between the steps of pictures, else at first use
  all,      // all, once per process, at first use
};
template <>
struct Words<Tuning> {
  static constexpr Word<Tuning> list[] = {
      {Tuning::off, "off"}, {Tuning::missing, "missing"}, {Tuning::all, "all"}};
};

// Whose arithmetic is followed where the public implementations differ.
enum class Convention : uint8_t { official, diffusers };
template <>
struct Words<Convention> {
  static constexpr Word<Convention> list[] = {{Convention::official, "official"},
                                              {Convention::diffusers, "diffusers"}};
};

// Where the weights of a part are kept between uses.
enum class Residency : uint8_t {
  device,    // in device memory
  host,      // in (pinned) host memory, ready for the device
  streamed,  // in their files: read for each use, then released
};
template <>
struct Words<Residency> {
  static constexpr Word<Residency> list[] = {
      {Residency::device, "device"}, {Residency::host, "host"}, {Residency::streamed, "stream"}};
};

// A LoRA to merge into the networks.
struct Lora {
  std::string file = {};
  float strength = 1;
  // Names of the networks it changes ("conditional", or "all"); none: those named in the file, or
  // the first if it names none.
  std::vector<std::string> networks = {};
  bool operator==(const Lora&) const = default;
};

// "a.safetensors", "a.safetensors:0.8", "a.safetensors:-1:both", "a.safetensors:uncond". Networks
// are given by a name or an alias that some family knows ("conditional", "cond"), "all" or "both".
// Strength and networks come last and contain neither slash nor backslash, so a path may contain
// colons. Throws InvalidRequest for a strength that is not a number within bounds, and for an empty
// path.
OCTET_API Lora parse_lora(const std::string& text);
OCTET_API std::string to_string(const Lora& lora);  // "style.safetensors:0.8:cond"

struct KeepRule {
  std::string part = {};  // "text_encoder", "transformer", ...; empty: all
  Residency where = Residency::device;
};

// The model and how it runs.
struct ModelOptions {
  // A folder in Hugging Face's pipeline layout, or owner/name of a pulled one; or only the
  // networks: a folder or a file, which may contain several.
  std::string model = {};
  std::string base = {};      // another such folder, for parts and weights that `model` lacks
  std::string fallback = {};  // a third, for parts that neither has
  // Parts from elsewhere, by name: "unconditional_transformer", "text_encoder", "vae", "tokenizer".
  // Values are their files or folders, or a pipeline that has them.
  std::map<std::string, std::string> parts = {};
  std::vector<Lora> loras = {};
  // False: no picture is guided, and the network that only guidance needs may be missing.
  bool guided = true;

  // auto, ref, cpu, cuda[:i]; or two that share a picture, "cuda:0,cuda:1", each with the networks
  // of its branches
  std::string device = "auto";
  int threads = 0;  // of the host, for each device; 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::automatic;
  // The linears of the text encoder. In INT8 they take half the memory and give slightly different
  // features; see docs/generate.md.
  Linears text_encoder_linears = Linears::floating;
  Tuning tuning = Tuning::missing;
  Convention convention = Convention::official;
  // Error if a large linear that its checkpoint does not protect did not run in native INT8.
  bool require_int8 = false;
  // Cache the INT8 codes of a model that is not stored in INT8 on disk, for later runs; with LoRAs
  // they are always cached.
  bool cache_weights = false;

  std::vector<KeepRule> keep = {};  // the last match counts; other parts go by free memory
  uint64_t max_memory = 0;          // bytes of each device's memory to use; 0: what is free
};

}  // namespace octet
