#include "audit/kernel_names.h"

#include <nlohmann/json.hpp>

#include "audit/glob.h"
#include "audit/name_rows.h"
#include "base/error.h"
#include "kernel_names_text.h"

namespace octet::audit {
namespace {

// Templates make names of several KB; whatever tells is at the front of them.
constexpr size_t kMaxMatchedNameBytes = 8192;

ScalarType scalar_type_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ScalarType::other); ++i) {
    if (name_of(static_cast<ScalarType>(i)) == name) return static_cast<ScalarType>(i);
  }
  fail("kernel_names.json: the type \"{}\" is unknown", name);
}

NameRow name_row_of(const nlohmann::json& value) {
  NameRow row{.library = value.at("library"),
              .pattern = value.at("pattern"),
              .example = value.at("example"),
              .source = value.at("source")};
  const std::string key = value.at("class");
  const auto work = work_class_of(key);
  check(work.has_value(), "kernel_names.json: the class \"{}\" of {} is unknown", key, row.pattern);
  row.work = *work;
  if (value.contains("type")) row.type = scalar_type_named(value.at("type").get<std::string>());
  return row;
}

NameRows read_name_rows() {
  NameRows rows;
  try {
    const auto file = nlohmann::json::parse(kKernelNamesText);
    for (const auto& value : file.at("kernels")) rows.kernels.push_back(name_row_of(value));
    for (const auto& value : file.at("ops")) rows.ops.push_back(name_row_of(value));
  } catch (const nlohmann::json::exception& error) {
    fail("kernel_names.json: {}", error.what());
  }
  return rows;
}

NamedKernel first_row_for(const std::vector<NameRow>& rows, std::string_view name) {
  name = name.substr(0, kMaxMatchedNameBytes);
  for (const NameRow& row : rows) {
    if (!matches_glob(row.pattern, name)) continue;
    return {.work = row.work, .library = row.library, .evidence = row.pattern, .type = row.type};
  }
  return {};
}

}  // namespace

const NameRows& name_rows() {
  static const NameRows rows = read_name_rows();
  return rows;
}

NamedKernel kernel_by_name(std::string_view name) {
  return first_row_for(name_rows().kernels, name);
}

NamedKernel op_by_name(std::string_view name) { return first_row_for(name_rows().ops, name); }

}  // namespace octet::audit
