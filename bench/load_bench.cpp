// How fast models are loaded from files in the page cache to a device.
//
//   load_bench write int8|fp8|text_fp8|text_bf16 FOLDER   full-size files of random numbers
//   load_bench write model_int8|model_fp8 FOLDER          a whole model of them
//   load_bench transformers FOLDER|FILE... [options]      both networks, as the program loads them
//   load_bench text PATH [options]                        one pass of the text encoder
//   load_bench engine FOLDER [options]                    an engine, and the pictures after the
//   first options: --device auto|cpu|cuda  --rounds 3  --threads 0  --tokens 300
//            --layers 34: of each network that write makes
//            --float: networks are loaded for floating point
//            --once: only the conditional network
//            --preview: with engine, a preview after each step
//
// Each round prints its seconds and GB/s; the first one includes one-time costs of a process.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "devices/select.h"
#include "engine/part_store.h"
#include "full_size_files.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"
#include "octet/caption.h"
#include "octet/engine.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

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

// The files of a folder made by write(), or those that were named.
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

// What a picture costs besides its steps and its decoding, in an engine that has made one.
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
  make("an earlier caption", "a red fox in snow", {1024, 1024});
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
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "write" && words.size() == 3) {
    const int layers = options.number("layers", 34);
    ThreadPool pool(options.number("threads", 0));
    bench::write_full_size(words[1], words[2], layers, pool);
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
