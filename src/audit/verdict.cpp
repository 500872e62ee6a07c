#include <fmt/format.h>

#include <algorithm>

#include "audit/linears.h"

namespace octet::audit {
namespace {

// "9 of 12 linears"
std::string some_of(int64_t some, int64_t all) {
  return fmt::format("{} of {} {}", some, all, all == 1 ? "linear" : "linears");
}

const char* native_type(const LinearCounts& counts) {
  return counts.native_int8 > 0 ? "INT8" : counts.native_fp8 > 0 ? "FP8" : "4-bit";
}

std::string native_headline(const LinearCounts& counts, int64_t native, const char* type) {
  std::string text = fmt::format("{} ran in native {}", some_of(native, counts.all()), type);
  const int64_t rest = counts.all() - native;
  if (rest == 0) return text + ".";
  if (counts.unquantized == rest) {
    return text + fmt::format(
                      "; {} ran in {} without any dequantization: protected layers, or another "
                      "part of the model.",
                      rest, counts.floating);
  }
  return text + fmt::format("; {} ran otherwise, see the table.", rest);
}

std::string fake_headline(const LinearCounts& counts, const char* type) {
  const std::string text = fmt::format("{} ran as {} after dequantization: this is fake {}",
                                       some_of(counts.fake(), counts.all()), counts.floating, type);
  const int64_t rest = counts.all() - counts.fake();
  if (rest == 0) return text + ".";
  return text + fmt::format("; the other {} ran {}.", rest,
                            counts.unquantized == rest ? "in " + counts.floating : "otherwise");
}

std::string unclear_headline(const LinearCounts& counts) {
  const std::string some = some_of(counts.unclear, counts.all());
  switch (counts.doubt) {
    case Doubt::cast_before:
      return fmt::format(
          "{} ran in {} right after something was cast to it: {} fake INT8 or FP8, but without "
          "shapes this is uncertain.",
          some, counts.floating, counts.unclear == counts.all() ? "probably" : "perhaps");
    case Doubt::compiled:
      return fmt::format(
          "{} ran in {} inside compiled code, which hides whether weights were dequantized.", some,
          counts.floating);
    case Doubt::mixed:
      return fmt::format(
          "{} ran in native {}, the others in {}: a fallback, or another part of the model; "
          "without shapes this is uncertain.",
          some_of(counts.native(), counts.all()), native_type(counts), counts.floating);
    default:
      return fmt::format("It is unknown how {} ran: the types of their products are missing.",
                         some);
  }
}

std::string fallback_headline(const LinearCounts& counts) {
  std::string text = fmt::format(
      "Only {} ran in native {}: ", some_of(counts.native(), counts.all()), native_type(counts));
  std::vector<std::string> others;
  const auto add = [&](int64_t count, const std::string& how) {
    if (count > 0) others.push_back(fmt::format("{} {}", count, how));
  };
  add(counts.fake(), "ran as " + counts.floating + " after dequantization");
  add(counts.weight_only, "widened their weights inside the GEMM");
  add(counts.unquantized, "ran in " + counts.floating);
  add(counts.unclear, "are unclear");
  return text + fmt::format("{}; this is a fallback.", fmt::join(others, ", "));
}

}  // namespace

void count(LinearCounts& counts, AuditVerdict verdict, int64_t calls) {
  switch (verdict) {
    case AuditVerdict::native_int8: counts.native_int8 += calls; break;
    case AuditVerdict::native_fp8: counts.native_fp8 += calls; break;
    case AuditVerdict::native_four_bit: counts.native_four_bit += calls; break;
    case AuditVerdict::weight_only: counts.weight_only += calls; break;
    case AuditVerdict::fake_int8: counts.fake_int8 += calls; break;
    case AuditVerdict::fake_fp8: counts.fake_fp8 += calls; break;
    case AuditVerdict::fake_four_bit: counts.fake_four_bit += calls; break;
    case AuditVerdict::unquantized: counts.unquantized += calls; break;
    default: counts.unclear += calls;
  }
}

AuditVerdict judge(const LinearCounts& counts) {
  const int64_t native = counts.native();
  if (counts.all() == 0) return AuditVerdict::no_linears;
  if (native > 0) {
    const double mixed = static_cast<double>(counts.beside_native) /
                         static_cast<double>(native + counts.beside_native);
    if (counts.fake() > 0 || counts.weight_only > 0 || mixed > kMostProtected) {
      return AuditVerdict::fallback;
    }
    // Another part of the model, or a fallback: sizes would tell.
    if (counts.unsized > native) return AuditVerdict::unclear;
    const int64_t most = std::max({counts.native_int8, counts.native_fp8, counts.native_four_bit});
    if (most == counts.native_int8) return AuditVerdict::native_int8;
    return most == counts.native_fp8 ? AuditVerdict::native_fp8 : AuditVerdict::native_four_bit;
  }
  if (counts.fake() > 0) {
    const int64_t most = std::max({counts.fake_int8, counts.fake_fp8, counts.fake_four_bit});
    if (most == counts.fake_int8) return AuditVerdict::fake_int8;
    return most == counts.fake_fp8 ? AuditVerdict::fake_fp8 : AuditVerdict::fake_four_bit;
  }
  if (counts.weight_only > 0) return AuditVerdict::weight_only;
  // A few that are unclear do not hide what the others are.
  return counts.unclear * 10 >= counts.all() ? AuditVerdict::unclear : AuditVerdict::unquantized;
}

std::string headline_of(AuditVerdict verdict, const LinearCounts& counts) {
  switch (verdict) {
    case AuditVerdict::native_int8: return native_headline(counts, counts.native_int8, "INT8");
    case AuditVerdict::native_fp8: return native_headline(counts, counts.native_fp8, "FP8");
    case AuditVerdict::native_four_bit:
      return native_headline(counts, counts.native_four_bit, "4-bit");
    case AuditVerdict::fallback: return fallback_headline(counts);
    case AuditVerdict::fake_int8: return fake_headline(counts, "INT8");
    case AuditVerdict::fake_fp8: return fake_headline(counts, "FP8");
    case AuditVerdict::fake_four_bit: return fake_headline(counts, "4-bit");
    case AuditVerdict::weight_only:
      return fmt::format(
          "{} read quantized weights, widened them inside the GEMM and multiplied in {}: less "
          "memory, but no INT8 units.",
          some_of(counts.weight_only, counts.all()), counts.floating);
    case AuditVerdict::unquantized:
      return fmt::format(
          "{} ran in {}, and no weight {}was dequantized: this run is not quantized.",
          some_of(counts.unquantized, counts.all()), counts.floating,
          counts.unclear > 0 ? "of these " : "");
    case AuditVerdict::no_linears:
      return "No linear ran: nothing in these files multiplies by a weight.";
    case AuditVerdict::unclear: break;
  }
  return unclear_headline(counts);
}

AuditVerdict judge(const std::vector<LogFinding>& log) {
  const auto says = [&](AuditVerdict verdict) {
    return std::any_of(log.begin(), log.end(), [&](const LogFinding& finding) {
      return finding.verdict == word_of(verdict);
    });
  };
  const bool is_mixed = says(AuditVerdict::native_int8) && says(AuditVerdict::fake_int8);
  if (is_mixed) return AuditVerdict::fallback;
  for (const AuditVerdict verdict :
       {AuditVerdict::fallback, AuditVerdict::fake_int8, AuditVerdict::native_int8,
        AuditVerdict::native_fp8, AuditVerdict::weight_only, AuditVerdict::unquantized}) {
    if (says(verdict)) return verdict;
  }
  return AuditVerdict::unclear;
}

std::string headline_of(AuditVerdict verdict, const std::vector<LogFinding>& log) {
  const auto first = [&](AuditVerdict said) {
    return std::find_if(log.begin(), log.end(),
                        [&](const LogFinding& each) { return judge({each}) == said; });
  };
  auto finding = verdict == AuditVerdict::unclear ? log.end() : first(verdict);
  // One line tells of native products and another of fake ones.
  if (verdict == AuditVerdict::fallback && finding == log.end()) {
    finding = first(AuditVerdict::fake_int8);
  }
  if (finding != log.end()) return fmt::format("By its log: {}", finding->meaning);
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
