#include "engine/lora_files.h"

#include <filesystem>
#include <utility>

#include "base/file_identity.h"
#include "nn/linear_list.h"

namespace octet::engine {
namespace {

// Empty for anything but a single file, which is then opened again each time.
std::string identity_of_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || path.ends_with(".json")) return "";
  return identity_of(MappedFile(path));
}

std::vector<weights::NetworkNames> names_of(const models::Family& family) {
  std::vector<weights::NetworkNames> names;
  for (const models::NetworkInfo& network : family.networks) {
    names.push_back({network.name, network.aliases});
  }
  return names;
}

// The LoRAs that change rows of a linear, in their order.
std::vector<const OpenedLora*> changing(const OpenedLoras& loras, size_t network,
                                        const nn::LinearSpec& linear) {
  std::vector<const OpenedLora*> found;
  for (const auto& each : loras) {
    bool changes = false;
    for (const auto& layout : linear.layouts) {
      for (const auto& part : layout) {
        const auto* module = each->lora.modules(network).find(part.name);
        changes = changes || (module != nullptr && !each->lora.parts_of(*module, network).empty());
      }
    }
    if (changes) found.push_back(each.get());
  }
  return found;
}

}  // namespace

void check_loras(const std::vector<Lora>& requests, const models::Family& family) {
  const std::vector<weights::NetworkNames> names = names_of(family);
  for (const Lora& request : requests) weights::check_lora(request, names);
}

OpenedLoras LoraFiles::open(const std::vector<Lora>& requests, const models::Family& family,
                            const models::Model& model, ThreadPool& pool) {
  if (requests.empty()) return {};
  check_loras(requests, family);
  const std::vector<weights::NetworkNames> names = names_of(family);
  std::vector<std::vector<nn::LinearSpec>> linears;
  OpenedLoras opened;
  for (const Lora& request : requests) {
    const std::string file = identity_of_file(request.file);
    auto at = entries_.begin();
    while (at != entries_.end() &&
           (file.empty() || at->file != file || !(at->request == request))) {
      ++at;
    }
    if (at != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, at);
    } else {
      if (linears.empty()) {
        for (const auto& network : model.networks) {
          nn::LinearList list;
          network->visit_stored(list);  // LoRAs are trained on the linears as files store them
          linears.push_back(list.linears());
        }
      }
      entries_.push_front(
          {request, file, std::make_shared<const OpenedLora>(request, names, linears, pool)});
      if (entries_.size() > kMostEntries) entries_.pop_back();
    }
    opened.push_back(entries_.front().opened);
  }
  return opened;
}

weights::WeightSource::Change change_of(const OpenedLoras& loras, size_t network,
                                        std::vector<std::string>& identities) {
  std::vector<std::shared_ptr<const weights::Lora>> merged;
  for (const auto& each : loras) {
    if (!each->lora.changes(network)) continue;
    merged.emplace_back(each, &each->lora);
    identities.push_back(each->identity);
  }
  return merged.empty() ? nullptr : weights::merge_loras(std::move(merged), network);
}

bool changes(const OpenedLoras& before, const OpenedLoras& after, size_t network,
             const nn::LinearSpec& linear) {
  return changing(before, network, linear) != changing(after, network, linear);
}

}  // namespace octet::engine
