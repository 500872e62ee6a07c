// GGUF files put together byte by byte, right or wrong: for the tests, and for the fuzzer to begin
// with.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace octet::test {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

inline std::string gguf_text_pair(std::string_view key, std::string_view value) {
  return gguf_text(key) + raw<uint32_t>(8) + gguf_text(value);
}

inline std::string gguf_u32_pair(std::string_view key, uint32_t value) {
  return gguf_text(key) + raw<uint32_t>(4) + raw(value);
}

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> extents;  // the innermost first
  uint32_t type = 0;
  uint64_t offset = 0;
};

struct GgufParts {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> pairs;
  std::vector<GgufTensor> tensors;
  std::string data;
  uint64_t alignment = 32;

  std::string bytes() const {
    std::string file =
        magic + raw(version) + raw<uint64_t>(tensors.size()) + raw<uint64_t>(pairs.size());
    for (const std::string& pair : pairs) file += pair;
    for (const GgufTensor& tensor : tensors) {
      file += gguf_text(tensor.name) + raw(static_cast<uint32_t>(tensor.extents.size()));
      for (const uint64_t extent : tensor.extents) file += raw(extent);
      file += raw(tensor.type) + raw(tensor.offset);
    }
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }
};

// F32 "f" [2, 3], Q8_0 "a.weight" [2, 64] and F16 "h" [4]: scales 0.5, 2, -1, 0.25 for the blocks
// of the second, whose codes count from -64 up.
inline GgufParts sound_gguf() {
  GgufParts parts;
  parts.pairs = {gguf_text_pair("general.architecture", "ideogram4"),
                 gguf_u32_pair("general.file_type", 7),
                 gguf_text("list") + raw<uint32_t>(9) + raw<uint32_t>(8) + raw<uint64_t>(2) +
                     gguf_text("x") + gguf_text("yz")};
  parts.tensors = {{"f", {3, 2}, 0, 0}, {"a.weight", {64, 2}, 8, 32}, {"h", {4}, 1, 192}};
  for (int i = 0; i < 6; ++i) parts.data += raw(static_cast<float>(i));
  parts.data.resize(32);
  constexpr uint16_t kScales[] = {0x3800, 0x4000, 0xbc00, 0x3400};
  int8_t code = -64;
  for (const uint16_t scale : kScales) {
    parts.data += raw(scale);
    for (int i = 0; i < 32; ++i) parts.data += raw(code++);
  }
  parts.data.resize(192);
  for (int i = 0; i < 4; ++i) parts.data += raw<uint16_t>(0x3c00);
  parts.data.resize(224);
  return parts;
}

struct BrokenGguf {
  std::string label;
  std::string content;
  std::string fault;  // words that the message must have
};

inline std::vector<BrokenGguf> broken_ggufs() {
  std::vector<BrokenGguf> files;
  const std::string sound = sound_gguf().bytes();
  const auto add = [&](const char* label, const char* fault, auto&& change) {
    GgufParts parts = sound_gguf();
    change(parts);
    files.push_back({label, parts.bytes(), fault});
  };
  const auto patched = [&](const char* label, const char* fault, size_t at, uint64_t value) {
    std::string bytes = sound;
    bytes.replace(at, 8, raw(value));
    files.push_back({label, bytes, fault});
  };
  const auto last = [](GgufParts& parts) -> GgufTensor& { return parts.tensors.back(); };
  files.push_back({"empty", "", "truncated"});
  files.push_back({"magic_only", "GGUF", "truncated"});
  add("other_kind", "another kind", [](auto& parts) { parts.magic = "GGML"; });
  add("version_1", "version 1", [](auto& parts) { parts.version = 1; });
  add("version_0", "version 0", [](auto& parts) { parts.version = 0; });
  add("big_endian", "big-endian", [](auto& parts) { parts.version = 0x03000000; });
  patched("tensors_all_ones", "more than its", 8, ~uint64_t{0});
  patched("tensors_too_many", "its offset", 8, 20);  // what follows are zeros and data
  patched("pairs_all_ones", "more than its", 16, ~uint64_t{0});
  patched("key_length_all_ones", "above the limit", 24, ~uint64_t{0});
  patched("key_beyond_the_end", "truncated", 24, 60000);
  add("unknown_value_type", "unknown type 13",
      [](auto& parts) { parts.pairs[0] = gguf_text("k") + raw<uint32_t>(13) + raw<uint64_t>(0); });
  add("key_twice", "appears twice", [](auto& parts) { parts.pairs.push_back(parts.pairs[0]); });
  add("key_not_utf8", "not UTF-8",
      [](auto& parts) { parts.pairs.push_back(gguf_u32_pair("\xff", 1)); });
  add("array_of_all_ones", "more than the file", [](auto& parts) {
    parts.pairs[0] = gguf_text("k") + raw<uint32_t>(9) + raw<uint32_t>(0) + raw(~uint64_t{0});
  });
  add("arrays_too_deep", "nested", [](auto& parts) {
    std::string pair = gguf_text("k") + raw<uint32_t>(9);
    for (int i = 0; i < 9; ++i) pair += raw<uint32_t>(9) + raw<uint64_t>(1);
    parts.pairs[0] = pair;
  });
  for (const uint32_t bad : {0u, 3u, 1u << 31}) {
    add(bad == 0   ? "alignment_0"
        : bad == 3 ? "alignment_3"
                   : "alignment_huge",
        "power of two",
        [&](auto& parts) { parts.pairs[1] = gguf_u32_pair("general.alignment", bad); });
  }
  add("alignment_text", "power of two",
      [](auto& parts) { parts.pairs[1] = gguf_text_pair("general.alignment", "32"); });
  add("one_of_several", "one of 3 parts",
      [](auto& parts) { parts.pairs[1] = gguf_u32_pair("split.count", 3); });
  add("name_twice", "appears twice", [&](auto& parts) { last(parts).name = "f"; });
  add("name_not_utf8", "not UTF-8", [&](auto& parts) { last(parts).name = "\xc0\x80"; });
  add("rank_9", "rank is 9", [&](auto& parts) { last(parts).extents.assign(9, 1); });
  add("extent_negative", "above 2^63-1",
      [&](auto& parts) { last(parts).extents = {~uint64_t{0}}; });
  add("extents_overflow", "does not fit", [&](auto& parts) {
    last(parts).extents = {uint64_t{1} << 40, uint64_t{1} << 40};
  });
  add("size_overflows", "does not fit",
      [&](auto& parts) { last(parts).extents = {(uint64_t{1} << 63) - 2}; });
  add("larger_than_the_file", "does not fit",
      [&](auto& parts) { last(parts).extents = {1 << 20}; });
  add("part_of_a_block", "blocks of 32", [](auto& parts) { parts.tensors[1].extents = {63, 2}; });
  add("type_unknown", "ggml type 4 is unknown", [&](auto& parts) { last(parts).type = 4; });
  add("type_far_off", "is unknown", [&](auto& parts) { last(parts).type = ~0u; });
  add("offset_unaligned", "multiple of 32", [&](auto& parts) { last(parts).offset = 193; });
  add("offset_far_off", "within the file",
      [&](auto& parts) { last(parts).offset = ~uint64_t{0} << 5; });
  add("overlap", "behind the tensor", [&](auto& parts) { last(parts).offset = 160; });
  add("gap", "behind the tensor", [&](auto& parts) { last(parts).offset = 224; });
  add("same_place", "behind the tensor", [&](auto& parts) { last(parts).offset = 0; });
  add("rest", "bytes follow", [](auto& parts) { parts.data += std::string(40, 'x'); });
  add("data_cut", "truncated", [](auto& parts) { parts.data.resize(196); });
  add("no_data", "truncated", [](auto& parts) { parts.data.clear(); });
  files.push_back({"header_cut", sound.substr(0, 120), "truncated"});
  return files;
}

}  // namespace octet::test
