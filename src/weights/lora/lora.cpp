#include "weights/lora/lora.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/invalid_request.h"
#include "formats/text.h"
#include "weights/fingerprint.h"
#include "weights/lora/lora_config.h"

namespace octet::weights {
namespace {

constexpr size_t kShownProblems = 8;

FileShape matrix_shape(FileShape shape) {
  while (shape.size() > 2 && shape.back() == 1) shape.pop_back();  // as of a 1x1 convolution
  return shape;
}

template <class T>
double load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(value);
}

// Trainers write alpha in the type of the weights or as the integer that they were given. A NaN
// stands for what is no single number.
double alpha_in(const TensorInfo& info, std::span<const std::byte> bytes) {
  if (info.elements() != 1) return NAN;
  switch (info.dtype) {
    case DType::f64: return load<double>(bytes);
    case DType::i64: return load<int64_t>(bytes);
    case DType::i32: return load<int32_t>(bytes);
    default: return is_plain_float(info.dtype) ? load_as_f32(info.dtype, bytes.data(), 0) : NAN;
  }
}

void refuse_other_methods(const Checkpoint& file) {
  for (const auto& [name, entry] : file.tensors()) {
    const char* method = other_method_of(name);
    check(method == nullptr,
          "{}: tensor {} is part of a {}, which cannot be merged as a LoRA; merge it into the "
          "checkpoint with the program that trained it",
          file.path(), Quoted{name}, method == nullptr ? "" : method);
  }
}

[[noreturn]] void fail_with(const std::string& path, const std::vector<std::string>& problems) {
  std::string list;
  for (size_t i = 0; i < std::min(kShownProblems, problems.size()); ++i) {
    list += (i > 0 ? "; " : "") + problems[i];
  }
  if (problems.size() > kShownProblems) {
    list += fmt::format("; and {} more", problems.size() - kShownProblems);
  }
  fail("{}: the LoRA does not fit the model: {}", path, list);
}

// Those that the user names; none: as the file does.
std::set<size_t> chosen_networks(const octet::Lora& request,
                                 std::span<const NetworkNames> networks) {
  std::set<size_t> chosen;
  for (const std::string& name : request.networks) {
    if (name == "all") {
      for (size_t i = 0; i < networks.size(); ++i) chosen.insert(i);
      continue;
    }
    const auto found = find_network(networks, name);
    std::string known;
    for (const NetworkNames& network : networks) known += std::string(network.name) + ", ";
    check_value(found.has_value(), "loras",
                "{}: is to change the network {}, which the model does not have; expected {}or all",
                request.file, in_quotes(name), known);
    chosen.insert(*found);
  }
  return chosen;
}

}  // namespace

void check_lora(const octet::Lora& request, std::span<const NetworkNames> networks) {
  check_value(!request.file.empty(), "loras",
              "`loras`: the name of a file is empty, expected that of a LoRA");
  check_value(std::abs(request.strength) <= kMaxLoraStrength, "loras",
              "{}: a strength of {} was given, expected a number from -{} to {}", request.file,
              request.strength, kMaxLoraStrength, kMaxLoraStrength);
  chosen_networks(request, networks);
}

struct Lora::Group {
  LoraName name;
  std::map<LoraRole, std::string> tensors;  // their names
};

LoraMatrix Lora::matrix(const std::string& name) const {
  const TensorInfo& info = file_.info(name);
  check(is_plain_float(info.dtype), "{}: tensor {} is {}, expected F32, BF16 or F16", path(),
        Quoted{name}, octet::name_of(info.dtype));
  return {name, info.dtype, file_.bytes(name), &file_.file_of(name)};
}

bool Lora::overlaps(const LoraPart& part) const {
  return std::ranges::any_of(parts_, [&](const LoraPart& other) {
    return other.linear == part.linear && other.first < part.first + part.rows &&
           part.first < other.first + other.rows && other.network == part.network;
  });
}

// The networks of a model need not have the same linears.
std::string Lora::missing_in(size_t network, const LoraName& name) const {
  const bool elsewhere = std::ranges::any_of(
      opened_, [&](const Opened& other) { return !other.modules.named(name).empty(); });
  return elsewhere ? fmt::format("is not a linear of the {} network", opened_[network].network)
                   : "is not a linear of the model";
}

void Lora::add(const Group& group, size_t network, const LoraConfig& config,
               std::vector<std::string>& problems) {
  const auto problem = [&](std::string_view what) {
    problems.push_back(in_quotes(group.name.base) + " " + std::string(what));
  };
  const auto tensor = [&](LoraRole role) -> const std::string* {
    const auto found = group.tensors.find(role);
    return found == group.tensors.end() ? nullptr : &found->second;
  };
  const std::vector<const LoraModule*> named = modules(network).named(group.name);
  if (named.empty()) return problem(missing_in(network, group.name));
  if (named.size() > 1) {
    return problem(fmt::format("may be {} or {}", named[0]->name, named[1]->name));
  }
  const LoraModule& module = *named.front();
  LoraPart part{.network = network,
                .linear = module.linear,
                .first = module.first,
                .rows = module.rows,
                .k = module.k};
  const std::string *down = tensor(LoraRole::down), *up = tensor(LoraRole::up),
                    *alpha = tensor(LoraRole::alpha), *difference = tensor(LoraRole::difference);
  double factor = 1;
  if (difference != nullptr) {
    if (down != nullptr || up != nullptr) return problem("has a difference and matrices too");
    const FileShape shape = matrix_shape(file_.info(*difference).shape);
    if (shape != FileShape{part.rows, part.k}) {
      return problem(fmt::format("has a difference {}, expected [{}, {}]", to_string(shape),
                                 part.rows, part.k));
    }
    part.up = matrix(*difference);
  } else {
    if (down == nullptr && up == nullptr) return problem("has an alpha and no matrices");
    if (down == nullptr) return problem("has no down matrix (lora_A)");
    if (up == nullptr) return problem("has no up matrix (lora_B)");
    const FileShape down_shape = matrix_shape(file_.info(*down).shape);
    const FileShape up_shape = matrix_shape(file_.info(*up).shape);
    part.rank = down_shape.empty() ? 0 : down_shape.front();
    if (part.rank == 0 || down_shape != FileShape{part.rank, part.k} ||
        up_shape != FileShape{part.rows, part.rank}) {
      return problem(fmt::format("has matrices {} and {}, expected [rank, {}] and [{}, rank]",
                                 to_string(down_shape), to_string(up_shape), part.k, part.rows));
    }
    part.down = matrix(*down);
    part.up = matrix(*up);
    factor = config.factor(group.name, part.rank).value_or(1);
    if (alpha != nullptr) {
      factor = alpha_in(file_.info(*alpha), file_.bytes(*alpha)) / static_cast<double>(part.rank);
    }
  }
  part.factor = static_cast<float>(factor * static_cast<double>(request_.strength));
  if (!std::isfinite(part.factor)) return problem("has an alpha that is not one finite number");
  if (overlaps(part)) return problem("changes rows that another tensor changes too");
  parts_.push_back(part);
}

// A file for one network goes where the user says, else where its names say, else to the first one,
// as other programs do. A file for several has a part for each, of which the user may choose.
void Lora::add(const Groups& groups, const std::set<size_t>& chosen,
               std::vector<std::string>& problems) {
  const LoraConfig config(file_);
  const auto own_network = [](const Group& group) { return group.name.network.value_or(0); };
  const bool for_several = std::ranges::any_of(groups, [&](const auto& entry) {
    return own_network(entry.second) != own_network(groups.begin()->second);
  });
  for (const auto& [base, group] : groups) {
    const size_t own = own_network(group), before = problems.size();
    for (const size_t network : for_several || chosen.empty() ? std::set{own} : chosen) {
      if (problems.size() == before) add(group, network, config, problems);
    }
  }
  if (chosen.empty()) return;
  std::erase_if(parts_, [&](const LoraPart& part) { return !chosen.contains(part.network); });
}

Lora::Lora(const octet::Lora& request, std::span<const NetworkNames> networks,
           std::span<const std::vector<nn::LinearSpec>> linears)
    : request_(request), file_(request.file) {
  for (size_t i = 0; i < linears.size(); ++i) {
    opened_.push_back({std::string(networks[i].name), LoraModules(linears[i])});
  }
  check_lora(request, networks);
  const std::set<size_t> chosen = chosen_networks(request, networks);
  refuse_other_methods(file_);
  Groups groups;
  std::vector<std::string> problems;
  for (const auto& [name, entry] : file_.tensors()) {
    const auto parsed = parse_lora_name(name, networks);
    if (!parsed) {
      problems.push_back(in_quotes(name) + " is not a tensor of a LoRA");
      continue;
    }
    Group& group = groups[parsed->base];
    group.name = *parsed;
    if (!group.tensors.emplace(parsed->role, name).second) {
      problems.push_back(in_quotes(name) + " is there under another name too");
    }
  }
  check(!groups.empty() || !problems.empty(), "{}: the LoRA has no tensors", path());
  add(groups, chosen, problems);
  if (!problems.empty()) fail_with(path(), problems);
}

bool Lora::changes(size_t network) const {
  return request_.strength != 0 &&
         std::ranges::any_of(parts_, [&](const LoraPart& part) { return part.network == network; });
}

std::vector<const LoraPart*> Lora::parts_of(const LoraModule& module, size_t network) const {
  std::vector<const LoraPart*> found;
  if (request_.strength == 0) return found;
  for (const LoraPart& part : parts_) {
    if (part.linear == module.linear && part.first < module.first + module.rows &&
        module.first < part.first + part.rows && part.network == network) {
      found.push_back(&part);
    }
  }
  return found;
}

std::string Lora::identity(ThreadPool& pool) const {
  Fingerprint fingerprint;
  for (const LoraPart& part : parts_) {
    fingerprint.add(part.up.name, part.up.bytes, pool);
    fingerprint.add(part.down.name, part.down.bytes, pool);
    // The factor holds the alpha, which may come from another file.
    fingerprint.add(part.up.name + " factor", std::as_bytes(std::span(&part.factor, 1)), pool);
  }
  file_.check_intact();
  return fmt::format("{} strength {} networks {}", fingerprint.to_string(), request_.strength,
                     request_.networks.empty()
                         ? "as named"
                         : fmt::format("{}", fmt::join(request_.networks, " ")));
}

}  // namespace octet::weights
