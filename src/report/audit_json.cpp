// An audit as JSON.
#include <nlohmann/json.hpp>

#include "formats/boundary.h"
#include "octet/tools/audit.h"
#include "octet/version.h"

namespace octet {
namespace {

using AuditJson = nlohmann::ordered_json;

template <class Value>
AuditJson if_told(const Value& value) {
  return value == Value{} ? AuditJson(nullptr) : AuditJson(value);
}

AuditJson class_list(const std::vector<AuditShare>& classes) {
  auto list = AuditJson::array();
  for (const AuditShare& each : classes) {
    list.push_back({{"class", each.key},
                    {"name", each.work},
                    {"calls", each.calls},
                    {"us", each.us},
                    {"share", each.share}});
  }
  return list;
}

AuditJson layer_list(const std::vector<AuditLinear>& layers) {
  auto list = AuditJson::array();
  for (const AuditLinear& each : layers) {
    list.push_back({{"layer", if_told(each.layer)},
                    {"m", if_told(each.m)},
                    {"n", if_told(each.n)},
                    {"k", if_told(each.k)},
                    {"verdict", word_of(each.verdict)},
                    {"how", each.how},
                    {"kernel", if_told(each.kernel)},
                    {"class", if_told(each.gemm_key)},
                    {"calls", each.calls},
                    {"gemm_us", each.gemm_us},
                    {"dequantize_us", each.dequantize_us},
                    {"quantize_us", each.quantize_us}});
  }
  return list;
}

AuditJson kernel_list(const std::vector<AuditKernel>& kernels) {
  auto list = AuditJson::array();
  for (const AuditKernel& each : kernels) {
    list.push_back({{"name", each.name},
                    {"op", if_told(each.op)},
                    {"class", each.key},
                    {"library", if_told(each.library)},
                    {"evidence", if_told(each.evidence)},
                    {"shapes", if_told(each.shapes)},
                    {"calls", each.calls},
                    {"us", each.us},
                    {"share", each.share}});
  }
  return list;
}

AuditJson log_list(const std::vector<AuditReport::LogLine>& log) {
  auto list = AuditJson::array();
  for (const AuditReport::LogLine& each : log) {
    list.push_back({{"line", each.line}, {"meaning", each.meaning}, {"count", each.count}});
  }
  return list;
}

AuditJson timeline_json(const AuditTimeline& timeline) {
  if (timeline.us.empty()) return nullptr;
  return {{"start_us", timeline.start_us},
          {"piece_us", timeline.piece_us},
          {"classes", timeline.keys},
          {"us", timeline.us}};
}

}  // namespace

std::string audit_json(const AuditReport& report) try {
  const AuditSaving& saving = report.saving;
  const AuditJson document = {{"schema", "octet.audit/1"},
                              {"version", version()},
                              {"commit", commit()},
                              {"files", report.files},
                              {"formats", report.formats},
                              {"device", if_told(report.device)},
                              {"on_host", report.on_host},
                              {"verdict", word_of(report.verdict)},
                              {"headline", report.headline},
                              {"notes", report.notes},
                              {"linears",
                               {{"calls", report.linears},
                                {"native", report.native},
                                {"fake", report.fake},
                                {"weight_only", report.weight_only},
                                {"floating", report.floating},
                                {"unclear", report.unclear}}},
                              {"total_us", report.total_us},
                              {"wall_us", if_told(report.wall_us)},
                              {"classes", class_list(report.classes)},
                              {"layers", layer_list(report.layers)},
                              {"kernels", kernel_list(report.kernels)},
                              {"unknown", kernel_list(report.unknown)},
                              {"saving",
                               {{"linear_us", saving.linear_us},
                                {"linear_share", saving.linear_share},
                                {"at_most", if_told(saving.at_most)},
                                {"gemm_ratio", if_told(saving.gemm_ratio)},
                                {"expected", if_told(saving.expected)},
                                {"source", if_told(saving.source)}}},
                              {"timeline", timeline_json(report.timeline)},
                              {"log", log_list(report.log)}};
  // Names in traces need not be UTF-8, and JSON must be.
  return document.dump(2, ' ', false, AuditJson::error_handler_t::replace) + "\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
