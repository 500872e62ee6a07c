#include "formats/checkpoint.h"

#include <limits.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/folder.h"
#include "base/regular_file.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/text.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kGgufSuffix = ".gguf";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr size_t kNamed = 4;  // of many names, in a message

std::string file_in_folder(const std::string& folder) {
  std::vector<std::string> indexes;
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    if (name.ends_with(kIndexSuffix)) indexes.push_back(name);
    if (name.ends_with(kFileSuffix) || name.ends_with(kGgufSuffix)) files.push_back(name);
  }
  check(!error, "{}: the folder cannot be read: {}", folder, system_error_text(error.value()));
  std::ranges::sort(indexes);
  std::ranges::sort(files);
  if (indexes.size() == 1) return (fs::path(folder) / indexes[0]).string();
  if (indexes.empty() && files.size() == 1) return (fs::path(folder) / files[0]).string();
  const auto& found = indexes.empty() ? files : indexes;
  check(!found.empty(), "{}: the folder has neither a *{} nor a *{} nor a *{}", folder, kFileSuffix,
        kIndexSuffix, kGgufSuffix);
  fail("{}: the folder has {} checkpoints, expected one: {}; name the file to open", folder,
       found.size(), listed(found, kNamed));
}

// Anything but a plain name could make a downloaded index read files elsewhere on the machine.
bool is_plain_file_name(const std::string& name) {
  return name.find_first_of(std::string_view("/\\\0", 3)) == name.npos && name[0] != '.' &&
         name.size() > kFileSuffix.size() && name.size() <= NAME_MAX && name.ends_with(kFileSuffix);
}

}  // namespace

ShardIndex parse_shard_index(const json& root, const std::string& path) {
  check(root.is_object(), "{}: is JSON but not a shard index: it is {}, expected an object", path,
        describe(root));
  const auto weight_map = root.find("weight_map");
  check(weight_map != root.end(), "{}: is JSON but not a shard index: it has no \"weight_map\"",
        path);
  ShardIndex index;
  if (const auto metadata = root.find("metadata"); metadata != root.end()) {
    check(metadata->is_object(), "{}: \"metadata\" is {}, expected an object", path,
          describe(*metadata));
    for (const auto& [key, value] : metadata->items()) {
      index.metadata.emplace(key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  check(weight_map->is_object(), "{}: \"weight_map\" is {}, expected an object", path,
        describe(*weight_map));
  for (const auto& [tensor, shard] : weight_map->items()) {
    const auto* name = shard.get_ptr<const std::string*>();
    if (name == nullptr) {
      fail("{}: tensor {}: its shard is {}, expected a file name", path, in_quotes(tensor),
           describe(shard));
    }
    check(is_plain_file_name(*name),
          "{}: tensor {}: its shard {} is not allowed; expected a plain file name that ends with "
          "{} and is next to the index",
          path, Quoted{tensor}, Quoted{*name}, kFileSuffix);
    index.weight_map.emplace(tensor, *name);
  }
  return index;
}

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  std::error_code ignored;  // a path that cannot be examined gets its message when it is opened
  if (fs::is_directory(path, ignored)) path_ = file_in_folder(path);
  if (path_.ends_with(".json")) {
    open_shards();
  } else if (path_.ends_with(kGgufSuffix)) {
    files_.push_back(GgufFile(path_));
  } else {
    files_.push_back(SafetensorsFile(path_));
  }
  for (const TensorFile& file : files_) {
    metadata_.insert(file.metadata().begin(), file.metadata().end());
    for (const TensorInfo& info : file.tensors()) tensors_.emplace(info.name, Entry{&file, &info});
  }
}

void Checkpoint::open_shards() {
  // total_size in the metadata is not compared: tools that convert shards in place leave it stale,
  // and each shard proves its own size.
  ShardIndex index = parse_shard_index(read_json_file(path_), path_);
  metadata_ = std::move(index.metadata);

  std::map<std::string, std::set<std::string_view>> tensors_of;
  for (const auto& [tensor, shard] : index.weight_map) tensors_of[shard].insert(tensor);
  const fs::path folder = fs::path(path_).parent_path();
  files_.reserve(tensors_of.size());
  for (const auto& [shard, tensors] : tensors_of) {
    const std::string shard_path = (folder / shard).string();
    if (!is_file_there(shard_path)) {
      fail("{}: the shard {} that it names is missing; {} was expected", path_, in_quotes(shard),
           shard_path);
    }
    const TensorFile& opened = files_.emplace_back(SafetensorsFile(shard_path));
    for (const std::string_view tensor : tensors) {
      check(opened.find(tensor) != nullptr,
            "{}: tensor {}: the index places it in {}, which does not hold it", path_,
            Quoted{tensor}, shard_path);
    }
    std::vector<std::string> unlisted;
    for (const TensorInfo& info : opened.tensors()) {
      if (!tensors.contains(info.name)) unlisted.push_back(info.name);
    }
    if (!unlisted.empty()) {
      fail("{}: the index does not place these tensors in {}, which holds them: {}", path_,
           shard_path, listed(unlisted, kNamed));
    }
  }
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.info;
}

bool Checkpoint::has_prefix(std::string_view prefix) const {
  const auto found = tensors_.lower_bound(prefix);
  return found != tensors_.end() && found->first.starts_with(prefix);
}

const Checkpoint::Entry& Checkpoint::entry(const std::string& name) const {
  const auto found = tensors_.find(name);
  check(found != tensors_.end(), "{}: has no tensor {}", path_, Quoted{name});
  return found->second;
}

std::span<const std::byte> Checkpoint::bytes(const std::string& name) const {
  return entry(name).file->bytes(name);
}

}  // namespace octet
