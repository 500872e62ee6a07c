// The numbers that describe a text tower of Qwen3-VL: text_encoder/config.json, its text_config
// where it has one. An absent key has the value of the published model, but for the heads, which
// follow from one another, and rope_theta, which must be there.
#pragma once

#include <cstdint>
#include <string>

namespace octet::qwen3 {

struct TextConfig {
  int64_t hidden = 4096;
  int64_t layers = 36;
  int64_t heads = 32;
  int64_t kv_heads = 8;
  int64_t head_dim = 128;
  int64_t ffn = 12288;
  int64_t vocabulary = 151936;
  double rope_theta = 5e6;
  float norm_eps = 1e-6f;
};

TextConfig read_text_config(const std::string& path);

}  // namespace octet::qwen3
