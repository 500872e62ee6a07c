#include "quant/activations.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/random_value.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/text.h"

namespace octet::quant {
namespace {

constexpr std::string_view kAmax = ".amax", kRows = ".rows";
constexpr const char* kSeen = "rows_seen";

std::vector<float> read_floats(const SafetensorsFile& file, const TensorInfo& info, size_t rank) {
  check(info.dtype == DType::f32 && info.shape.size() == rank && info.elements() > 0,
        "{}: tensor {} is {} {}, expected F32 of {} dimensions; it is not a file of activation "
        "statistics",
        file.path(), Quoted{info.name}, name_of(info.dtype), to_string(info.shape), rank);
  std::vector<float> values(info.elements());
  const auto bytes = file.bytes(info.name);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  file.check_intact();
  for (const float value : values) {
    check(std::isfinite(value), "{}: tensor {} contains a NaN or an infinity; make the file again",
          file.path(), Quoted{info.name});
  }
  return values;
}

}  // namespace

void write_statistics(const std::string& path, const ActivationStatistics& statistics,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<TensorDeclaration> declarations;
  for (const auto& [name, inputs] : statistics) {
    declarations.push_back({name + std::string(kAmax), DType::f32, {inputs.k}});
    declarations.push_back({name + std::string(kRows), DType::f32, {inputs.row_count(), inputs.k}});
  }
  auto entries = metadata;
  std::string seen;
  for (const auto& [name, inputs] : statistics) {
    if (!seen.empty()) seen += ",";
    seen += std::to_string(inputs.rows_seen);
  }
  entries[kSeen] = seen;
  SafetensorsWriter writer(path, declarations, entries);
  for (const TensorInfo& info : writer.layout()) {
    const bool is_amax = info.name.ends_with(kAmax);
    const auto& inputs =
        statistics.at(info.name.substr(0, info.name.size() - (is_amax ? kAmax : kRows).size()));
    writer.write(info.name, std::as_bytes(std::span(is_amax ? inputs.amax : inputs.rows)));
  }
  writer.commit();
}

ActivationStatistics read_statistics(const std::string& path) {
  const SafetensorsFile file(path);
  ActivationStatistics statistics;
  for (const TensorInfo& info : file.tensors()) {
    const std::string_view name = info.name;
    check(name.ends_with(kAmax) || name.ends_with(kRows),
          "{}: tensor {} is neither .amax nor .rows; this is not a file of activation statistics",
          path, Quoted{info.name});
    if (!name.ends_with(kAmax)) continue;
    const std::string linear(name.substr(0, name.size() - kAmax.size()));
    LinearInputs& inputs = statistics[linear];
    inputs.amax = read_floats(file, info, 1);
    inputs.k = info.shape[0];
    for (const float amax : inputs.amax) {
      check(amax >= 0, "{}: tensor {} contains a negative magnitude; make the file again", path,
            Quoted{info.name});
    }
    const TensorInfo& rows = file.info(linear + std::string(kRows));
    inputs.rows = read_floats(file, rows, 2);
    check(rows.shape[1] == inputs.k, "{}: tensor {} is {}, expected rows of {}", path,
          Quoted{rows.name}, to_string(rows.shape), inputs.k);
  }
  check(2 * statistics.size() == file.tensors().size(),
        "{}: has rows without their magnitudes; it is not a file of activation statistics", path);
  const auto seen = file.metadata().find(kSeen);
  if (seen == file.metadata().end()) return statistics;
  size_t at = 0;
  for (auto& [name, inputs] : statistics) {
    if (at >= seen->second.size()) break;
    inputs.rows_seen = std::strtoull(seen->second.c_str() + at, nullptr, 10);
    const size_t comma = seen->second.find(',', at);
    at = comma == std::string::npos ? seen->second.size() : comma + 1;
  }
  return statistics;
}

std::vector<float> column_amax(std::span<const float> rows, int64_t k) {
  std::vector<float> amax(static_cast<size_t>(k), 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    float& most = amax[i % static_cast<size_t>(k)];
    most = std::max(most, std::abs(rows[i]));
  }
  return amax;
}

LinearInputs synthetic_inputs(const std::string& name, int64_t k, int64_t rows) {
  const uint64_t seed = seed_of(0, name), places = seed_of(1, name);
  constexpr int64_t kOneIn = 100;
  constexpr float kOutlier = 30;
  LinearInputs inputs{.k = k, .rows_seen = static_cast<uint64_t>(rows)};
  inputs.rows.resize(static_cast<size_t>(rows * k));
  std::vector<float> size(static_cast<size_t>(k), 1);
  for (int64_t first = 0; first < k; first += kOneIn) {
    // Somewhere in each hundred channels.
    const float where = std::abs(random_value(places, static_cast<uint64_t>(first))) / 3.5f;
    const int64_t count = std::min(kOneIn, k - first);
    const auto at = std::min(static_cast<int64_t>(where * static_cast<float>(count)), count - 1);
    size[static_cast<size_t>(first + at)] = kOutlier;
  }
  for (size_t i = 0; i < inputs.rows.size(); ++i) {
    inputs.rows[i] = random_value(seed, i) * size[i % static_cast<size_t>(k)];
  }
  inputs.amax = column_amax(inputs.rows, k);
  return inputs;
}

}  // namespace octet::quant
