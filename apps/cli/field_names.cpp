#include "field_names.h"

#include <algorithm>

namespace octet::cli {
namespace {

struct FieldName {
  std::string_view field;
  std::string_view flag;       // whose command this is for
  std::string_view said = {};  // in its place; empty: the flag
};

// Of several rows for a field, the first whose flag the command has; else the first, whose flag
// another command has.
constexpr FieldName kFieldNames[] = {
    // What a model is.
    {"model", "--model"},
    {"model", "A", "A or B"},
    {"model", "CHECKPOINT", "the checkpoint"},
    {"transformer", "--model"},
    {"transformer", "A", "A or B"},
    {"transformer", "CHECKPOINT", "the checkpoint"},
    {"base", "--base"},
    {"fallback", "--base"},
    {"unconditional_transformer", "--uncond"},
    {"text_encoder", "--text-encoder"},
    {"vae", "--vae"},
    {"tokenizer", "--tokenizer"},
    {"loras", "--lora"},
    {"loras", "--a-lora", "--a-lora and --b-lora"},
    {"guided", "--guidance"},
    {"device", "--device"},
    {"threads", "--threads"},
    {"activations", "--dtype"},
    {"activations", "--a-dtype", "--a-dtype and --b-dtype"},
    {"linears", "--linears"},
    {"linears", "--a-linears", "--a-linears and --b-linears"},
    {"text_encoder_linears", "--text-encoder-linears"},
    {"text_encoder_linears", "--a-text-encoder-linears",
     "--a-text-encoder-linears and --b-text-encoder-linears"},
    {"attention", "--attention"},
    {"tuning", "--tune"},
    {"convention", "--convention"},
    {"require_int8", "--require-int8"},
    {"cache_weights", "--cache-weights"},
    {"keep", "--keep"},
    {"max_memory", "--max-memory"},
    // Pictures.
    {"caption", "--caption"},
    {"any_caption", "--any-caption"},
    {"negative", "--negative"},
    {"prompt", "--prompt"},
    {"wrap_text", "--wrap-text"},
    {"size", "--size"},
    {"preset", "--preset"},
    {"steps", "--steps"},
    {"guidance", "--guidance"},
    {"seed", "--seed"},
    {"noise", "--noise"},
    {"images", "--images"},
    {"reference", "--reference"},
    {"min_psnr_db", "--min-psnr"},
    {"min_snr_db", "--min-snr"},
    // Conversion.
    {"source", "source", "the source"},
    {"out", "out", "the output"},
    {"out", "--out"},
    {"network", "--unconditional"},
    {"recipe", "--recipe"},
    {"protect", "--protect"},
    {"clip", "--no-clip"},
    {"dialect", "--dialect"},
    {"statistics", "--statistics"},
    {"captions", "--captions"},
    {"calibration_steps", "--calibration-steps"},
    {"calibration_size", "--calibration-size"},
    {"measure", "--measure"},
    {"verify", "--verify"},
    // Audits.
    {"traces", "trace", "the traces"},
    {"card", "--card"},
    // Benchmarks and downloads.
    {"width", "--size"},
    {"height", "--size"},
    {"text_tokens", "--text-tokens"},
    {"layers", "--layers"},
    {"shapes", "--shapes"},
    {"shapes", "--shape"},
    {"peers", "--peers"},
    {"repo", "repo", "the repository"},
    {"revision", "--revision"},
    {"include", "--include"},
    {"exclude", "--exclude"},
    {"cache_dir", "--cache-dir"},
};

bool has_argument(const CLI::App& command, std::string_view name) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [&](const CLI::Option* option) {
    return option->check_name(std::string(name));
  });
}

}  // namespace

std::string with_flags(const Sentence& sentence, const CLI::App* command) {
  if (command == nullptr) return sentence.text();
  return sentence.said([command](const std::string& field) {
    std::string word;
    for (const FieldName& row : kFieldNames) {
      if (row.field != field) continue;
      const bool is_ours = has_argument(*command, row.flag);
      if (is_ours || word.empty()) word = row.said.empty() ? row.flag : row.said;
      if (is_ours) break;
    }
    return word.empty() ? "`" + field + "`" : word;
  });
}

}  // namespace octet::cli
