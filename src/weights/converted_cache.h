// INT8 codes that were made while a model was loaded, kept on disk for the next time: of
// checkpoints in floating point, and of weights with a LoRA merged into them.
//
// One file per checkpoint and change, in ComfyUI's dialect, so that it is read like any other
// checkpoint: WeightSource::add_converted() takes it. Its name is a hash of a text that says what
// it was made from; the text itself is in its metadata and compared when it is found. That dialect
// has no word for SmoothQuant: weights that have it are not kept, and are made again each time.
//
// It only ever saves time, so nothing about it can break a run: no function here throws for what is
// or happens on disk. A full disk costs one warning, and the codes are not kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/resumable_safetensors.h"
#include "weights/loader.h"

namespace octet::weights {

struct ConvertedCacheOptions {
  std::filesystem::path folder;  // made when needed; empty: nothing is kept
  uint64_t max_bytes = 0;        // of the cache's files in it; least recently used go first
};

// converted/ in env::cache_dir(), and OCTET_CACHE_MAX_GB, else 40 GB.
ConvertedCacheOptions default_converted_cache();

class ConvertedCache {
 public:
  // `source` as it is without this cache, `visit` lists the weights that a Loader with `int8` on
  // will load from it, and `changes` names what set_change() does to them (Lora::identity()).
  ConvertedCache(ConvertedCacheOptions options, const WeightSource& source,
                 const std::function<void(nn::WeightVisitor&)>& visit,
                 std::span<const std::string> changes);

  // The weights of an earlier run, named without prefix; nullptr when there are none, or what says
  // how to read them was damaged.
  std::shared_ptr<const Checkpoint> find() const;
  // Whether `error` is about reading what find() returned. Says that it is made again, if so.
  static bool is_damaged(const Checkpoint& found, const Error& error);

  // Of what a found checkpoint was made from: with it a model's fingerprint is the same whether its
  // weights were found or made.
  static Fingerprint made_from(const Checkpoint& found);

  // For LoadOptions::converted.
  void keep(const StoredWeight& weight, const QTensor& codes, const Fingerprint& made_from);
  // When all weights are loaded. Without it the next run goes on where this one stopped.
  void commit();

 private:
  void check_content(const Checkpoint& found) const;
  void start();
  void make_room(uint64_t bytes) const;
  // Runs what may fail on disk; after a failure this object does nothing more.
  void attempt(const std::function<void()>& task);

  ConvertedCacheOptions options_;
  std::string key_;                           // empty: nothing is kept
  std::string path_;                          // of this key's file
  std::vector<TensorDeclaration> tensors_;    // what it holds
  std::map<std::string, std::string> names_;  // in the source, with prefix -> in the file
  std::map<std::string, std::string> quant_;  // the .comfy_quant of those in the file
  std::unique_ptr<ResumableSafetensors> file_;
  Fingerprint made_from_;  // of what is in it
};

}  // namespace octet::weights
