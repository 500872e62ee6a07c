// What a model is, and how it is to run: plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
  // floating point: what is often sold as INT8. No faster than `floating`; for comparisons.
  fake,
  // Each in INT8, unless the device's plan file says that it is faster in floating point: what
  // `octet tune` or `octet map` measured there. Without such plans as `int8`.
  automatic,
};
template <>
struct Words<Linears> {
  static constexpr Word<Linears> list[] = {{Linears::automatic, "auto"},
                                           {Linears::int8, "int8"},
                                           {Linears::floating, "float"},
                                           {Linears::fake, "fake"}};
};

// How the networks' attention is multiplied: its scores, q times k, and its values, v.
enum class AttentionMode : uint8_t {
  automatic,  // what is known to cost no quality: floating point, see docs/kernels/attention.md
  floating,
  int8,       // scores: codes with a scale for each row of each head; keys without their mean
  int8_full,  // values, too: codes with a scale for 128 keys of each head, and weights in 8 bits
};
template <>
struct Words<AttentionMode> {
  static constexpr Word<AttentionMode> list[] = {{AttentionMode::automatic, "auto"},
                                                 {AttentionMode::floating, "bf16"},
                                                 {AttentionMode::int8, "int8"},
                                                 {AttentionMode::int8_full, "int8-full"}};
};

// Which GEMM kernels are chosen by measuring.
enum class Tuning : uint8_t {
  off,      // none: the plan file or an estimate decides
  missing,  // those that the plan file lacks
  all,      // all, once per process
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

// Where the weights of a part are between two uses.
enum class Residency : uint8_t {
  device,    // in the device's memory
  host,      // ready for the device in (pinned) host memory
  streamed,  // in their files: read for each use, and released
};
template <>
struct Words<Residency> {
  static constexpr Word<Residency> list[] = {
      {Residency::device, "device"}, {Residency::host, "host"}, {Residency::streamed, "stream"}};
};

// A LoRA that is merged into the networks.
struct Lora {
  std::string file;
  float strength = 1;
  // Names of the networks that it changes ("conditional", or "all"); none: those that the file
  // names, or the first where it names none.
  std::vector<std::string> networks;
  bool operator==(const Lora&) const = default;
};

struct KeepRule {
  std::string part;  // "text_encoder", "transformer", ...; empty: all
  Residency where = Residency::device;
};

// What a model is.
struct ModelOptions {
  // A folder as Hugging Face lays out a pipeline, owner/name of one that was pulled; or the
  // transformer alone: a folder or a file, which may hold both networks.
  std::string model;
  std::string base;      // such a folder again, for parts and weights that `model` lacks
  std::string fallback;  // another, for parts that neither has
  // Parts from elsewhere, by name: "unconditional_transformer", "text_encoder", "vae", "tokenizer".
  // Their files or folders, or a pipeline that has them.
  std::map<std::string, std::string> parts;
  std::vector<Lora> loras;
  // False: no picture is guided, and the network that guidance takes need not be there.
  bool guided = true;

  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // of the host; 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  AttentionMode attention = AttentionMode::automatic;
  // The linears of the text encoder. In INT8 they take half the memory, and the features that the
  // networks are given are slightly others; see docs/generate.md.
  Linears text_encoder_linears = Linears::floating;
  Tuning tuning = Tuning::missing;
  Convention convention = Convention::official;
  // An Error when a large linear that its checkpoint does not protect ran as anything but native
  // INT8.
  bool require_int8 = false;
  // Keep the INT8 codes of a model that is not stored so on disk, for the next time; of one that is
  // loaded with LoRAs always.
  bool cache_weights = false;

  std::vector<KeepRule> keep;  // the last that fits counts; parts without one: by free memory
  uint64_t max_memory = 0;     // bytes of the device's that may be taken; 0: what is free
};

}  // namespace octet
