// Writes the files of the tests as the fuzzers' first inputs: write_seeds FOLDER fills
// FOLDER/safetensors, FOLDER/index, FOLDER/caption, FOLDER/tokenizer, FOLDER/gguf, FOLDER/dialect,
// FOLDER/recipe, FOLDER/trace, FOLDER/http and FOLDER/request.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "formats/broken_files.h"
#include "formats/gguf_bytes.h"
#include "models/sample_captions.h"
#include "models/tokenizer_json.h"

namespace {

void write(const std::filesystem::path& path, const std::string& content) {
  // Inputs of a hundred kilobytes only slow the fuzzer down.
  if (content.size() > 4096) return;
  std::ofstream(path, std::ios::binary) << content;
}

// The tests' tokenizer with a vocabulary of a few bytes.
std::string tokenizer_and_text(const std::string& text) {
  nlohmann::json json = octet::test::small_tokenizer();
  nlohmann::json vocab = nlohmann::json::object();
  for (const char* token : {"a", "b", "c", "ab", "bc", "abc", "\u0120", "\u0120a"}) {
    vocab[token] = json["model"]["vocab"][token];
  }
  json["model"]["vocab"] = vocab;
  return json.dump() + '\0' + text;
}

// Of layers, by ComfyUI and by bitsandbytes.
constexpr const char* kDescriptions[] = {
    R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256})",
    R"({"format": "float8_e4m3fn", "full_precision_matrix_mult": true})",
    R"({"format": "int8_tensorwise", "params": {"convrot": true, "convrot_groupsize": 16}})",
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [6, 64]})",
    R"({"quant_type": "fp4", "blocksize": 64, "dtype": "float32", "shape": [6, 64],
        "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 2.5})"};

constexpr const char* kRecipes[] = {
    R"({"format": "octet-w8a8", "alpha": 0.5, "smooth": "divide", "protected": ["a.b", "c"]})",
    R"({"smooth": true, "alpha": "half", "protected": {"a": 17}})"};

// Of PyTorch's profiler, Nsight Compute's two pages, Nsight Systems' two tables and Octet.
constexpr const char* kTraces[] = {
    R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":9,
         "args":{"External id":5,"Input Dims":[[2,3],[3,4]],
                 "Input type":["signed char","c10::BFloat16"]}},
        {"ph":"X","cat":"kernel","name":"k\u00e9","pid":0,"tid":7,"ts":"3","dur":1,
         "args":{"External id":5,"correlation":7,"grid":[1,2,3],"block":[4]}},
        {"ph":"X","cat":"cuda_runtime","name":"l","pid":1,"tid":1,"ts":2,"dur":1,
         "args":{"correlation":7}}])",
    R"({"traceEvents":[
        {"ph":"X","cat":"user_annotation","name":"blocks.0.up","pid":1,"tid":1,"ts":1,"dur":90},
        {"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":1,"tid":1,"ts":2,"dur":9,
         "args":{"Input Dims":[[64,32],[64,32],[]],"Input type":["c10::BFloat16","signed char"]}},
        {"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":20,"dur":9,
         "args":{"Input Dims":[[64,32],[64,1]],"Input type":["c10::BFloat16","c10::BFloat16"]}},
        {"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":30,"dur":20,
         "args":{"Input Dims":[[16,32],[64,32]],"Input type":["c10::BFloat16","c10::BFloat16"]}},
        {"ph":"X","cat":"cpu_op","name":"aten::_int_mm","pid":1,"tid":1,"ts":60,"dur":20,
         "args":{"Input Dims":[[16,32],[32,64]],"Input type":["signed char","signed char"]}}]})",
    "\"ID\",\"Kernel Name\",\"Context\",\"Block Size\",\"Metric Name\",\"Metric Unit\","
    "\"Metric Value\"\n"
    "\"0\",\"k\",\"1\",\"(128, 1, 1)\",\"Duration\",\"ns\",\"1,234\"\n",
    "\"ID\",\"Kernel Name\",\"Context\",\"gpu__time_duration.sum\","
    "\"sm__ops_path_tensor_src_int8.sum\"\n"
    "\"\",\"\",\"\",\"us\",\"\"\n\"0\",\"a\",\"1\",\"5\",\"6\"\n",
    "Time (%),Total Time (ns),Instances,GridXYZ,BlockXYZ,Name\n"
    "60.0,6000,3,\" 2 1 1\",\"128 1 1\",a\n",
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Strm,Name\n"
    "6,4,1,4,2,1,128,1,1,NVIDIA A100 (0),7,\"g(a, b)\"\n",
    R"({"schema":"octet.generate/1","kernels":[{"layer":"q","path":"int8","kernel":"k",
        "launches":3,"us":1}],"ops":[{"op":"norm","calls":1,"us":2}]})"};

// Lines of a head, an empty line, and a body.
constexpr const char* kBodies[] = {
    "/v1/jobs?limit=5&a=%20+\nauthorization: Bearer k-3f9a1c0d5e7b2846ffe1\n"
    "idempotency-key: one\nhost: localhost:80\norigin: https://example.org\n\n"
    R"({"prompt": "a red square", "negative_prompt": "", "size": "64x64", "seed": 7, "steps": 2,
        "guidance": [5, 3.5], "preset": "turbo", "n": 2, "priority": "low",
        "lora": [{"name": "style", "strength": 0.8}], "output_format": "png",
        "output_compression": 90})",
    "last-event-id: 18446744073709551615\nhost: [::1]:80\n"
    "authorization: Basic YTprLTNmOWExYzBkNWU3YjI4NDZmZmUx\n\n"
    R"({"json_prompt": {"high_level_description": "a"}, "size": "auto", "guidance": 7})",
    "host: evil.example\n\n"
    R"({"prompt": "{\"a\": 1}", "model": "gpt-image-1", "quality": "hd", "stream": true,
        "partial_images": 2, "response_format": "b64_json", "user": "u", "background": "auto",
        "moderation": "low", "style": "vivid", "a\nb": 1})",
    "\n"
    R"({"prompt": "a fox <lora:style:0.8>", "width": 64, "height": 64, "seed": -1, "steps": 2,
        "cfg_scale": 7.5, "batch_size": 2, "n_iter": 1, "sampler_name": "Euler"})"};

constexpr const char* kRequests[] = {
    "GET /a%20b?c=d+e HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    "POST /ab HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
    "HEAD * HTTP/1.1\r\nHost: a\r\n\r\n",
    "PUT /abc HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    "3;x=y\r\nabc\r\n0\r\nTrailer: z\r\n\r\n",
    "GET http://localhost/ HTTP/1.0\r\nConnection: keep-alive\r\nCookie: a=b; c\r\nX:\r\n "
    "y\r\n\r\n"};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  for (const char* target : {"safetensors", "index", "caption", "tokenizer", "gguf", "dialect",
                             "recipe", "trace", "http", "request"}) {
    std::filesystem::create_directories(folder / target);
  }
  write(folder / "safetensors" / "sound", octet::test::sound_file());
  for (const auto& file : octet::test::broken_safetensors()) {
    write(folder / "safetensors" / file.label, file.content);
  }
  for (const auto& file : octet::test::broken_indexes()) {
    write(folder / "index" / file.label, file.content);
  }
  for (const auto& caption : octet::test::valid_captions()) {
    write(folder / "caption" / caption.label, caption.text);
  }
  for (const auto& caption : octet::test::faulty_captions()) {
    write(folder / "caption" / caption.label, caption.text);
  }
  for (const std::string text : {"abc abab<x>y", "e\u0301 a\n\n 'LL don't 12", "\xff"}) {
    write(folder / "tokenizer" / std::to_string(text.size()), tokenizer_and_text(text));
  }
  write(folder / "gguf" / "sound", octet::test::sound_gguf().bytes());
  for (const auto& file : octet::test::broken_ggufs()) {
    write(folder / "gguf" / file.label, file.content);
  }
  for (const std::string text : kDescriptions) {
    write(folder / "dialect" / std::to_string(text.size()), text);
  }
  for (const std::string text : kRecipes) {
    write(folder / "recipe" / std::to_string(text.size()), text);
  }
  for (const std::string text : kTraces) {
    write(folder / "trace" / std::to_string(text.size()), text);
  }
  for (const std::string text : kRequests) {
    write(folder / "http" / std::to_string(text.size()), text);
  }
  for (const std::string text : kBodies) {
    write(folder / "request" / std::to_string(text.size()), text);
  }
  return 0;
}
