#include "octet/inspect.h"

#include <filesystem>

#include "formats/boundary.h"
#include "formats/checkpoint.h"
#include "hub/cache.h"

namespace octet {
namespace {

std::string file_name(const TensorFile& file) {
  return std::filesystem::path(file.path()).filename().string();
}

}  // namespace

CheckpointSummary inspect_checkpoint(const std::string& path) try {
  const Checkpoint checkpoint(hub::find_model(path));
  CheckpointSummary summary;
  summary.path = checkpoint.path();
  summary.metadata = checkpoint.metadata();
  for (const TensorFile& file : checkpoint.files()) summary.files.push_back(file_name(file));
  for (const auto& [name, entry] : checkpoint.tensors()) {
    const TensorInfo& info = *entry.info;
    const std::string dtype(info.packing.empty() ? name_of(info.dtype) : info.packing);
    summary.tensors.push_back({info.name, dtype, info.shape, info.bytes(), file_name(*entry.file)});
    summary.total_bytes += info.bytes();
    summary.parameters += info.elements();
    DTypeSummary& of_dtype = summary.dtypes[dtype];
    of_dtype.tensors += 1;
    of_dtype.bytes += info.bytes();
  }
  return summary;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
