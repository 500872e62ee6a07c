#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/json_value.h"
#include "formats/text.h"

namespace octet::audit {
namespace {

using nlohmann::json;

// Reports have a few rows for each class of layers, and `certify` one for each picture.
constexpr size_t kMaxReport = size_t{32} << 20;

std::string read_report_text(ByteStream& bytes) {
  std::string text;
  size_t count = 0;
  do {
    check(text.size() <= kMaxReport, "{}: is longer than {} MB, which no report is", bytes.path(),
          kMaxReport >> 20);
    const size_t size = text.size();
    text.resize(size + 65536);
    count = bytes.read(std::span(text).subspan(size));
    text.resize(size + count);
  } while (count > 0);
  return text;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double amount_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return value >= 0 && value < 1e18 ? value : 0;
}

// Objects of a list, where there is one.
template <class Visit>
void for_rows(const json& object, const char* key, const Visit& visit) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return;
  for (const json& row : *found) {
    if (row.is_object()) visit(row);
  }
}

// The classes of ops other than linears, which `kernels` has with their names.
std::optional<WorkClass> work_of_op(std::string_view op) {
  if (op == "attention") return WorkClass::attention;
  if (op == "norm") return WorkClass::norm;
  if (op == "quantize") return WorkClass::quantize_activation;
  if (op == "convolution") return WorkClass::convolution;
  if (op == "rotary" || op == "activation" || op == "residual") return WorkClass::elementwise;
  if (op == "gemm" || op == "matmul") return std::nullopt;
  return WorkClass::other;
}

class OctetReport {
 public:
  explicit OctetReport(ByteStream& bytes) {
    trace_.path = bytes.path();
    const json report = parse_json(read_report_text(bytes), bytes.path());
    check(report.is_object(), "{}: expected an object, got {}", bytes.path(), describe(report));
    const std::string schema = text_of(report, "schema");
    trace_.format = fmt::format("report of Octet, {}", one_line(schema));
    trace_.device = one_line(text_of(report, "device"));
    if (schema.starts_with("octet.compare/")) {
      add_side(report, "b");
    } else if (schema.starts_with("octet.certify/")) {
      add_side(report, "checkpoint");
    } else if (schema.starts_with("octet.bench.step/")) {
      const std::string floating =
          text_of(report, "linears") == "fake" ? "fake int8" : text_of(report, "dtype");
      for_rows(report, "branches", [&](const json& branch) { add_branch(branch, floating); });
    } else if (schema.starts_with("octet.bench.gemm/")) {
      for_rows(report, "rows", [&](const json& row) { add_gemm(row); });
    } else {
      add_kernels(report);
    }
    check(!trace_.reported.empty(), "{}: is a report ({}) that names no kernels", bytes.path(),
          in_quotes(schema));
  }

  Trace take() { return std::move(trace_); }

 private:
  void add_side(const json& report, const char* side) {
    const auto found = report.find(side);
    if (found == report.end() || !found->is_object()) return;
    if (trace_.device.empty()) trace_.device = one_line(text_of(*found, "device"));
    add_kernels(*found);
  }

  void add(const json& row, std::string layer, std::string path, const char* calls, double us) {
    const auto count = static_cast<int64_t>(amount_of(row, calls));
    trace_.reported.push_back({std::move(layer), text_of(row, "kernel"), std::move(path),
                               std::min(count, TraceTables::kMaxCalls), us});
  }

  void add_kernels(const json& report) {
    for_rows(report, "kernels", [&](const json& row) {
      const std::string layer = text_of(row, "layer");
      // Attention has a row of its own where it runs in INT8; its time is among the ops.
      if (layer == "attention") return;
      add(row, layer, text_of(row, "path"), "launches", amount_of(row, "us"));
    });
    for_rows(report, "ops", [&](const json& row) { add_op(row, amount_of(row, "us")); });
  }

  // The path follows from the op: `gemm` is the INT8 product, `matmul` the one of activations'
  // type.
  void add_branch(const json& branch, const std::string& floating) {
    for_rows(branch, "kernels", [&](const json& row) {
      const std::string op = text_of(row, "op");
      if (op != "gemm" && op != "matmul") return;
      add(row, text_of(row, "layer"), op == "gemm" ? "int8" : floating, "calls",
          1e3 * amount_of(row, "ms"));
    });
    for_rows(branch, "ops", [&](const json& row) { add_op(row, 1e3 * amount_of(row, "ms")); });
  }

  void add_gemm(const json& row) {
    const std::string layer = fmt::format("{} x {} x {}", static_cast<int64_t>(amount_of(row, "m")),
                                          static_cast<int64_t>(amount_of(row, "n")),
                                          static_cast<int64_t>(amount_of(row, "k")));
    add(row, layer, text_of(row, "path"), "", amount_of(row, "us"));
    trace_.reported.back().calls = 1;
    if (const double us = amount_of(row, "quantize_us"); us > 0) {
      trace_.reported_us[std::string(key_of(WorkClass::quantize_activation))] += us;
    }
  }

  void add_op(const json& row, double us) {
    const auto work = work_of_op(text_of(row, "op"));
    if (work && us > 0) trace_.reported_us[std::string(key_of(*work))] += us;
  }

  Trace trace_;
};

}  // namespace

bool is_octet_report(std::string_view head) {
  size_t at = 0;
  while ((at = head.find("\"schema\"", at)) != head.npos) {
    at += 8;
    const size_t colon = head.find_first_not_of(" \t\r\n", at);
    if (colon == head.npos || head[colon] != ':') continue;
    const size_t value = head.find_first_not_of(" \t\r\n", colon + 1);
    if (value != head.npos && head.substr(value).starts_with("\"octet.")) return true;
  }
  return false;
}

Trace read_octet_report(ByteStream& bytes) { return OctetReport(bytes).take(); }

}  // namespace octet::audit
