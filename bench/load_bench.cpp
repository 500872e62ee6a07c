// How fast models come from files in the page cache to a device.
//
//   load_bench write int8|fp8|text_fp8|text_bf16 FOLDER   files of full size, of random numbers
//   load_bench write model_int8|model_fp8 FOLDER          a whole model of them
//   load_bench transformers FOLDER|FILE... [options]      both networks, as the program loads them
//   load_bench text PATH [options]                        one pass of the text encoder
//   load_bench engine FOLDER [options]                    an engine, and the pictures after the
//   first options: --device auto|cpu|cuda  --rounds 3  --threads 0  --tokens 300
//            --layers 34: that write gives a transformer
//            --float: transformers are loaded for floating point
//            --once: of transformers, only the conditional one
//            --preview: of an engine, a preview after each step
//
// Each round prints its seconds and GB/s; the first one includes what a process pays once.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "devices/select.h"
#include "engine/part_store.h"
#include "models/flux2_vae/vae.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"
#include "models/tokenizer/byte_tokenizer.h"
#include "octet/caption.h"
#include "octet/engine.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// --- files ---

enum class Bytes { codes, fp8, bf16, scales, text };

struct WrittenTensor {
  std::string name, dtype;
  FileShape shape;
  Bytes kind;
  std::string text = {};  // of Bytes::text
  uint64_t begin = 0, size = 0;
};

// The tensors of a model with its linears in `linears`: "I8" in ComfyUI's dialect, "F8_E4M3" or
// "BF16". Of transformers only the large ones.
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
  std::ofstream(folder / "tokenizer" / "tokenizer.json") << tokenizer::make_byte_tokenizer_json();
  write_vae(folder / "vae", pool);
  std::ofstream(folder / "model_index.json") << R"({"_class_name": "Ideogram4Pipeline"})";
}

void write(const std::string& kind, const fs::path& folder, int64_t layers, ThreadPool& pool) {
  fs::create_directories(folder);
  if (kind == "int8") return write_transformers(folder, "I8", layers, pool);
  if (kind == "fp8") return write_transformers(folder, "F8_E4M3", layers, pool);
  if (kind == "text_fp8") return write_text_encoder(folder, "F8_E4M3", pool);
  if (kind == "text_bf16") return write_text_encoder(folder, "BF16", pool);
  if (kind == "model_int8") return write_model(folder, "I8", layers, pool);
  if (kind == "model_fp8") return write_model(folder, "F8_E4M3", layers, pool);
  fail("write: {} is unknown, expected int8, fp8, text_fp8 or text_bf16", kind);
}

// --- loading ---

struct LoadBenchOptions {
  std::map<std::string, std::string> values;

  std::string get(const std::string& name, const std::string& otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
  int number(const std::string& name, int otherwise) const {
    return std::stoi(get(name, std::to_string(otherwise)));
  }
};

void report(const std::string& what, int round, double seconds, uint64_t bytes,
            const weights::Fingerprint& fingerprint) {
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  fmt::print("{} round {}: {:.2f} GB in {:.3f} s, {:.1f} GB/s ({})\n", what, round, gigabytes,
             seconds, gigabytes / seconds, fingerprint.to_string());
  std::fflush(stdout);
}

// Files of a folder that write() made, or those that were named.
std::vector<models::PartFiles> network_files(const std::vector<std::string>& paths) {
  std::vector<models::PartFiles> files;
  for (const char* part : {"transformer", "unconditional_transformer"}) {
    for (const fs::path& file :
         {fs::path(paths[0]) / (std::string(part) + ".safetensors"), fs::path(paths[0]) / part}) {
      if (paths.size() == 1 && fs::exists(file)) files.push_back({file.string(), ""});
    }
  }
  if (!files.empty()) return files;
  for (const std::string& path : paths) files.push_back({path, ""});
  return files;
}

void load_transformers(const std::vector<std::string>& paths, const LoadBenchOptions& options) {
  const auto backend = select_backend(
      {.device = options.get("device", "auto"), .threads = options.number("threads", 0)});
  const nn::Context ctx{*backend, DType::bf16};
  const std::vector<models::PartFiles> files = network_files(paths);
  for (int round = 1; round <= options.number("rounds", 3); ++round) {
    weights::Fingerprint fingerprint;
    uint64_t bytes = 0;
    std::vector<std::unique_ptr<ideogram4::Transformer>> networks;
    std::vector<std::unique_ptr<engine::PartStore>> stores;
    const Stopwatch watch;
    for (const bool conditional : {true, false}) {
      if (!conditional && options.get("once", "") == "yes") continue;
      networks.push_back(std::make_unique<ideogram4::Transformer>(
          conditional ? files.front() : files.back(), conditional));
      stores.push_back(
          std::make_unique<engine::PartStore>(*networks.back(), ctx, Residency::device));
      stores.back()->rules().int8 = options.get("float", "") != "yes";
      uint64_t total = 0;
      stores.back()->load([&](uint64_t, uint64_t all) { total = all; });
      fingerprint.add(stores.back()->fingerprint());
      bytes += total;
    }
    backend->synchronize();
    report("transformers", round, watch.microseconds() * 1e-6, bytes, fingerprint);
    stores.clear();
  }
  fmt::print("{}: peak {:.2f} GB\n", backend->description(),
             static_cast<double>(backend->memory().peak) * 1e-9);
}

void run_text(const std::string& path, const LoadBenchOptions& options) {
  const auto backend = select_backend(
      {.device = options.get("device", "auto"), .threads = options.number("threads", 0)});
  nn::Context ctx{*backend, DType::bf16};
  std::vector<int32_t> tokens;
  for (int i = 0; i < options.number("tokens", 300); ++i) tokens.push_back(17 * i % 100'000);
  for (int round = 1; round <= options.number("rounds", 3); ++round) {
    const Stopwatch watch;
    qwen3::TextEncoder encoder(path, ideogram4::kTappedLayers);
    engine::PartStore store(encoder, ctx, Residency::streamed);
    store.rules().int8 = false;
    encoder.encode(ctx, tokens);
    const double seconds = watch.microseconds() * 1e-6;
    uint64_t bytes = 0;
    for (const auto& layer : encoder.source().layers()) {
      for (const auto& [name, entry] : layer.checkpoint->tensors()) bytes += entry.info->bytes();
    }
    report("text encoder", round, seconds, bytes, store.fingerprint());
  }
  fmt::print("{}: peak {:.2f} GB\n", backend->description(),
             static_cast<double>(backend->memory().peak) * 1e-9);
}

// What a picture costs beside its steps and its decoding, in an engine that has made one.
void run_engine(const std::string& model, const LoadBenchOptions& options) {
  ModelOptions chosen;
  chosen.model = model;
  chosen.device = options.get("device", "auto");
  chosen.threads = options.number("threads", 0);
  const Stopwatch load;
  Engine engine(chosen);
  fmt::print("engine: loaded in {:.3f} s\n{}", load.microseconds() * 1e-6,
             plan_text(engine.info()));
  PictureRequest request;
  request.preset = "turbo";
  const auto make = [&](const char* what, const std::string& caption, PictureSize size) {
    request.caption = wrap_plain_text(caption);
    request.size = size;
    ++request.seed;
    int previews = 0;
    const Stopwatch watch;
    const RenderReport report =
        engine.render(request, {.preview = options.get("preview", "") == "yes"
                                               ? [&](const Preview&) { ++previews; }
                                               : std::function<void(const Preview&)>()});
    const double all = watch.microseconds() * 1e-6;
    fmt::print(
        "{:<24} {:6.3f} s: steps {:.3f}, decoding {:.3f}, text {:.3f}, the rest {:.3f}; {} "
        "previews, peak {:.2f} GB\n",
        what, all, report.denoise_s, report.decode_s, report.text_s,
        all - report.denoise_s - report.decode_s - report.text_s, previews,
        static_cast<double>(report.peak_bytes) * 1e-9);
    std::fflush(stdout);
  };
  make("the first picture", "a red fox in snow", {1024, 1024});
  make("another seed", "a red fox in snow", {1024, 1024});
  make("another seed", "a red fox in snow", {1024, 1024});
  make("another caption", "a blue house by the sea, in the evening", {1024, 1024});
  make("another size", "a blue house by the sea, in the evening", {768, 1280});
  make("a caption that was there", "a red fox in snow", {1024, 1024});
}

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  LoadBenchOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) {
      words.push_back(arguments[i]);
    } else if (arguments[i] == "--float" || arguments[i] == "--once" ||
               arguments[i] == "--preview") {
      options.values[arguments[i].substr(2)] = "yes";
    } else {
      check(i + 1 < arguments.size(), "{} needs a value", arguments[i]);
      options.values[arguments[i].substr(2)] = arguments[i + 1];
      ++i;
    }
  }
  check(words.size() >= 2, "load_bench write|transformers|text ..., see the top of its source");
  ThreadPool pool(options.number("threads", 0));
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "write" && words.size() == 3) {
    write(words[1], words[2], options.number("layers", 34), pool);
  } else if (words[0] == "transformers") {
    load_transformers(rest, options);
  } else if (words[0] == "engine") {
    run_engine(words[1], options);
  } else if (words[0] == "text") {
    run_text(words[1], options);
  } else {
    fail("load_bench: {} is unknown", words[0]);
  }
  return 0;
}

}  // namespace
}  // namespace octet

int main(int count, char** arguments) try {
  return octet::run({arguments + 1, arguments + count});
} catch (const std::exception& error) {
  std::fprintf(stderr, "load_bench: %s\n", error.what());
  return 1;
}
