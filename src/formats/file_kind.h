// Files that are given in place of a checkpoint, told by how they begin.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace octet {

// What the file is, for a sentence: "a text file", "a PyTorch archive"; empty when it may be a
// safetensors file, whole or damaged.
std::string_view kind_if_not_safetensors(std::span<const std::byte> file);

}  // namespace octet
