#include "formats/broken_files.h"

#include <fmt/format.h>

#include <cstdint>

namespace octet::test {
namespace {

using std::string_literals::operator""s;

std::string little_endian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// A file with the one tensor "w" whose entry is given.
std::string file_with_entry(std::string_view entry, size_t data_bytes) {
  return file_with_header("{\"w\":" + std::string(entry) + "}", data_bytes);
}

// The same with a shape and offsets for F32.
std::string file_with_shape(std::string_view shape, std::string_view offsets, size_t data_bytes) {
  return file_with_entry("{\"dtype\":\"F32\",\"shape\":" + std::string(shape) +
                             ",\"data_offsets\":" + std::string(offsets) + "}",
                         data_bytes);
}

std::string two_tensors(std::string_view first_offsets, std::string_view second_offsets,
                        size_t data_bytes) {
  return file_with_header(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(first_offsets) +
          R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(second_offsets) + "}}",
      data_bytes);
}

void add_length_faults(std::vector<BrokenFile>& files) {
  files.push_back({"empty_file", "", "", "is empty, expected a safetensors file"});
  files.push_back({"length_cut", "\x10\0\0"s, "", "3 bytes long"});
  files.push_back({"length_zero", little_endian(0), "", "length is 0"});
  files.push_back({"length_zero_with_data", little_endian(0) + "{}", "", "length is 0"});
  files.push_back({"length_too_large", little_endian(100) + "{}", "", "truncated"});
  files.push_back(
      {"length_all_ones", little_endian(~uint64_t{0}) + "{}", "", "does not begin with a header"});
  files.push_back(
      {"length_over_cap", little_endian(100'000'001) + "{}", "", "does not begin with a header"});
  files.push_back({"length_at_cap", little_endian(100'000'000) + "{}", "", "truncated"});
  files.push_back(
      {"length_wraps", little_endian(~uint64_t{0} - 7) + "{}", "", "does not begin with a header"});
  files.push_back({"big_endian", "\0\0\0\0\0\0\0\x02{}"s, "", "does not begin with a header"});
  files.push_back({"zip", "PK\x03\x04\x14\0\0\0\0\0\0\0"s, "", "a PyTorch or zip archive"});
}

void add_json_faults(std::vector<BrokenFile>& files) {
  const auto add = [&](const char* label, const std::string& header, const char* tensor,
                       const char* fault) {
    files.push_back({label, file_with_header(header, 0), tensor, fault});
  };
  add("not_json", "{hello}", "", "byte 2");
  add("only_a_brace", "{", "", "unexpected end");
  add("top_level_array", "[]", "", "expected '{'");
  add("top_level_number", "12", "", "expected '{'");
  add("leading_space", " {}", "", "expected '{'");
  add("byte_order_mark", "\xef\xbb\xbf{}", "", "expected '{'");
  add("two_values", "{}{}", "", "expected end of input");
  add("rest_after_object", "{}]", "", "expected end of input");
  add("trailing_comma", R"({"__metadata__":{},})", "", "invalid JSON");
  add("comment", "{}//x", "", "invalid JSON");
  add("single_quotes", "{'a':1}", "", "invalid JSON");
  add("nul_after_object", "{}\0\0"s, "", "NUL");
  add("nul_in_name", "{\"a\0b\":1}"s, "", "NUL");
  add("line_feed_in_name", "{\"a\nb\":1}", "", "control character");
  add("name_not_utf8", "{\"a\xff\":1}", "", "UTF-8");
  add("name_overlong", "{\"a\xc0\x80\":1}", "", "UTF-8");
  add("name_cut_sequence", "{\"a\xe2\x82\":1}", "", "UTF-8");
  add("name_surrogate_bytes", "{\"\xed\xa0\x80\":1}", "", "UTF-8");
  add("name_lone_surrogate", R"({"\ud800":1})", "", "surrogate");
  add("literal_nan", R"({"a":NaN})", "", "invalid JSON");
  add("number_overflow", R"({"a":1e999})", "", "overflow");
  add("deep_arrays", "{\"a\":" + repeated("[", 100'000), "", "deep");
  add("deep_closed_arrays", "{\"a\":" + repeated("[", 100'000) + repeated("]", 100'000) + "}", "",
      "deep");
  add("deep_objects", repeated("{\"a\":", 100'000), "", "deep");
  add("duplicate_name",
      R"({"twin":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
      R"("twin":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
      "twin", "twice");
  add("duplicate_name_escaped", R"({"tw\u0069n":1,"twin":2})", "twin", "twice");
  add("duplicate_key_in_entry", R"({"w":{"dtype":"U8","dtype":"I8"}})", "w", "\"dtype\" appears");
  add("duplicate_metadata", R"({"__metadata__":{},"__metadata__":{}})", "", "twice");
  add("duplicate_metadata_key", R"({"__metadata__":{"k":"1","k":"2"}})", "", "twice");
  add("metadata_number", R"({"__metadata__":{"k":1}})", "", "expected a string");
  add("metadata_nested", R"({"__metadata__":{"k":{}}})", "", "expected a string");
  add("metadata_null_value", R"({"__metadata__":{"k":null}})", "", "expected a string");
  add("metadata_array", R"({"__metadata__":["k"]})", "", "expected an object");
  add("metadata_null", R"({"__metadata__":null})", "", "expected an object");
}

void add_entry_faults(std::vector<BrokenFile>& files) {
  const auto add = [&](const char* label, const char* entry, const char* fault,
                       size_t data_bytes = 0) {
    files.push_back({label, file_with_entry(entry, data_bytes), "\"w\"", fault});
  };
  add("entry_null", "null", "expected an object");
  add("entry_string", "\"F32\"", "expected an object");
  add("entry_array", "[]", "expected an object");
  add("entry_empty", "{}", "no \"dtype\"");
  add("no_dtype", R"({"shape":[],"data_offsets":[0,0]})", "no \"dtype\"");
  add("no_shape", R"({"dtype":"F32","data_offsets":[0,0]})", "no \"shape\"");
  add("no_offsets", R"({"dtype":"F32","shape":[0]})", "no \"data_offsets\"");
  add("unknown_key", R"({"dtype":"F32","shape":[0],"data_offsets":[0,0],"stride":[1]})",
      "unknown key \"stride\"");
  add("dtype_number", R"({"dtype":32,"shape":[0],"data_offsets":[0,0]})", "expected a string");
  add("dtype_null", R"({"dtype":null,"shape":[0],"data_offsets":[0,0]})", "expected a string");
  add("dtype_unknown", R"({"dtype":"F33","shape":[0],"data_offsets":[0,0]})", "\"F33\" is unknown");
  add("dtype_unknown_lists", R"({"dtype":"","shape":[0],"data_offsets":[0,0]})", "BF16");
  add("dtype_lower_case", R"({"dtype":"f32","shape":[0],"data_offsets":[0,0]})", "unknown");
  add("dtype_with_line_feed", R"({"dtype":"F\n32","shape":[0],"data_offsets":[0,0]})", "unknown");
  add("dtype_too_wide", R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})", "size of 16", 8);
  add("dtype_too_narrow", R"({"dtype":"I8","shape":[2],"data_offsets":[0,8]})", "size of 2", 8);
  add("f4_half_byte", R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})", "whole bytes", 2);
  add("f6_part_byte", R"({"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]})", "whole bytes", 2);
}

void add_shape_faults(std::vector<BrokenFile>& files) {
  const auto add = [&](const char* label, std::string_view shape, const char* fault) {
    files.push_back({label, file_with_shape(shape, "[0,8]", 8), "\"w\"", fault});
  };
  add("shape_null", "null", "expected an array");
  add("shape_number", "2", "expected an array");
  add("shape_string", "\"[2]\"", "expected an array");
  add("shape_object", "{}", "expected an array");
  add("shape_negative", "[-2]", "-2");
  add("shape_two_negatives", "[-1,-2]", "-1");
  add("shape_float", "[2.0]", "2.0");
  add("shape_exponent", "[2e0]", "integers");
  add("shape_minus_zero", "[-0]", "integers");
  add("shape_bool", "[true,2]", "true");
  add("shape_text", "[\"2\"]", "\"2\"");
  add("shape_nested", "[[2]]", "an array of 1");
  add("shape_null_extent", "[null]", "null");
  add("shape_2_to_63", "[9223372036854775808]", "9223372036854775808");
  add("shape_2_to_64", "[18446744073709551616]", "integers");
  add("shape_overflow", "[4294967296,4294967296]", "overflow");
  add("shape_overflow_to_size", "[4611686018427387905,2]", "overflow");
  add("shape_bits_overflow", "[1152921504606846976]", "overflow");
  add("shape_overflow_empty", "[0,4294967296,4294967296]", "overflow");
  add("shape_larger_than_data", "[1000000000]", "size of 4000000000");
  add("shape_too_small", "[1]", "size of 4");
  add("shape_empty_but_data", "[0]", "size of 0");
  add("shape_scalar_but_two", "[]", "size of 4");
  add("shape_many_extents", fmt::format("[{}3]", repeated("1,", 5000)), "size of 12");
}

void add_offset_faults(std::vector<BrokenFile>& files) {
  const auto add = [&](const char* label, std::string_view offsets, const char* fault) {
    files.push_back({label, file_with_shape("[2]", offsets, 8), "\"w\"", fault});
  };
  add("offsets_null", "null", "array of 2");
  add("offsets_none", "[]", "array of 2");
  add("offsets_one", "[8]", "array of 2");
  add("offsets_three", "[0,4,8]", "array of 2");
  add("offsets_object", R"({"0":0,"1":8})", "array of 2");
  add("offsets_text", R"(["0","8"])", "integers");
  add("offsets_negative", "[-8,0]", "-8");
  add("offsets_float", "[0.0,8.0]", "integers");
  add("offsets_exponent", "[0,8e0]", "integers");
  add("offsets_minus_zero", "[-0,8]", "integers");
  add("offsets_bool", "[false,8]", "integers");
  add("offsets_huge", "[0,18446744073709551615]", "integers");
  add("offsets_wrap", "[9223372036854775807,9223372036854775807]", "beyond");
  add("offsets_reversed", "[8,0]", "reversed");
  add("offsets_beyond", "[0,12]", "beyond");
  add("offsets_begin_beyond", "[8,16]", "beyond");
  add("offsets_short", "[0,4]", "size of 8");

  files.push_back({"gap_at_start", file_with_shape("[1]", "[4,8]", 8), "\"w\"", "gap"});
  files.push_back({"trailing_bytes", file_with_shape("[1]", "[0,4]", 8), "", "4 trailing"});
  files.push_back({"data_without_tensors", file_with_header("{}", 3), "", "3 trailing"});
  files.push_back({"overlap", two_tensors("[0,4]", "[2,6]", 6), "\"b\"", "overlaps tensor \"a\""});
  files.push_back({"same_range", two_tensors("[0,4]", "[0,4]", 4), "\"b\"", "overlaps"});
  files.push_back({"gap", two_tensors("[0,4]", "[5,9]", 9), "\"b\"", "gap"});
  files.push_back({"gap_backwards", two_tensors("[5,9]", "[0,4]", 9), "\"a\"", "gap"});
  files.push_back({"empty_inside_another",
                   file_with_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                    R"("none":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                                    4),
                   "\"none\"", "overlaps"});
}

}  // namespace

std::string file_with_header(std::string_view header, size_t data_bytes) {
  std::string file = little_endian(header.size());
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string sound_file() {
  return file_with_header(R"({"__metadata__":{"format":"pt"},)"
                          R"("layer.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                          R"("layer.bias":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}}   )",
                          24);
}

std::vector<BrokenFile> broken_safetensors() {
  std::vector<BrokenFile> files;
  add_length_faults(files);
  add_json_faults(files);
  add_entry_faults(files);
  add_shape_faults(files);
  add_offset_faults(files);
  return files;
}

std::vector<BrokenFile> broken_indexes() {
  std::vector<BrokenFile> files;
  const auto add_shard = [&](const char* label, const char* shard, const char* fault) {
    files.push_back({label, R"({"weight_map":{"w":)" + std::string(shard) + "}}", "\"w\"", fault});
  };
  files.push_back({"index_empty", "", "", "is empty"});
  files.push_back({"index_array", "[]", "", "expected an object"});
  files.push_back({"index_null", "null", "", "expected an object"});
  files.push_back({"index_no_map", "{}", "", "not a shard index: it has no \"weight_map\""});
  files.push_back({"index_map_array", R"({"weight_map":[]})", "", "expected an object"});
  files.push_back({"index_map_null", R"({"weight_map":null})", "", "expected an object"});
  files.push_back(
      {"index_metadata", R"({"weight_map":{},"metadata":1})", "", "expected an object"});
  files.push_back({"index_twice", R"({"weight_map":{"w":"a.safetensors","w":"b.safetensors"}})",
                   "\"w\"", "twice"});
  files.push_back({"index_deep", repeated("{\"a\":", 100'000), "", "deep"});
  add_shard("shard_number", "1", "expected a file name");
  add_shard("shard_null", "null", "expected a file name");
  add_shard("shard_empty", R"("")", "not allowed");
  add_shard("shard_parent", R"("../secret.safetensors")", "not allowed");
  add_shard("shard_absolute", R"("/etc/secret.safetensors")", "not allowed");
  add_shard("shard_in_folder", R"("sub/a.safetensors")", "not allowed");
  add_shard("shard_backslash", R"("..\\a.safetensors")", "not allowed");
  add_shard("shard_dots", R"("..")", "not allowed");
  add_shard("shard_hidden", R"(".safetensors")", "not allowed");
  add_shard("shard_nul", R"("/etc/passwd\u0000.safetensors")", "not allowed");
  add_shard("shard_other_kind", R"("/etc/passwd")", "not allowed");
  const std::string long_name = "\"" + std::string(5000, 'x') + ".safetensors\"";
  add_shard("shard_long", long_name.c_str(), "not allowed");
  add_shard("shard_pickle", R"("model.bin")", "not allowed");
  files.push_back({"shard_missing", R"({"weight_map":{"w":"gone.safetensors"}})", "",
                   "\"gone.safetensors\" that it names is missing"});
  return files;
}

}  // namespace octet::test
