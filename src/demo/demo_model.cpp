#include "demo/demo_model.h"

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/work_folder.h"
#include "demo/demo_weights.h"
#include "formats/json.h"
#include "models/tokenizer/byte_tokenizer.h"

namespace octet::demo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Written last: which model this is, and the bytes of each of its files.
constexpr const char* kManifest = "octet_demo.json";
constexpr int kRevision = 1;  // another number for every change of what is written

void write_file(const fs::path& path, const std::string& text) {
  AtomicFile file(path.string());
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void write_json(const fs::path& path, const Json& value) { write_file(path, value.dump(2) + "\n"); }

// --- the parts ---

Json index() {
  const auto part = [](const char* library, const char* type) {
    return Json::array({library, type});
  };
  return {{"_class_name", "Ideogram4Pipeline"},
          {"scheduler", part("diffusers", "FlowMatchEulerDiscreteScheduler")},
          {"text_encoder", part("transformers", "Qwen3VLModel")},
          {"tokenizer", part("transformers", "Qwen2Tokenizer")},
          {"transformer", part("diffusers", "Ideogram4Transformer2DModel")},
          {"unconditional_transformer", part("diffusers", "Ideogram4Transformer2DModel")},
          {"vae", part("diffusers", "AutoencoderKLFlux2")}};
}

Json scheduler_config() {
  return {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
          {"num_train_timesteps", 1000},
          {"shift", 1.0},
          {"use_dynamic_shifting", false}};
}

Json transformer_config() {
  const ideogram4::DitConfig config = demo_dit_config();
  return {{"_class_name", "Ideogram4Transformer2DModel"},
          {"in_channels", config.latent_channels},
          {"num_layers", config.layers},
          {"attention_head_dim", config.head_dim},
          {"num_attention_heads", config.heads},
          {"intermediate_size", config.ffn},
          {"adaln_dim", config.modulation},
          {"llm_features_dim", config.text_features},
          {"rope_theta", static_cast<int64_t>(config.rope_theta)},
          {"mrope_section", config.mrope_section},
          {"norm_eps", 1e-5}};
}

// The vision tower is as small as its class allows; the model never looks at images.
Json text_encoder_config(const qwen3::TextConfig& config) {
  const Json rope = {{"rope_type", "default"},
                     {"rope_theta", config.rope_theta},
                     {"mrope_section", {4, 2, 2}},
                     {"mrope_interleaved", true}};
  const Json text = {{"model_type", "qwen3_vl_text"},
                     {"vocab_size", config.vocabulary},
                     {"hidden_size", config.hidden},
                     {"intermediate_size", config.ffn},
                     {"num_hidden_layers", config.layers},
                     {"num_attention_heads", config.heads},
                     {"num_key_value_heads", config.kv_heads},
                     {"head_dim", config.head_dim},
                     {"hidden_act", "silu"},
                     {"attention_bias", false},
                     {"max_position_embeddings", 4096},
                     {"rms_norm_eps", 1e-6},
                     {"rope_parameters", rope}};
  const Json vision = {{"model_type", "qwen3_vl_vision"},
                       {"depth", 1},
                       {"hidden_size", 8},
                       {"intermediate_size", 8},
                       {"num_heads", 2},
                       {"out_hidden_size", config.hidden},
                       {"num_position_embeddings", 4},
                       {"deepstack_visual_indexes", {0}}};
  return {{"architectures", {"Qwen3VLModel"}},
          {"model_type", "qwen3_vl"},
          {"dtype", "bfloat16"},
          {"text_config", text},
          {"vision_config", vision}};
}

Json vae_config() {
  const flux2_vae::VaeConfig config = demo_vae_config();
  const std::vector<std::string> down(config.channels.size(), "DownEncoderBlock2D");
  const std::vector<std::string> up(config.channels.size(), "UpDecoderBlock2D");
  return {{"_class_name", "AutoencoderKLFlux2"},
          {"in_channels", 3},
          {"out_channels", 3},
          {"latent_channels", config.latent_channels},
          {"block_out_channels", config.channels},
          {"down_block_types", down},
          {"up_block_types", up},
          {"layers_per_block", config.resnets - 1},
          {"norm_num_groups", config.groups},
          {"act_fn", "silu"},
          {"batch_norm_eps", 1e-4},
          {"patch_size", {2, 2}},
          {"sample_size", 512},
          {"mid_block_add_attention", config.mid_attention},
          {"use_quant_conv", true},
          {"use_post_quant_conv", config.post_quant_conv}};
}

// What Qwen's template does with a message of one text.
constexpr const char* kChatTemplate =
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{- message.content }}{%- else %}"
    "{%- for part in message.content %}{%- if 'text' in part %}{{- part.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

// Rows of the embedding, some of which belong to no token, as in Qwen.
int64_t vocabulary_of(const std::string& tokenizer) {
  const auto root = parse_json(tokenizer, "the demo model's tokenizer");
  const size_t tokens = root["model"]["vocab"].size() + root["added_tokens"].size();
  return static_cast<int64_t>((tokens + 63) / 64 * 64);
}

void write_parts(const fs::path& folder) {
  for (const char* part : {"scheduler", "transformer", "unconditional_transformer", "text_encoder",
                           "tokenizer", "vae"}) {
    fs::create_directory(folder / part);
  }
  const std::string weights = "diffusion_pytorch_model.safetensors";
  write_json(folder / "model_index.json", index());
  write_json(folder / "scheduler" / "scheduler_config.json", scheduler_config());
  write_json(folder / "transformer" / "config.json", transformer_config());
  write_demo_transformer((folder / "transformer" / weights).string(), DemoPart::transformer);
  write_json(folder / "unconditional_transformer" / "config.json", transformer_config());
  write_demo_transformer((folder / "unconditional_transformer" / weights).string(),
                         DemoPart::unconditional);
  const std::string tokenizer = tokenizer::make_byte_tokenizer_json();
  write_file(folder / "tokenizer" / "tokenizer.json", tokenizer);
  write_json(folder / "tokenizer" / "tokenizer_config.json", {{"tokenizer_class", "Qwen2Tokenizer"},
                                                              {"eos_token", "<|im_end|>"},
                                                              {"pad_token", "<|endoftext|>"},
                                                              {"unk_token", nullptr},
                                                              {"chat_template", kChatTemplate}});
  const qwen3::TextConfig text = demo_text_config(vocabulary_of(tokenizer));
  write_json(folder / "text_encoder" / "config.json", text_encoder_config(text));
  write_demo_text_encoder((folder / "text_encoder" / "model.safetensors").string(), text);
  write_json(folder / "vae" / "config.json", vae_config());
  write_demo_vae((folder / "vae" / weights).string());
}

// --- the folder ---

void write_manifest(const fs::path& folder) {
  Json files = Json::object();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).generic_string()] = entry.file_size();
  }
  write_json(folder / kManifest, {{"revision", kRevision}, {"files", files}});
}

// Complete and of this revision. What somebody has done to it since does not throw.
bool is_current(const fs::path& folder) {
  try {
    const auto manifest = read_json_file((folder / kManifest).string());
    if (manifest.at("revision") != kRevision) return false;
    for (const auto& [name, bytes] : manifest.at("files").items()) {
      std::error_code error;
      if (fs::file_size(folder / name, error) != bytes.get<uintmax_t>() || error) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace

void write_demo_model(const std::string& folder) try {
  // Without a slash at its end, which would put the new one inside of it.
  fs::path target = fs::absolute(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  WorkFolder::remove_abandoned(target);
  if (is_current(target)) return;
  fs::create_directories(target.parent_path());
  const WorkFolder made(target), old(target);
  const fs::path whole = made.path() / "demo";
  fs::create_directory(whole);
  write_parts(whole);
  write_manifest(whole);

  constexpr int kAttempts = 8;  // others may be doing the same
  std::error_code error;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fs::rename(whole, target, error);  // takes the place of nothing or of an empty folder alone
    if (!error || is_current(target)) return;
    check(fs::exists(target / kManifest) || !fs::exists(target) || is_current(target),
          "{}: is there and is not a demo model; remove it, or name another folder", folder);
    std::error_code ignored;  // somebody else may have moved it first
    fs::rename(target, old.path() / std::to_string(attempt), ignored);
  }
  fail("{}: the demo model cannot be put there: {}", folder, error.message());
} catch (const fs::filesystem_error& error) {
  fail("{}: the demo model cannot be written: {}", folder, error.code().message());
}

}  // namespace octet::demo
