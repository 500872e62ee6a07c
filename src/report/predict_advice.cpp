#include "report/predict_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "octet/tools/map.h"
#include "report/text.h"

namespace octet::report {
namespace {

// A step of both networks, or a linear where there are no steps.
struct Times {
  double int8 = 0, bf16 = 0, fp8 = 0;
};

std::vector<Times> times_of(const CardPrediction& card) {
  std::vector<Times> times;
  for (const PredictedStep& step : card.steps) {
    times.push_back({step.int8_ms, step.bf16_ms, step.fp8_ms});
  }
  if (!times.empty()) return times;
  for (const PredictedLinear& each : card.linears) {
    times.push_back({each.int8_us, each.bf16_us, each.fp8_us});
  }
  return times;
}

// How many times as fast as bf16 a path is, over some cards.
struct Range {
  double least = 0, most = 0;

  void add(double ratio) {
    least = most > 0 ? std::min(least, ratio) : ratio;
    most = std::max(most, ratio);
  }
  // "2.1 to 2.5"; "2.1" where both are
  std::string text() const {
    const std::string from = fmt::format("{:.2f}", least), to = fmt::format("{:.2f}", most);
    return from == to ? to : from + " to " + to;
  }
};

// Whether a path is the fastest of those named in most of the times; not if the card cannot run it.
bool is_best(const CardPrediction& card, double Times::*path,
             std::initializer_list<double Times::*> others) {
  const std::vector<Times> times = times_of(card);
  const auto wins = std::count_if(times.begin(), times.end(), [&](const Times& each) {
    return each.*path > 0 && std::all_of(others.begin(), others.end(), [&](double Times::*other) {
             return each.*other <= 0 || each.*path < each.*other;
           });
  });
  return 2 * wins > std::ssize(times);
}

bool uses_int8(const CardPrediction& card) { return is_best(card, &Times::int8, {&Times::bf16}); }

// Octet has no such path.
bool fp8_is_faster(const CardPrediction& card) {
  return is_best(card, &Times::fp8, {&Times::int8, &Times::bf16});
}

// The cards of one piece of advice.
struct Advice {
  bool int8, fp8;
  std::vector<std::string> ids = {};
  Range int8_gain = {}, fp8_gain = {};

  bool fits(const CardPrediction& card) const {
    return card.not_run.empty() && uses_int8(card) == int8 && fp8_is_faster(card) == fp8;
  }
  void add(const CardPrediction& card) {
    ids.push_back(printable(card.card));
    for (const Times& each : times_of(card)) {
      if (int8 && each.int8 > 0) int8_gain.add(each.bf16 / each.int8);
      if (fp8 && each.fp8 > 0) fp8_gain.add(each.bf16 / each.fp8);
    }
  }
  std::string text(const char* what) const {
    std::string text = fmt::format("{} on {}", int8 ? "INT8" : "bf16", fmt::join(ids, ", "));
    if (int8) text += fmt::format(" ({} {} times as fast as bf16)", what, int8_gain.text());
    if (!fp8) return text;
    return text + fmt::format(
                      ", where FP8, which Octet lacks and other programs have, is {} times "
                      "as fast as bf16",
                      fp8_gain.text());
  }
};

// Pictures of this size stand for all: the README's, or the first that was asked for.
const PredictedStep* usual_step(const CardPrediction& card) {
  constexpr int kUsual = 1024;
  for (const PredictedStep& step : card.steps) {
    if (step.size == kUsual) return &step;
  }
  return card.steps.empty() ? nullptr : &card.steps.front();
}

// What the networks in INT8 do where the card does not hold both.
struct OverBus {
  double needed_bytes;  // to hold both
  double moved_bytes;   // that come in each step, while layers run
  double seconds;       // that a step takes longer
};

// Of a card's memory, buffers and the GPU's context take some when layers do not stay. `octet plan`
// looks closer.
std::optional<OverBus> over_bus(const Prediction& prediction, const CardPrediction& card) {
  constexpr double kBuffers = 1e9;
  const PredictedStep* const step = usual_step(card);
  if (step == nullptr || !card.not_run.empty() || !uses_int8(card)) return std::nullopt;
  const double room = card.memory_gib * 1e9 - kMapReserve;
  for (const PredictedMemory& row : prediction.memory) {
    if (row.path != "int8" || row.size != step->size) continue;
    if (row.both_bytes <= room) return std::nullopt;
    const double moved = row.both_bytes + kBuffers - room;
    const double copies_s = moved / (card.host_gbs * 1e9);
    return OverBus{row.both_bytes, moved, std::max(0.0, copies_s - step->int8_ms * 1e-3)};
  }
  return std::nullopt;
}

constexpr int kSteps = 20;

std::string picture_seconds(double step_s) { return fmt::format("{:.0f} s", kSteps * step_s); }

}  // namespace

std::string advice_text(const std::vector<CardPrediction>& cards) {
  std::string parts;
  for (Advice advice : {Advice{true, false}, {true, true}, {false, false}, {false, true}}) {
    for (const CardPrediction& card : cards) {
      if (advice.fits(card)) advice.add(card);
    }
    if (advice.ids.empty()) continue;
    const char* const what = cards.front().steps.empty() ? "linears" : "steps";
    parts += (parts.empty() ? "" : "; ") + advice.text(what);
  }
  return parts.empty() ? "" : "Use " + parts + ".\n";
}

std::string not_run_text(const std::vector<CardPrediction>& cards) {
  std::string text;
  for (const CardPrediction& card : cards) {
    if (card.not_run.empty()) continue;
    text += fmt::format(
        "{}: Octet does not run on it ({}); of the paths of other programs {} is "
        "predicted to be the fastest\n",
        printable(card.card), printable(card.not_run),
        fp8_is_faster(card) ? "fp8"
        : uses_int8(card)   ? "int8"
                            : "bf16");
  }
  return text;
}

std::string bus_text(const Prediction& prediction) {
  std::string text;
  for (const CardPrediction& card : prediction.cards) {
    const auto bus = over_bus(prediction, card);
    if (!bus) continue;
    text += fmt::format(
        "{} has {:.0f} GB, and both networks in INT8 take {} at {} px: {} of layers wait in host "
        "memory, and come in each step while others run, which adds {:.1f} s; octet plan "
        "has more\n",
        printable(card.card), card.memory_gib,
        human_bytes(static_cast<uint64_t>(bus->needed_bytes)), usual_step(card)->size,
        human_bytes(static_cast<uint64_t>(bus->moved_bytes)), bus->seconds);
  }
  return text;
}

std::string card_lines(const Prediction& prediction) {
  std::string text;
  for (const CardPrediction& card : prediction.cards) {
    if (!card.not_run.empty()) continue;
    const bool int8 = uses_int8(card);
    const char* const path = int8 ? "INT8" : "bf16";
    if (const PredictedStep* const step = usual_step(card)) {
      const auto bus = over_bus(prediction, card);
      const double seconds =
          (int8 ? step->int8_ms : step->bf16_ms) * 1e-3 + (bus ? bus->seconds : 0);
      text += fmt::format("{}: {}, predicted {} s a step at {} px, {} for {} steps{}\n",
                          printable(card.card), path, short_number(seconds), step->size,
                          picture_seconds(seconds), kSteps,
                          bus ? ", with some layers in host memory" : "");
      continue;
    }
    Range gain;
    for (const Times& each : times_of(card)) gain.add(int8 ? each.bf16 / each.int8 : 1);
    text += fmt::format("{}: {}, predicted {} times as fast as bf16\n", printable(card.card), path,
                        gain.text());
  }
  return text;
}

}  // namespace octet::report
