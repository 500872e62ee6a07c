#include "full_size_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "formats/tensor_info.h"
#include "models/byte_tokenizer.h"
#include "models/flux2_vae/vae.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/dit_source.h"
#include "models/qwen3/text_encoder.h"

namespace octet::bench {
namespace {

namespace fs = std::filesystem;

enum class Bytes { codes, fp8, bf16, scales, text };

struct WrittenTensor {
  std::string name, dtype;
  FileShape shape;
  Bytes kind;
  std::string text = {};  // of Bytes::text
  uint64_t begin = 0, size = 0;
};

// The tensors of a model with its linears in `linears`: "I8" in ComfyUI's dialect, "F8_E4M3" or
// "BF16". Of networks only the large ones.
class FullSizeTensors : public nn::WeightVisitor {
 public:
  FullSizeTensors(std::string linears, bool only_large)
      : linears_(std::move(linears)), only_large_(only_large) {}

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    for (const auto& part : spec.layouts.front()) {
      const bool narrow = linears_ != "BF16" && (spec.large || !only_large_);
      const FileShape shape = {part.rows, spec.k};
      if (!narrow) {
        add(part.name + ".weight", "BF16", shape, Bytes::bf16);
      } else {
        add(part.name + ".weight", linears_, shape, linears_ == "I8" ? Bytes::codes : Bytes::fp8);
        add(part.name + ".weight_scale", "F32", {shape[0]}, Bytes::scales);
      }
      if (narrow && linears_ == "I8") {
        const std::string quant = R"({"format": "int8_tensorwise"})";
        add(part.name + ".comfy_quant", "U8", {static_cast<int64_t>(quant.size())}, Bytes::text,
            quant);
      }
      if (spec.bias) {
        add(part.name + ".bias", "BF16", {shape[0]}, Bytes::bf16);
      }
    }
  }
  void conv(nn::Conv&, const nn::ConvSpec& spec) override {
    add(spec.name + ".weight", "BF16", {spec.out, spec.in, spec.kernel, spec.kernel}, Bytes::bf16);
    add(spec.name + ".bias", "BF16", {spec.out}, Bytes::bf16);
  }
  void vector(nn::Vector&, const std::string& name, int64_t length) override {
    add(name, "BF16", {length}, Bytes::bf16);
  }
  void table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) override {
    add(name, "BF16", {rows, columns}, Bytes::bf16);
  }

  std::vector<WrittenTensor> tensors;

 private:
  void add(const std::string& name, const std::string& dtype, const FileShape& shape, Bytes kind,
           const std::string& text = "") {
    uint64_t size = static_cast<uint64_t>(bits_of(*dtype_from_name(dtype))) / 8;
    for (const int64_t extent : shape) size *= static_cast<uint64_t>(extent);
    tensors.push_back({name, dtype, shape, kind, text, at_, size});
    at_ += size;
  }

  std::string linears_;
  bool only_large_;
  uint64_t at_ = 0;
};

// Eight bytes of a tensor: numbers that are finite and of a usual size.
uint64_t random_word(Bytes kind, uint64_t at) {
  const uint64_t word = mixed_bits(at * kHashFactor);
  switch (kind) {
    case Bytes::fp8: return word & 0xbfbfbfbfbfbfbfbf;                          // below 2
    case Bytes::bf16: return (word & 0x807f807f807f807f) | 0x3c003c003c003c00;  // near 0.01
    case Bytes::scales: return 0x3c23d70a3c23d70a;                              // 0.01
    default: return word;
  }
}

void write_file(const fs::path& path, const std::vector<WrittenTensor>& tensors, ThreadPool& pool) {
  nlohmann::json header;
  uint64_t bytes = 0;
  for (const WrittenTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.begin + tensor.size}}};
    bytes += tensor.size;
  }
  std::string text = header.dump();
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)), ' ');
  const uint64_t length = text.size();
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  check(file >= 0, "{}: cannot be written", path.string());
  const auto put = [&](const void* from, size_t count, uint64_t at) {
    check(::pwrite(file, from, count, static_cast<off_t>(at)) == static_cast<ssize_t>(count),
          "{}: cannot be written, is the disk full?", path.string());
  };
  put(&length, 8, 0);
  put(text.data(), text.size(), 8);
  const uint64_t data = 8 + length;
  struct Piece {
    const WrittenTensor* tensor;
    uint64_t first, size;
  };
  std::vector<Piece> pieces;
  constexpr uint64_t kPiece = 4 << 20;
  for (const WrittenTensor& tensor : tensors) {
    for (uint64_t first = 0; first < tensor.size; first += kPiece) {
      pieces.push_back({&tensor, first, std::min(kPiece, tensor.size - first)});
    }
  }
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t i, int) {
    const auto& [tensor, first, size] = pieces[static_cast<size_t>(i)];
    thread_local std::vector<uint64_t> words;
    words.resize(kPiece / 8);
    if (tensor->kind == Bytes::text) {
      std::memcpy(words.data(), tensor->text.data(), size);
    } else {
      const uint64_t seed = tensor->begin + first;
      for (size_t w = 0; w < (size + 7) / 8; ++w)
        words[w] = random_word(tensor->kind, seed + 8 * w);
    }
    put(words.data(), size, data + tensor->begin + first);
  });
  ::close(file);
  fmt::print("{}: {:.2f} GB\n", path.string(), static_cast<double>(data + bytes) * 1e-9);
}

void write_transformers(const fs::path& folder, const std::string& linears, int64_t layers,
                        ThreadPool& pool) {
  for (const bool conditional : {true, false}) {
    FullSizeTensors list(linears, /*only_large=*/true);
    ideogram4::Dit dit;
    dit.config.layers = layers;
    visit_weights(dit, conditional, list);
    write_file(folder / (conditional ? "transformer.safetensors"
                                     : "unconditional_transformer.safetensors"),
               list.tensors, pool);
  }
}

void write_text_encoder(const fs::path& folder, const std::string& linears, ThreadPool& pool) {
  FullSizeTensors list(linears, /*only_large=*/false);
  const qwen3::TextConfig config;
  nn::Table embedding;
  qwen3::visit_embedding(embedding, config, list);
  for (int64_t i = 0; i < config.layers; ++i) {
    qwen3::TextLayer layer;
    qwen3::visit_layer(layer, config, i, list);
  }
  write_file(folder / "model.safetensors", list.tensors, pool);
  std::ofstream(folder / "config.json")
      << R"({"num_key_value_heads": 8, "head_dim": 128, "rope_theta": 5000000})"
      << "\n";
}

void write_vae(const fs::path& folder, ThreadPool& pool) {
  fs::create_directories(folder);
  FullSizeTensors list("BF16", /*only_large=*/false);
  flux2_vae::VaeDecoder vae;
  visit_weights(vae, list);
  write_file(folder / "diffusion_pytorch_model.safetensors", list.tensors, pool);
  std::ofstream(folder / "config.json") << R"({"_class_name": "AutoencoderKLFlux2"})";
}

// As Hugging Face lays it out, with a tokenizer of bytes.
void write_model(const fs::path& folder, const std::string& linears, int64_t layers,
                 ThreadPool& pool) {
  write_transformers(folder, linears, layers, pool);
  for (const std::string part : {"transformer", "unconditional_transformer"}) {
    fs::create_directories(folder / part);
    fs::rename(folder / (part + ".safetensors"),
               folder / part / "diffusion_pytorch_model.safetensors");
    ideogram4::DitConfig config;
    config.layers = layers;
    std::ofstream(folder / part / "config.json") << ideogram4::config_text(config);
  }
  fs::create_directories(folder / "text_encoder");
  write_text_encoder(folder / "text_encoder", linears == "I8" ? "BF16" : linears, pool);
  fs::create_directories(folder / "tokenizer");
  std::ofstream(folder / "tokenizer" / "tokenizer.json") << test::make_byte_tokenizer_json();
  write_vae(folder / "vae", pool);
  std::ofstream(folder / "model_index.json") << R"({"_class_name": "Ideogram4Pipeline"})";
}

}  // namespace

void write_full_size(const std::string& kind, const fs::path& folder, int64_t layers,
                     ThreadPool& pool) {
  fs::create_directories(folder);
  if (kind == "int8") return write_transformers(folder, "I8", layers, pool);
  if (kind == "fp8") return write_transformers(folder, "F8_E4M3", layers, pool);
  if (kind == "text_fp8") return write_text_encoder(folder, "F8_E4M3", pool);
  if (kind == "text_bf16") return write_text_encoder(folder, "BF16", pool);
  if (kind == "model_int8") return write_model(folder, "I8", layers, pool);
  if (kind == "model_fp8") return write_model(folder, "F8_E4M3", layers, pool);
  fail("write: {} is unknown, expected int8, fp8, text_fp8 or text_bf16", kind);
}

}  // namespace octet::bench
