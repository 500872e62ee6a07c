// Where the parts of Ideogram 4 lie: a folder as Hugging Face lays it out, parts of it replaced, or
// single files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"

namespace octet::ideogram4 {

// Its parts, by the names of their folders.
inline constexpr std::string_view kTransformer = "transformer";
inline constexpr std::string_view kUnconditionalTransformer = "unconditional_transformer";
inline constexpr std::string_view kTextEncoder = "text_encoder";
inline constexpr std::string_view kVae = "vae";
inline constexpr std::string_view kTokenizer = "tokenizer";  // the file tokenizer.json

// See models::Family.
bool recognise(const std::string& model);
models::ModelFiles find_files(const models::FileChoices& choices);
std::vector<models::NetworkFiles> find_networks(const std::string& model, const std::string& base,
                                                std::string_view only);

}  // namespace octet::ideogram4
