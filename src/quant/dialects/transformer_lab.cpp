// Transformer Lab's W8A8: <module>.wq I8 with <module>.ws, and <module>.smooth [k] where
// activations were smoothed; linears that were protected are plain, under <module>.weight.
//
// What `smooth` does to activations, divide or multiply, is said by the file's metadata entry
// "smooth" or by recipe.json beside it. Where neither does, the numbers tell: SmoothQuant makes the
// columns of a weight large whose activations it makes small.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/text.h"
#include "quant/dialect.h"
#include "quant/dialects/int8_weight.h"
#include "quant/recipe_json.h"

namespace octet::quant {
namespace {

// Rows that are looked at to judge the size of columns: enough for it, without reading the file.
constexpr int64_t kJudgedRows = 32;
// A correlation that is clearly negative, and of which chance makes less than one in a hundred.
constexpr double kClear = 0.25, kDeviations = 3;

// Of two series of equal length; 0 when one of them is flat.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double mean_a = 0, mean_b = 0;
  const auto count = static_cast<double>(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / count;
    mean_b += b[i] / count;
  }
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const double both = std::sqrt(aa) * std::sqrt(bb);
  return both > 1e-12 * count ? ab / both : 0;
}

// The direction by the size of the stored columns: those of a vector that divides are large where
// it is. Nothing that is clear: divide, as SmoothQuant is defined.
SmoothDirection judge(const StoredWeight& codes, const std::vector<float>& smooth) {
  const auto k = static_cast<size_t>(codes.k());
  std::vector<float> largest(k);
  std::vector<int8_t> row(k);
  const int64_t judged = std::min(kJudgedRows, codes.rows());
  for (int64_t i = 0; i < judged; ++i) {
    const int64_t at = i * codes.rows() / judged;
    codes.read_stored(at, reinterpret_cast<std::byte*>(row.data()));
    const float scale = codes.scale(at);
    for (size_t j = 0; j < k; ++j) {
      largest[j] = std::max(largest[j], std::fabs(static_cast<float>(row[j]) * scale));
    }
  }
  std::vector<double> of_smooth, of_columns;
  for (size_t j = 0; j < k; ++j) {
    if (largest[j] == 0) continue;  // says nothing
    of_smooth.push_back(std::log(std::fabs(smooth[j])));
    of_columns.push_back(std::log(largest[j]));
  }
  if (of_smooth.empty()) return SmoothDirection::divide;
  const double clear =
      std::max(kClear, kDeviations / std::sqrt(static_cast<double>(of_smooth.size())));
  return correlation(of_smooth, of_columns) < -clear ? SmoothDirection::multiply
                                                     : SmoothDirection::divide;
}

std::optional<SmoothDirection> written_direction(const Checkpoint& checkpoint) {
  const auto entry = checkpoint.metadata().find("smooth");
  if (entry != checkpoint.metadata().end()) {
    const auto direction = smooth_direction_named(entry->second);
    check(direction.has_value(),
          "{}: the metadata entry \"smooth\" is {}, expected \"divide\" or \"multiply\"",
          checkpoint.path(), in_quotes(entry->second));
    return direction;
  }
  const std::optional<StoredRecipe> recipe = read_recipe_beside(checkpoint.path());
  return recipe ? recipe->smooth : std::nullopt;
}

StoredTransform smooth_of(const Checkpoint& checkpoint, const std::string& module,
                          const StoredWeight& codes) {
  const std::string name = module + ".smooth";
  StoredTransform made = read_smooth(checkpoint, name, codes.k());
  const auto written = written_direction(checkpoint);
  if (written.value_or(SmoothDirection::divide) == SmoothDirection::multiply) return made;
  if (!written && judge(codes, made.smooth) == SmoothDirection::multiply) return made;
  for (float& value : made.smooth) {
    value = 1 / value;
    check(std::isfinite(value), "{}: tensor {} holds a number too small to divide by",
          checkpoint.path(), in_quotes(name));
  }
  return made;
}

bool stores(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".wq") != nullptr;
}

std::unique_ptr<StoredWeight> open(const Checkpoint& checkpoint, const std::string& module,
                                   int64_t rows, int64_t k) {
  check(checkpoint.find(module + ".weight") == nullptr,
        "{}: tensors {} and {} both stand for the one weight; expected one of them",
        checkpoint.path(), in_quotes(module + ".weight"), in_quotes(module + ".wq"));
  Int8Layout layout{.codes = module + ".wq",
                    .scales = module + ".ws",
                    .siblings = {module + ".smooth"},
                    .transform = {}};
  if (checkpoint.find(module + ".smooth") != nullptr) {
    const Int8Weight codes(checkpoint, module, rows, k, layout);
    layout.transform = smooth_of(checkpoint, module, codes);
  }
  return std::make_unique<Int8Weight>(checkpoint, module, rows, k, std::move(layout));
}

}  // namespace

const Dialect kTransformerLabDialect = {
    "transformerlab", "Transformer Lab: INT8 W8A8 with SmoothQuant", stores, open};

}  // namespace octet::quant
