// Keeps LoRAs open once they were used: switching between them reads no file twice.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/family.h"
#include "weights/lora/lora.h"

namespace octet::engine {

struct OpenedLora {
  OpenedLora(const Lora& request, std::span<const weights::NetworkNames> networks,
             std::span<const std::vector<nn::LinearSpec>> linears, ThreadPool& pool)
      : lora(request, networks, linears), identity(lora.identity(pool)) {}
  weights::Lora lora;
  std::string identity;  // identifies its change to a model
};
using OpenedLoras = std::vector<std::shared_ptr<const OpenedLora>>;

// What is wrong with them in themselves, as InvalidRequest; opens no file.
void check_loras(const std::vector<Lora>& requests, const models::Family& family);

class LoraFiles {
 public:
  // Those of a request, for linears of any network. A file that was replaced is opened again.
  OpenedLoras open(const std::vector<Lora>& requests, const models::Family& family,
                   const models::Model& model, ThreadPool& pool);

 private:
  struct Entry {
    Lora request;
    std::string file;  // its identity
    std::shared_ptr<const OpenedLora> opened;
  };
  static constexpr size_t kMostEntries = 64;

  std::list<Entry> entries_;  // the last used first
};

// The change to one network; null if none of them changes it.
weights::WeightSource::Change change_of(const OpenedLoras& loras, size_t network,
                                        std::vector<std::string>& identities);

// Whether a linear of a network differs between the two.
bool changes(const OpenedLoras& before, const OpenedLoras& after, size_t network,
             const nn::LinearSpec& linear);

}  // namespace octet::engine
