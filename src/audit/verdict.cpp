#include "audit/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace octet::audit {
namespace {

// A kind of linears that is rarer than this says nothing about the others.
constexpr double kFewest = 0.1;
// With more of its time in unknown kernels, what ran as known ones is not the run.
constexpr double kMostUnknown = 0.1, kMostUnknownBesideNative = 0.5;
constexpr double kMostUnclearBesideNative = 0.25;

constexpr AuditVerdict kNative[] = {AuditVerdict::native_int8, AuditVerdict::native_fp8,
                                    AuditVerdict::native_four_bit};
constexpr AuditVerdict kFake[] = {AuditVerdict::fake_int8, AuditVerdict::fake_fp8,
                                  AuditVerdict::fake_four_bit};

AuditVerdict most_of(const LinearCounts& counts, const AuditVerdict (&verdicts)[3]) {
  return *std::max_element(
      std::begin(verdicts), std::end(verdicts),
      [&](AuditVerdict a, AuditVerdict b) { return counts.of(a).calls < counts.of(b).calls; });
}

// "INT8" of native_int8 and of fake_int8
const char* type_of(AuditVerdict verdict) {
  switch (verdict) {
    case AuditVerdict::native_fp8:
    case AuditVerdict::fake_fp8: return "FP8";
    case AuditVerdict::native_four_bit:
    case AuditVerdict::fake_four_bit: return "4-bit";
    default: return "INT8";
  }
}

double share_of(const Tally& some, const Tally& all) {
  if (all.us > 0) return some.us / all.us;
  return all.calls > 0 ? static_cast<double>(some.calls) / static_cast<double>(all.calls) : 0;
}

std::string percent(double share) {
  const double value = 100 * share;
  return value > 0 && value < 1 ? "less than 1 %" : fmt::format("{:.0f} %", value);
}

// "9 of 12 linears, 80 % of their time,"; where all of them are meant: "12 of 12 linears".
std::string some_of(const Tally& some, const Tally& all) {
  const std::string text =
      fmt::format("{} of {} {}", some.calls, all.calls, all.calls == 1 ? "linear" : "linears");
  if (some.calls == all.calls || !(all.us > 0)) return text;
  return fmt::format("{}, {} of their time,", text, percent(share_of(some, all)));
}

// "the other 5 ran in bf16"; "of the others, 3 ran in bf16, 2 widened their weights inside the
// GEMM"
std::string others_text(const LinearCounts& counts, bool with_native, bool with_fake) {
  std::vector<std::string> others;
  int64_t last = 0;
  const auto add = [&](int64_t calls, const std::string& how) {
    if (calls == 0) return;
    others.push_back(fmt::format("{} {}", calls, how));
    last = calls;
  };
  if (with_native) {
    add(counts.native().calls, fmt::format("ran in native {}", type_of(most_of(counts, kNative))));
  }
  if (with_fake) add(counts.fake().calls, "ran as " + counts.floating + " after dequantization");
  add(counts.of(AuditVerdict::weight_only).calls, "widened their weights inside the GEMM");
  add(counts.of(AuditVerdict::unquantized).calls, "ran in " + counts.floating);
  add(counts.of(AuditVerdict::unclear).calls,
      counts.of(AuditVerdict::unclear).calls == 1 ? "is unclear" : "are unclear");
  if (others.size() != 1) return fmt::format("of the others, {}", fmt::join(others, ", "));
  if (last == 1) return "the other" + others[0].substr(1);
  return "the other " + others[0];
}

std::string native_headline(const LinearCounts& counts, AuditVerdict verdict) {
  const Tally native = counts.of(verdict), all = counts.all();
  std::string text = fmt::format("{} ran in native {}", some_of(native, all), type_of(verdict));
  const int64_t rest = all.calls - native.calls;
  if (rest == 0) return text + ".";
  if (counts.of(AuditVerdict::unquantized).calls == rest) {
    return text + fmt::format(
                      "; {} ran in {} without any dequantization: protected layers, or another "
                      "part of the model.",
                      rest, counts.floating);
  }
  if (counts.native().calls == all.calls) {
    return text + fmt::format("; the other {} ran natively in another type.", rest);
  }
  return text + fmt::format("; {}.", others_text(counts, false, true));
}

std::string fake_headline(const LinearCounts& counts, AuditVerdict verdict) {
  const Tally fake = counts.fake(), all = counts.all();
  const std::string text = fmt::format("{} ran as {} after dequantization: this is fake {}",
                                       some_of(fake, all), counts.floating, type_of(verdict));
  if (fake.calls == all.calls) return text + ".";
  return text + fmt::format("; {}.", others_text(counts, true, false));
}

std::string unclear_headline(Doubt doubt, const LinearCounts& counts) {
  const Tally unclear = counts.of(AuditVerdict::unclear), all = counts.all();
  const std::string some = some_of(unclear, all);
  switch (doubt) {
    case Doubt::cast_before:
      return fmt::format(
          "{} ran in {} right after something was cast to it: {} fake INT8 or FP8, but without "
          "types and shapes this is uncertain.",
          some, counts.floating, unclear.calls == all.calls ? "probably" : "perhaps");
    case Doubt::cast_beside:
      return fmt::format(
          "{} ran in {}, and something was cast as often: perhaps fake INT8 or FP8, but sums "
          "without types and order do not tell.",
          some, counts.floating);
    case Doubt::compiled:
      return fmt::format(
          "{} ran in {} inside compiled code, which hides whether weights were dequantized.", some,
          counts.floating);
    case Doubt::size_alone:
      return fmt::format(
          "{} ran in {} after codes of their weights' size became {}: fake INT8 or FP8, or another "
          "tensor of that size.",
          some, counts.floating, counts.floating);
    case Doubt::looked_up:
      return fmt::format(
          "{} ran in {} after numbers were looked up in a small table: perhaps weights of which "
          "codes are kept.",
          some, counts.floating);
    case Doubt::few_pairs:
      return fmt::format(
          "Only {} ran in {} after a tensor of codes like their weight was widened, which is too "
          "few to tell fake INT8 or FP8 from chance.",
          some_of({unclear.calls + counts.fake().calls, unclear.us + counts.fake().us}, all),
          counts.floating);
    case Doubt::kept:
      return fmt::format(
          "{} ran in {} after their weights were dequantized, and went on without: dequantized "
          "once, as when a model is loaded, or quantized in these steps alone.",
          some, counts.floating);
    case Doubt::mixed:
      if (counts.native().calls == 0) {
        return fmt::format(
            "{} widened their weights inside the GEMM, {}: a fallback, or intended, as of other "
            "parts of a model.",
            some_of(counts.of(AuditVerdict::weight_only), all), others_text(counts, false, true));
      }
      return fmt::format(
          "{} ran in native {}, {}: a fallback, or intended, as of other parts of a model.",
          some_of(counts.native(), all), type_of(most_of(counts, kNative)),
          others_text(counts, false, true));
    case Doubt::apart:
      return fmt::format(
          "{} ran in native {}, and {} as {} after dequantization, which may be another model: "
          "named ranges would tell.",
          some_of(counts.native(), all), type_of(most_of(counts, kNative)), counts.fake().calls,
          counts.floating);
    case Doubt::unknown_kernels:
      return fmt::format(
          "{} of the time that may be of linears went into unknown kernels ({}), so the {} known "
          "linears do not tell how this ran.",
          percent(counts.unknown_share()), fmt::join(counts.unknown_names, ", "), all.calls);
    case Doubt::frequent_unknown:
      return fmt::format(
          "{} ran in {}, but an unknown kernel ({}) ran about as often, and may have dequantized "
          "their weights.",
          some_of(counts.of(AuditVerdict::unquantized), all), counts.floating,
          counts.frequent_unknown);
    default:
      return fmt::format("It is unknown how {} ran: the types of their products are missing.",
                         some);
  }
}

}  // namespace

Tally LinearCounts::native() const {
  Tally sum;
  for (const AuditVerdict verdict : kNative) sum += of(verdict);
  return sum;
}

Tally LinearCounts::fake() const {
  Tally sum;
  for (const AuditVerdict verdict : kFake) sum += of(verdict);
  return sum;
}

Tally LinearCounts::all() const {
  Tally sum;
  for (const Tally& each : by) sum += each;
  return sum;
}

double LinearCounts::unknown_share() const {
  return unknown_us > 0 ? unknown_us / (unknown_us + all().us) : 0;
}

// Accusations first, each with what it needs; whatever is left over decides nothing by itself.
AuditVerdict judge(const LinearCounts& counts, Doubt& doubt) {
  const Tally all = counts.all(), native = counts.native(), fake = counts.fake();
  const Tally weight_only = counts.of(AuditVerdict::weight_only);
  const Tally unclear = counts.of(AuditVerdict::unclear);
  const auto left_open = [&](Doubt why) {
    doubt = why;
    return AuditVerdict::unclear;
  };
  const auto counts_for = [&](const Tally& some) {
    return static_cast<double>(some.calls) >= kFewest * static_cast<double>(all.calls);
  };
  if (all.calls == 0) return AuditVerdict::no_linears;
  // What ran as known kernels is not the run; what it was, nobody knows.
  const bool hidden = counts.unknown_share() > kMostUnknownBesideNative;
  if (hidden && native.calls + fake.calls > 0) return left_open(Doubt::unknown_kernels);
  if (native.calls > 0) {
    if (fake.calls > 0 && counts.is_one_model) return AuditVerdict::fallback;
    if (fake.calls > 0) return left_open(Doubt::apart);
    const bool unsized = counts.unsized >= native.calls &&
                         share_of(counts.of(AuditVerdict::unquantized), all) > kFewest;
    const bool mixed = share_of(weight_only, all) > kFewest ||
                       share_of(unclear, all) > kMostUnclearBesideNative ||
                       counts.beside_native >= native.calls || unsized;
    return mixed ? left_open(Doubt::mixed) : most_of(counts, kNative);
  }
  if (counts_for(fake) && share_of(fake, all) >= kFewest) return most_of(counts, kFake);
  if (counts_for(fake) || share_of(fake, all) >= kFewest) return left_open(Doubt::few_pairs);
  // A few that are unclear do not hide what the others are.
  if (unclear.calls > weight_only.calls && counts_for(unclear)) return left_open(counts.doubt);
  const bool is_weight_only = weight_only.calls > 0 && counts_for(weight_only);
  if (is_weight_only && share_of(weight_only, all) < kFewest) return left_open(Doubt::mixed);
  const double most = is_weight_only ? kMostUnknownBesideNative : kMostUnknown;
  if (counts.unknown_share() > most) return left_open(Doubt::unknown_kernels);
  if (is_weight_only) return AuditVerdict::weight_only;
  if (!counts.frequent_unknown.empty()) return left_open(Doubt::frequent_unknown);
  return AuditVerdict::unquantized;
}

std::string headline_of(AuditVerdict verdict, Doubt doubt, const LinearCounts& counts) {
  const Tally all = counts.all();
  switch (verdict) {
    case AuditVerdict::native_int8:
    case AuditVerdict::native_fp8:
    case AuditVerdict::native_four_bit: return native_headline(counts, verdict);
    case AuditVerdict::fallback:
      return fmt::format("Only {} ran in native {}, {}: this is a fallback.",
                         some_of(counts.native(), all), type_of(most_of(counts, kNative)),
                         others_text(counts, false, true));
    case AuditVerdict::fake_int8:
    case AuditVerdict::fake_fp8:
    case AuditVerdict::fake_four_bit: return fake_headline(counts, verdict);
    case AuditVerdict::weight_only:
      return fmt::format(
          "{} read quantized weights, widened them inside the GEMM and multiplied in {}: less "
          "memory, but no INT8 units.",
          some_of(counts.of(verdict), all), counts.floating);
    case AuditVerdict::unquantized:
      return fmt::format(
          "{} ran in {}, and no weight {}was dequantized: this run is not quantized.",
          some_of(counts.of(verdict), all), counts.floating,
          counts.of(verdict).calls < all.calls ? "of these " : "");
    case AuditVerdict::no_linears:
      return "No linear ran: nothing in these files multiplies by a weight.";
    case AuditVerdict::unclear: break;
  }
  return unclear_headline(doubt, counts);
}

// Lines that contradict each other may be of two models, and what was said to be quantized without
// saying how may be the one that matters.
AuditVerdict judge(const std::vector<LogFinding>& log) {
  const auto says = [&](std::string_view word) {
    return std::any_of(log.begin(), log.end(),
                       [&](const LogFinding& finding) { return finding.verdict == word; });
  };
  std::vector<AuditVerdict> native, fake;
  for (const AuditVerdict verdict : kNative) {
    if (says(word_of(verdict))) native.push_back(verdict);
  }
  for (const AuditVerdict verdict : kFake) {
    if (says(word_of(verdict))) fake.push_back(verdict);
  }
  if (says(word_of(AuditVerdict::fallback))) return AuditVerdict::fallback;
  // Native in several types is native all the same: layers of one checkpoint may differ.
  const size_t kinds =
      (native.empty() ? 0 : 1) + fake.size() + (says(word_of(AuditVerdict::weight_only)) ? 1 : 0);
  const bool is_other_model =
      says("quantized") && (!fake.empty() || says(word_of(AuditVerdict::unquantized)));
  // Each line of these is of one linear: what most of them are not, the run is not.
  const auto lines = [&](std::span<const AuditVerdict> verdicts) {
    int64_t count = 0;
    for (const LogFinding& finding : log) {
      const bool counts = std::any_of(verdicts.begin(), verdicts.end(), [&](AuditVerdict verdict) {
        return finding.verdict == word_of(verdict);
      });
      if (counts) count += finding.count;
    }
    return count;
  };
  constexpr std::array kFloats = {AuditVerdict::unquantized};
  const bool mostly_floats = lines(kFloats) > lines(native);
  if (kinds > 1 || is_other_model || (!native.empty() && mostly_floats)) {
    return AuditVerdict::unclear;
  }
  if (!native.empty()) return native[0];
  if (!fake.empty()) return fake[0];
  for (const AuditVerdict verdict : {AuditVerdict::weight_only, AuditVerdict::unquantized}) {
    if (says(word_of(verdict))) return verdict;
  }
  return AuditVerdict::unclear;
}

std::string headline_of(AuditVerdict verdict, const std::vector<LogFinding>& log) {
  const auto first = [&](AuditVerdict said) {
    return std::find_if(log.begin(), log.end(),
                        [&](const LogFinding& each) { return judge({each}) == said; });
  };
  const auto finding = verdict == AuditVerdict::unclear ? log.end() : first(verdict);
  if (finding != log.end()) return fmt::format("By its log: {}", finding->meaning);
  const bool contradicts = std::any_of(log.begin(), log.end(), [](const LogFinding& each) {
    return judge({each}) != AuditVerdict::unclear;
  });
  if (contradicts) {
    return "Lines of the log tell of different kernels, perhaps of two models; record a trace to "
           "know.";
  }
  return "The log does not say which kernels ran; record a trace to know.";
}

std::string how_it_ran(AuditVerdict verdict, ScalarType stored, const std::string& floating) {
  switch (verdict) {
    case AuditVerdict::native_int8: return "native INT8";
    case AuditVerdict::native_fp8: return "native FP8";
    case AuditVerdict::native_four_bit: return "native 4-bit";
    case AuditVerdict::weight_only: return "weights widened inside the GEMM";
    case AuditVerdict::unquantized: return floating;
    case AuditVerdict::fake_int8:
    case AuditVerdict::fake_fp8:
    case AuditVerdict::fake_four_bit: {
      const bool told = stored != ScalarType::unknown;
      const std::string type = verdict == AuditVerdict::fake_four_bit ? "4-bit"
                               : told                                 ? std::string(name_of(stored))
                                                                      : "quantized";
      return fmt::format("{} weight dequantized, then a {} GEMM", type, floating);
    }
    default: return fmt::format("{} GEMM, perhaps after a dequantization", floating);
  }
}

}  // namespace octet::audit
