#include "field_names.h"

#include <algorithm>

namespace octet::cli {
namespace {

// Fields that have the names of their flags: text_encoder of --text-encoder.
constexpr std::string_view kSameNames =
    " model base text_encoder vae tokenizer device threads linears text_encoder_linears attention "
    "convention require_int8 cache_weights keep max_memory "
    "caption any_caption negative prompt wrap_text size preset steps guidance seed noise images "
    "reference "
    "recipe protect dialect statistics captions calibration_steps calibration_size measure verify "
    "quality card text_tokens layers shapes peers revision include exclude cache_dir ";

// The others, and what commands say whose argument has another name.
struct FieldName {
  std::string_view field;
  std::string_view flag;       // whose command this is for
  std::string_view said = {};  // in its place; empty: the flag
};

// Of several rows for a field, the first whose flag the command has; else the first, whose flag
// another command has.
constexpr FieldName kFieldNames[] = {
    {"model", "A", "A or B"},
    {"model", "CHECKPOINT", "the checkpoint"},
    {"transformer", "--model"},
    {"transformer", "A", "A or B"},
    {"transformer", "CHECKPOINT", "the checkpoint"},
    {"fallback", "--base"},
    {"unconditional_transformer", "--uncond"},
    {"loras", "--lora"},
    {"loras", "--a-lora", "--a-lora and --b-lora"},
    {"guided", "--guidance"},
    {"activations", "--dtype"},
    {"activations", "--a-dtype", "--a-dtype and --b-dtype"},
    {"linears", "--a-linears", "--a-linears and --b-linears"},
    {"text_encoder_linears", "--a-text-encoder-linears",
     "--a-text-encoder-linears and --b-text-encoder-linears"},
    {"tuning", "--tune"},
    {"min_psnr_db", "--min-psnr"},
    {"min_snr_db", "--min-snr"},
    {"source", "source", "the source"},
    {"out", "out", "the output"},
    {"out", "--out"},
    {"network", "--unconditional"},
    {"clip", "--no-clip"},
    {"traces", "trace", "the traces"},
    {"width", "--size"},
    {"height", "--size"},
    {"shapes", "--shape"},
    {"cards", "--predict"},
    {"cards", "--card"},
    {"repo", "repo", "the repository"},
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
    if (kSameNames.find(" " + field + " ") != kSameNames.npos) {
      word = "--" + field;
      std::replace(word.begin(), word.end(), '_', '-');
      if (has_argument(*command, word)) return word;
    }
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
