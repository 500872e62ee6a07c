// Transformer Lab's W8A8: <module>.wq I8 with <module>.ws, and <module>.smooth [k] where
// activations were smoothed; linears that were protected are plain, under <module>.weight.
//
// What `smooth` does to activations, divide or multiply, is said by the file's metadata entry
// "smooth" or by recipe.json beside it. Where neither does it divides, as SmoothQuant is defined,
// unless the numbers of the whole file clearly speak for the reciprocal: SmoothQuant makes the
// columns of a weight large whose activations it makes small. One linear alone cannot tell, since
// columns may differ more among themselves than activations do.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"
#include "weights/dialects/coded_weight.h"
#include "weights/dialects/recipe_json.h"

namespace octet::weights {
namespace {

// Rows that are looked at to judge the size of columns: enough for it, without reading the file.
constexpr int64_t kJudgedRows = 8;
// Linears of a file that are asked, and how many of them have to say the same how clearly.
constexpr size_t kJudges = 16;
constexpr double kMajority = 0.9, kClear = -0.5, kDeviations = 3;

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

// Whether log smooth and the log of the size of the stored columns clearly go against each other,
// more than so many columns do by chance. False for what is not such a linear: whoever opens it
// says why.
bool speaks_for_reciprocal(const Checkpoint& checkpoint, const std::string& module) {
  const TensorInfo* info = checkpoint.find(module + ".wq");
  if (info == nullptr || info->shape.size() != 2 || info->elements() == 0) return false;
  const auto k = static_cast<size_t>(info->shape[1]);
  const int64_t rows = info->shape[0];
  try {
    const CodedWeight codes(checkpoint, module, rows, info->shape[1], DType::i8,
                            {.codes = module + ".wq", .scales = module + ".ws"});
    const StoredTransform smooth = read_smooth(checkpoint, module + ".smooth", codes.k());
    std::vector<float> largest(k);
    std::vector<int8_t> row(k);
    const int64_t judged = std::min(kJudgedRows, rows);
    for (int64_t i = 0; i < judged; ++i) {
      const int64_t at = i * rows / judged;
      codes.read_stored(at, reinterpret_cast<std::byte*>(row.data()));
      const float scale = codes.scale(at);
      for (size_t j = 0; j < k; ++j) {
        largest[j] = std::max(largest[j], std::fabs(static_cast<float>(row[j]) * scale));
      }
    }
    std::vector<double> of_smooth, of_columns;
    for (size_t j = 0; j < k; ++j) {
      if (largest[j] == 0) continue;  // says nothing
      of_smooth.push_back(std::log(std::fabs(smooth.smooth[j])));
      of_columns.push_back(std::log(largest[j]));
    }
    if (of_smooth.empty()) return false;
    const double chance = kDeviations / std::sqrt(static_cast<double>(of_smooth.size()));
    return correlation(of_smooth, of_columns) < std::min(kClear, -chance);
  } catch (const Error&) {
    return false;
  }
}

SmoothDirection judge(const Checkpoint& checkpoint) {
  constexpr std::string_view kSuffix = ".smooth";
  std::vector<std::string> modules;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (name.ends_with(kSuffix)) modules.emplace_back(name.substr(0, name.size() - kSuffix.size()));
  }
  const size_t asked = std::min(kJudges, modules.size());
  size_t against = 0;
  for (size_t i = 0; i < asked; ++i) {
    against += speaks_for_reciprocal(checkpoint, modules[i * modules.size() / asked]) ? 1 : 0;
  }
  const bool clear =
      asked > 0 && static_cast<double>(against) >= kMajority * static_cast<double>(asked);
  return clear ? SmoothDirection::multiply : SmoothDirection::divide;
}

std::optional<SmoothDirection> written_direction(const Checkpoint& checkpoint) {
  const auto entry = checkpoint.metadata().find("smooth");
  if (entry != checkpoint.metadata().end()) {
    const auto direction = smooth_direction_named(entry->second);
    check(direction.has_value(),
          "{}: the metadata entry \"smooth\" is {}, expected \"divide\" or \"multiply\"",
          checkpoint.path(), Quoted{entry->second});
    return direction;
  }
  const std::optional<StoredRecipe> recipe = read_recipe_beside(checkpoint.path());
  return recipe ? recipe->smooth : std::nullopt;
}

StoredTransform smooth_of(const Checkpoint& checkpoint, const std::string& module, int64_t k) {
  const std::string name = module + ".smooth";
  StoredTransform made = read_smooth(checkpoint, name, k);
  const auto direction = checkpoint.once<SmoothDirection>([&] {
    const auto written = written_direction(checkpoint);
    return written ? *written : judge(checkpoint);
  });
  if (direction == SmoothDirection::multiply) return made;
  for (float& value : made.smooth) {
    value = 1 / value;
    check(std::isfinite(value), "{}: tensor {} holds a number too small to divide by",
          checkpoint.path(), Quoted{name});
  }
  return made;
}

bool stores_lab(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".wq") != nullptr;
}

std::unique_ptr<StoredWeight> open_lab(const Checkpoint& checkpoint, const std::string& module,
                                       int64_t rows, int64_t k) {
  check(checkpoint.find(module + ".weight") == nullptr,
        "{}: tensors {} and {} both stand for the one weight; expected one of them",
        checkpoint.path(), Quoted{module + ".weight"}, Quoted{module + ".wq"});
  CodedLayout layout{
      .codes = module + ".wq", .scales = module + ".ws", .siblings = {module + ".smooth"}};
  if (checkpoint.find(module + ".smooth") != nullptr) {
    layout.transform = smooth_of(checkpoint, module, k);
  }
  return std::make_unique<CodedWeight>(checkpoint, module, rows, k, DType::i8, std::move(layout));
}

}  // namespace

const Dialect kTransformerLabDialect = {
    "transformerlab", "Transformer Lab: INT8 W8A8 with SmoothQuant", stores_lab, open_lab};

}  // namespace octet::weights
