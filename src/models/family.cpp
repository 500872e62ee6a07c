#include "models/family.h"

#include <algorithm>
#include <mutex>

#include "backend/ops.h"
#include "base/invalid_request.h"
#include "base/never_destroyed.h"
#include "formats/text.h"
#include "models/ideogram4/family.h"

namespace octet::models {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<const Family*> rows = {&ideogram4::family()};
};

Table& table() {
  static auto& made = never_destroyed<Table>();
  return made;
}

}  // namespace

std::vector<const Family*> families() {
  const std::lock_guard lock(table().mutex);
  return table().rows;
}

void add_family(const Family& family) {
  const auto& branches = family.branches;
  check(!branches.empty() && branches.size() <= kMostBranches,
        "the model family {}: has {} branches, expected 1 to {}", in_quotes(family.name),
        branches.size(), kMostBranches);
  for (const Branch& branch : branches) {
    check(branch.network < family.networks.size(),
          "the model family {}: its branch {} is of network {}, and there are {}",
          in_quotes(family.name), in_quotes(branch.name), branch.network, family.networks.size());
  }
  const std::lock_guard lock(table().mutex);
  std::erase_if(table().rows, [&](const Family* row) { return row->name == family.name; });
  table().rows.push_back(&family);
}

const Family& family_named(std::string_view name) {
  std::string known;
  for (const Family* family : families()) {
    if (family->name == name) return *family;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family->name);
  }
  throw InvalidRequest("family", fmt::format("the model family {} is unknown, expected one of {}",
                                             in_quotes(name), known));
}

const Family& family_of(const std::string& model) {
  const auto rows = families();
  for (const Family* family : rows) {
    if (family->recognise(model)) return *family;
  }
  return *rows.front();
}

size_t network_named(const Family& family, std::string_view name, const std::string& field) {
  std::string known;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    const NetworkInfo& network = family.networks[i];
    if (network.name == name || std::ranges::find(network.aliases, name) != network.aliases.end()) {
      return i;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", network.name);
  }
  throw InvalidRequest(field, sentence("`{}`: {} has no network {}, expected one of {}", field,
                                       family.title, in_quotes(name), known));
}

}  // namespace octet::models
