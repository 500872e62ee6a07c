// Changing what a safetensors file says about itself, and none of its tensors.
#pragma once

#include <string>

namespace octet {

// Sets one entry of the metadata. A new file is written next to it, tensors as they are and
// in their order, and takes the place of the old one whole or not at all; that takes as much of the
// disk for a while. Throws Error for a file of another format, and for a symbolic link: what it
// leads to may belong to a cache whose files are named after their content.
void set_safetensors_metadata(const std::string& path, const std::string& key,
                              const std::string& value);

// Throws what set_safetensors_metadata() would throw before it writes.
void check_takes_metadata(const std::string& path);

}  // namespace octet
