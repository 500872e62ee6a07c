// A checkpoint: one safetensors or GGUF file, or the shards that a `*.safetensors.index.json`
// lists.
//
// An index is untrusted: it may only name plain files next to itself, and it must agree with what
// the shards hold in both directions. Every shard is opened and validated at once; data is still
// read on first use only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "formats/json.h"
#include "formats/tensor_file.h"

namespace octet {

// The index file's content: its text entries besides the tensors, and which file holds what.
struct ShardIndex {
  std::map<std::string, std::string> metadata;    // values that are not strings as JSON text
  std::map<std::string, std::string> weight_map;  // tensor name -> shard file name
};

// Validates the content of an index file. `path` is only used in messages.
ShardIndex parse_shard_index(const nlohmann::json& root, const std::string& path);

class Checkpoint {
 public:
  struct Entry {
    const TensorFile* file;
    const TensorInfo* info;
  };

  // `path` is a safetensors file, a GGUF file (its name ends with ".gguf"), an index (".json"), or
  // a folder with exactly one index or, without an index, exactly one safetensors or GGUF file.
  explicit Checkpoint(const std::string& path);

  // The file that was opened: `path`, or what was found in the folder.
  const std::string& path() const { return path_; }
  const std::vector<TensorFile>& files() const { return files_; }

  // The index's entries, then those of the files by name; the first of several equal keys counts.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  const std::map<std::string_view, Entry>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;  // nullptr when absent
  bool has_prefix(std::string_view prefix) const;       // the name of a tensor
  const TensorInfo& info(const std::string& name) const { return *entry(name).info; }
  std::span<const std::byte> bytes(const std::string& name) const;
  const TensorFile& file_of(const std::string& name) const { return *entry(name).file; }
  // Of all files; see TensorFile::check_intact.
  void check_intact() const {
    for (const TensorFile& file : files_) file.check_intact();
  }

  // What holds for the checkpoint as a whole and costs something to find out, such as what a file
  // beside it says: found out at the first call for this type, and kept. Dialects ask for every
  // module. `find_out` must not come back here.
  template <class T>
  const T& once(const std::function<T()>& find_out) const {
    const std::lock_guard lock(findings_->mutex);
    std::shared_ptr<void>& found = findings_->by_type[typeid(T)];
    if (!found) found = std::make_shared<T>(find_out());
    return *static_cast<const T*>(found.get());
  }

 private:
  struct Findings {
    std::mutex mutex;
    std::map<std::type_index, std::shared_ptr<void>> by_type;
  };

  void open_shards();
  const Entry& entry(const std::string& name) const;

  std::string path_;
  std::vector<TensorFile> files_;
  std::map<std::string, std::string> metadata_;
  // Keys and entries look into files_, whose elements stay in place when this object moves.
  std::map<std::string_view, Entry> tensors_;
  std::unique_ptr<Findings> findings_ = std::make_unique<Findings>();
};

}  // namespace octet
