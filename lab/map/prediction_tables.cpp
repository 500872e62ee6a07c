// Prints the tables of docs/deployment-map.md that come from the model, as Markdown (those that
// were measured: measured_tables.py):
//
//   g++ -std=c++20 -Iinclude lab/map/prediction_tables.cpp build/liboctet_core.a -lfmt -lpng -lz
//   -lsqlite3 -lutf8proc -lcurl -lcrypto -lpthread && ./a.out
//
// Run it again whenever src/measure/predict/measured_h200.json or cards.json changes.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string>

#include "octet/tools/predict.h"

namespace {

std::string seconds(double ms, int steps) {
  if (ms <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", ms * steps < 1e5 ? 1 : 0, ms * steps * 1e-3);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : value < 1000 ? 1 : 0, value);
  return text;
}

std::string milliseconds(double ms) { return ms > 0 ? std::to_string(std::lround(ms)) : "-"; }

// "NVIDIA GeForce RTX 3090" is RTX 3090, "NVIDIA A100 SXM 80 GB" A100.
std::string short_name(std::string name) {
  for (const std::string word : {"NVIDIA ", "GeForce ", "Tesla ", "AMD Instinct "}) {
    if (name.starts_with(word)) name.erase(0, word.size());
  }
  return name.substr(0, name.find(" SXM"));
}

std::string way_name(const std::string& way) {
  if (way == "fake") return "fake INT8";
  if (way == "bf16") return way;
  std::string upper = way;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return upper;
}

std::string list(const std::vector<int>& sizes) {
  return sizes.empty() ? "none" : std::to_string(sizes.front()) + " GB";
}

}  // namespace

int main() {
  auto cards = octet::predict_cards({});
  std::ranges::sort(cards, {}, [](const auto& card) { return short_name(card.name); });
  for (const int size : {768, 1024, 2048}) {
    std::printf("\n%d px: a step, ms, predicted\n\n", size);
    std::puts(
        "| card | INT8 | INT8, INT8 scores | bf16 | FP8 | NF4 | fake INT8 | fastest | its 20 / 48 "
        "steps, s |");
    std::puts("|---|---:|---:|---:|---:|---:|---:|---|---:|");
    for (const auto& card : cards) {
      for (const auto& step : card.steps) {
        if (step.size != size) continue;
        const double best = step.best == "fp8"    ? step.fp8_ms
                            : step.best == "bf16" ? step.bf16_ms
                                                  : step.int8_ms;
        std::printf(
            "| %s | %s | %s | %s | %s | %s | %s | %s | %s / %s |\n", short_name(card.name).c_str(),
            milliseconds(step.int8_ms).c_str(), milliseconds(step.int8_attention_ms).c_str(),
            milliseconds(step.bf16_ms).c_str(), milliseconds(step.fp8_ms).c_str(),
            milliseconds(step.nf4_ms).c_str(), milliseconds(step.fake_ms).c_str(),
            way_name(step.best).c_str(), seconds(best, 20).c_str(), seconds(best, 48).c_str());
      }
    }
  }
  std::puts("\nlinears at 1024 px\n");
  std::puts(
      "| card | qkv: INT8 TOPS, GHz | bf16 TFLOPS, GHz | bf16 / INT8: qkv, o, w13, w2 | FP8 / INT8 "
      "| fake / INT8 | kernel of qkv |");
  std::puts("|---|---:|---:|---:|---:|---:|---|");
  for (const auto& card : cards) {
    const octet::PredictedLinear* rows[4] = {};
    int count = 0;
    for (const auto& linear : card.linears) {
      if (linear.size == 1024 && count < 4) rows[count++] = &linear;
    }
    if (rows[0]->int8_us <= 0) {  // Octet does not run there
      std::printf("| %s | - | %.0f, %.2f | - | - | - | - |\n", short_name(card.name).c_str(),
                  rows[0]->bf16_tops, rows[0]->bf16_ghz);
      continue;
    }
    std::printf("| %s | %.0f, %.2f | %.0f, %.2f |", short_name(card.name).c_str(),
                rows[0]->int8_tops, rows[0]->int8_ghz, rows[0]->bf16_tops, rows[0]->bf16_ghz);
    for (int i = 0; i < 4; ++i)
      std::printf("%s %.2f", i ? "," : "", rows[i]->bf16_us / rows[i]->int8_us);
    if (rows[0]->fp8_us > 0) {
      std::printf(" | %.2f |", rows[0]->fp8_us / rows[0]->int8_us);
    } else {
      std::printf(" | - |");
    }
    std::printf(" %.2f | `%s` |\n", rows[0]->fake_us / rows[0]->int8_us, rows[0]->tile.c_str());
  }
  std::puts("\nmemory\n");
  std::puts(
      "| weights | both networks, 1024 / 2048 px | smallest card | one network, 1024 / "
      "2048 px | smallest card |");
  std::puts("|---|---:|---:|---:|---:|");
  const auto small = octet::predict_memory({1024}), large = octet::predict_memory({2048});
  for (size_t i = 0; i < small.size(); ++i) {
    std::printf("| %s | %.1f / %.1f GB | %s / %s | %.1f / %.1f GB | %s / %s |\n",
                way_name(small[i].path).c_str(), small[i].both_bytes * 1e-9,
                large[i].both_bytes * 1e-9, list(small[i].fits_both).c_str(),
                list(large[i].fits_both).c_str(), small[i].one_bytes * 1e-9,
                large[i].one_bytes * 1e-9, list(small[i].fits_one).c_str(),
                list(large[i].fits_one).c_str());
  }
  std::puts("\npublic figures\n");
  std::puts("| figure | published | predicted | error | |\n|---|---:|---:|---:|---|");
  for (const auto& f : octet::check_public_figures()) {
    std::printf("| [%s](%s) | %s %s | %s | %+.0f %% | %s |\n", f.what.c_str(), f.source.c_str(),
                number(f.published).c_str(), f.unit.c_str(), number(f.predicted).c_str(),
                100 * f.error, f.remark.c_str());
  }
  const auto held = octet::leave_one_out();
  double attention = 0;
  for (const auto& f : held.figures) {
    if (f.what.starts_with("attention")) attention = std::max(attention, std::abs(f.error));
  }
  std::printf(
      "\nworst linear %.1f %%, mean %.1f %%, worst attention %.1f %%, worst step %.1f %%, %zu "
      "figures\n",
      100 * held.worst_linear, 100 * held.mean_linear, 100 * attention, 100 * held.worst_step,
      held.figures.size());
  std::puts("| figure | measured | predicted | error |\n|---|---:|---:|---:|");
  for (const auto& f : held.figures) {
    if (f.what.find("step") == std::string::npos && std::abs(f.error) < 0.08) continue;
    std::printf("| %s | %.0f %s | %.0f | %+.1f %% |\n", f.what.c_str(), f.measured, f.unit.c_str(),
                f.predicted, 100 * f.error);
  }
}
