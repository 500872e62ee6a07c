// What a checkpoint or a model holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

OCTET_JSON(TensorSummary, name, dtype, shape, bytes, file)

OCTET_JSON(DTypeSummary, tensors, bytes)
OCTET_JSON(StoredLinear, name, layer, dialect, format, n, k, runs, file_bytes, memory_bytes)
OCTET_JSON(ModelPart, part, path, dialect, file_bytes, memory_bytes, linears)

static void to_json(Json& json, const CertificateStamp& stamp) {
  json =
      joined({OCTET_FIELDS(stamp, file, digest, date, verdict, psnr_db, snr_db, weights_unchanged),
              OCTET_KNOWN_FIELDS(stamp, problem)});
}

namespace {

// A stranger's file may have tensors by the hundred thousand.
void add_checkpoint(DocumentText& text, const CheckpointSummary& summary) {
  text.add(OCTET_FIELDS(summary, path));
  text.add_list("files", summary.files);
  text.add_object("metadata", summary.metadata);
  text.add_list("tensors", summary.tensors);
  text.add(OCTET_FIELDS(summary, total_bytes, parameters));
  text.add_object("dtypes", summary.dtypes);
}

// For the table: a stranger chose the text and its length. JSON has all of it.
std::string shortened(const std::string& text) {
  constexpr size_t kMostCharacters = 200;
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80;  // a UTF-8 sequence
    if (begins && characters++ == kMostCharacters) {
      return fmt::format("{}… ({} bytes)", printable(text.substr(0, i)), text.size());
    }
  }
  return printable(text);
}

std::string shortened(const std::vector<int64_t>& shape) {
  constexpr size_t kMostExtents = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(shape.size(), kMostExtents));
  return fmt::format("[{}{}]", fmt::join(shape.begin(), shape.begin() + shown, ", "),
                     shape.size() > kMostExtents ? ", …" : "");
}

std::string tensors_text(const CheckpointSummary& summary, bool quiet) {
  std::string text;
  if (!quiet) {
    Table tensors({"tensor", "dtype", "shape", "bytes"}, 3);
    for (const auto& tensor : summary.tensors) {
      tensors.add({shortened(tensor.name), tensor.dtype, shortened(tensor.shape),
                   human_bytes(tensor.bytes)});
    }
    text += tensors.text() + "\n";
  }
  for (const auto& [key, value] : summary.metadata) {
    text += fmt::format("metadata {}: {}\n", shortened(key), shortened(value));
  }
  Table dtypes({"dtype", "tensors", "bytes"}, 1);
  for (const auto& [name, dtype] : summary.dtypes) {
    dtypes.add({name, std::to_string(dtype.tensors), human_bytes(dtype.bytes)});
  }
  text += dtypes.text();
  return text + fmt::format("{}, {}, {} in {}\n", counted(summary.tensors.size(), "tensor"),
                            counted(summary.parameters, "element"),
                            human_bytes(summary.total_bytes),
                            counted(summary.files.size(), "file"));
}

// Linears of one class that are stored and run alike are one row, unless each is wanted.
std::string stored_linears(const ModelPart& part, bool each) {
  std::vector<std::pair<StoredLinear, size_t>> groups;  // and how many each stands for
  for (const StoredLinear& linear : part.linears) {
    std::pair<StoredLinear, size_t> one = {linear, 1};
    one.first.layer = each ? shortened(linear.name) : linear.layer;
    auto* const same = same_in(groups, one, [](const auto& group) {
      return std::tie(group.first.layer, group.first.format, group.first.runs);
    });
    if (same == nullptr) continue;
    ++same->second;
    same->first.file_bytes += linear.file_bytes;
    same->first.memory_bytes += linear.memory_bytes;
  }
  Table table({"linears", "count", "stored as", "runs in", "file", "memory"}, 1);
  for (const auto& [group, count] : groups) {
    table.add({group.layer, std::to_string(count), group.format, group.runs,
               human_bytes(group.file_bytes), human_bytes(group.memory_bytes)});
  }
  return table.text();
}

std::string parts_text(const std::vector<ModelPart>& parts, Detail detail) {
  std::string text;
  uint64_t together = 0;
  for (const ModelPart& part : parts) {
    text += fmt::format("{}: {} ({})\n", part.part, printable(part.path), part.dialect);
    if (!part.linears.empty() && detail != Detail::brief)
      text += stored_linears(part, detail == Detail::full);
    text += fmt::format("{} in the file, {} of memory{}\n\n", human_bytes(part.file_bytes),
                        human_bytes(part.memory_bytes),
                        part.part == "text_encoder" ? ", one layer at a time" : "");
    if (part.part.ends_with("transformer")) together += part.memory_bytes;
  }
  if (together == 0) return text;
  return text + fmt::format("All networks: {} of memory for weights.\n", human_bytes(together));
}

std::string stamps_text(const std::vector<CertificateStamp>& stamps) {
  std::string text;
  const auto decibels = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.2f} dB", value) : "equal";
  };
  for (const CertificateStamp& stamp : stamps) {
    if (!stamp.problem.empty()) {
      text += fmt::format("{}: its certificate cannot be read: {}\n", printable(stamp.file),
                          printable(stamp.problem));
      continue;
    }
    text += fmt::format("{}: certificate {} of {}: {}, PSNR {}, SNR of the first velocity {}; {}\n",
                        printable(stamp.file), shortened(stamp.digest), shortened(stamp.date),
                        shortened(stamp.verdict), decibels(stamp.psnr_db), decibels(stamp.snr_db),
                        stamp.weights_unchanged
                            ? "the weights are the certified ones"
                            : "THE WEIGHTS HAVE CHANGED since then, and it no longer applies");
  }
  return text;
}

}  // namespace

std::string to_json(const Inspection& inspection) try {
  DocumentText text("octet.inspect/1");
  if (inspection.checkpoint) add_checkpoint(text, *inspection.checkpoint);
  const ModelSummary& model = inspection.model;
  if (!model.parts.empty()) text.add_list("parts", model.parts);
  if (!model.problem.empty()) text.add(field("problem", model.problem));
  if (!inspection.stamps.empty()) text.add_list("certificates", inspection.stamps);
  return text.take();
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const Inspection& inspection, Detail detail) try {
  std::string text;
  if (inspection.checkpoint) text = tensors_text(*inspection.checkpoint, detail == Detail::brief);
  const ModelSummary& model = inspection.model;
  if (!model.parts.empty()) text += (text.empty() ? "" : "\n") + parts_text(model.parts, detail);
  if (!model.problem.empty()) {
    text += fmt::format("\nNot a complete network: {}\n", printable(model.problem));
  }
  if (!inspection.stamps.empty()) text += "\n" + stamps_text(inspection.stamps);
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
