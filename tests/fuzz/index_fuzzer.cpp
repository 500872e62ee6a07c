// libFuzzer target: any text is either refused as a shard index with an Error of one line, or names
// shards that are plain file names.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const octet::ShardIndex index =
        octet::parse_shard_index(octet::parse_json(text, "fuzz"), "fuzz");
    for (const auto& [tensor, shard] : index.weight_map) {
      if (shard.find('/') != shard.npos || shard.starts_with('.')) std::abort();
    }
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    if (!message.starts_with("fuzz") || message.find('\n') != message.npos) std::abort();
  }
  return 0;
}
