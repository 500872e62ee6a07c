#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/error.h"
#include "formats/csv.h"

namespace octet::audit {
namespace {

constexpr size_t kLongestPrimitive = 4096;
constexpr size_t kMostFields = 32, kMostSizes = 8;

std::vector<std::string_view> fields_of(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (parts.size() < kMostFields) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// "128x2048"; anything that is no number ends it.
std::vector<int64_t> sizes_of(std::string_view text) {
  std::vector<int64_t> dims;
  while (dims.size() < kMostSizes) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) break;
    dims.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.starts_with('x')) break;
    text.remove_prefix(1);
  }
  return dims;
}

// The number behind "ic" of "mb128ic1024oc4096"; 0: none.
int64_t size_named(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == text.npos) return 0;
  const std::vector<int64_t> dims = sizes_of(text.substr(at + name.size()));
  return dims.empty() ? 0 : dims[0];
}

// The type of "src:u8::blocked:ab::f0", in older versions "src_u8::blocked:ab:f0"; empty: none.
std::string_view type_named(std::string_view descriptors, std::string_view name) {
  for (const std::string_view each : fields_of(descriptors, ' ')) {
    if (!each.starts_with(name) || each.size() <= name.size()) continue;
    const char mark = each[name.size()];
    if (mark != ':' && mark != '_') continue;
    const std::string_view type = each.substr(name.size() + 1);
    return type.substr(0, type.find(':'));
  }
  return {};
}

// One primitive: "exec,cpu,matmul,brg:avx512_core_amx,undef,src:... wei:... dst:...,attributes,
// auxiliary,128x2048:2048x6144,1.9". What stands before "exec" differs by version.
struct Primitive {
  std::string_view kind, descriptors, attributes, problem;
  double ms = 0;
};

bool read_primitive(std::string_view line, Primitive& primitive) {
  const size_t begin = line.find("_verbose,");
  if (begin == line.npos) return false;
  const std::vector<std::string_view> fields =
      fields_of(line.substr(begin, std::min(line.size() - begin, kLongestPrimitive)), ',');
  const auto exec = std::find(fields.begin(), fields.end(), "exec");
  // The engine, the kind, how, for what, descriptors, attributes, the rest, sizes, time.
  if (fields.end() - exec < 10) return false;
  primitive.kind = exec[2];
  primitive.descriptors = exec[5];
  primitive.attributes = exec[6];
  primitive.problem = fields[fields.size() - 2];
  primitive.ms = csv_amount(fields.back());
  return primitive.ms >= 0;
}

}  // namespace

bool is_onednn_line(std::string_view line) {
  const bool marked =
      line.find("onednn_verbose,") != line.npos || line.find("dnnl_verbose,") != line.npos;
  Primitive primitive;
  return marked && read_primitive(line, primitive);
}

Trace read_onednn_verbose(ByteStream& bytes) {
  TraceTables tables(bytes.path());
  LineReader lines(bytes);
  double now_us = 0;
  for (std::string_view line; lines.next(line);) {
    Primitive primitive;
    if (!is_onednn_line(line) || !read_primitive(line, primitive)) continue;
    const std::string_view source = type_named(primitive.descriptors, "src"),
                           weights = type_named(primitive.descriptors, "wei"),
                           into = type_named(primitive.descriptors, "dst");
    Signature operands;
    std::string name = "onednn::" + std::string(primitive.kind.substr(0, 64));
    if (primitive.kind == "matmul" || primitive.kind == "inner_product") {
      // Types as benchdnn writes them.
      name += fmt::format(" {}:{}:{}", source, weights, into);
      const size_t colon = primitive.problem.find(':');
      if (primitive.kind == "inner_product") {
        const int64_t inputs = size_named(primitive.problem, "ic");
        operands = {{scalar_type_of(source), {size_named(primitive.problem, "mb"), inputs}},
                    {scalar_type_of(weights), {size_named(primitive.problem, "oc"), inputs}}};
      } else if (colon != primitive.problem.npos) {
        operands = {{scalar_type_of(source), sizes_of(primitive.problem)},
                    {scalar_type_of(weights), sizes_of(primitive.problem.substr(colon + 1))}};
      }
    } else if (primitive.kind == "reorder") {
      const std::vector<int64_t> dims = sizes_of(primitive.problem);
      operands = {{scalar_type_of(into), dims}, {scalar_type_of(source), dims}};
      if (primitive.attributes.find("scales") != primitive.attributes.npos && !dims.empty()) {
        operands.push_back({ScalarType::f32, {dims[0]}});
      }
    }
    Op op;
    op.start_us = now_us;
    op.us = static_cast<float>(std::max(primitive.ms, 1e-3) * 1000);
    op.name = tables.name(name);
    if (!operands.empty()) op.signature = tables.signature(operands);
    now_us += 2 * static_cast<double>(op.us) + 10;  // clear of what comes next
    tables.add_op(op, 0);
  }
  check(tables.has_ops(), "{}: has lines of oneDNN without a primitive that ran", bytes.path());
  return tables.take("oneDNN verbose lines", "", /*has_order=*/true);
}

}  // namespace octet::audit
