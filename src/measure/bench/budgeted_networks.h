// Networks with random weights within a budget of their device's memory, as an engine runs them:
// layers that do not fit wait with the host and come while others run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/part_store.h"
#include "engine/residency.h"
#include "engine/weight_stream.h"
#include "models/family.h"
#include "models/footprint.h"
#include "nn/context.h"
#include "octet/tools/bench_step.h"

namespace octet::measure {

class BudgetedNetworks {
 public:
  // A pass of a network in the order of the step, by the number of the network, and the marks
  // around it.
  struct Pass {
    std::string name;
    size_t network = 0;
    std::pair<size_t, size_t> marks = {};
  };

  // Plans; throws InvalidRequest where the budget is too small. The context outlives it, the
  // networks do so, too, and have no weights yet.
  BudgetedNetworks(nn::Context& ctx, const models::Family& family,
                   std::span<models::Network* const> networks, const models::RunAs& how,
                   const models::Extent& extent, uint64_t max_memory);
  ~BudgetedNetworks();
  BudgetedNetworks(const BudgetedNetworks&) = delete;
  BudgetedNetworks& operator=(const BudgetedNetworks&) = delete;

  const engine::DevicePlan& plan() const { return plan_; }
  void load(const std::function<void(int64_t weights)>& made);
  // After what comes before steps: the layers that come begin to. Recorded work finds the memory
  // that it needs in one piece until the first passes are done.
  void open(bool records);
  void close();
  void passes_are_recorded() { work_.reset(); }
  // Before a pass: whose comes after it.
  void expect(size_t network);

  // Notes when layers come, until timeline(); marks have to be kept as long.
  void watch();
  // Of the passes of the newest step.
  StepTimeline timeline(std::span<const Pass> passes);

 private:
  const engine::PartStore* store_of(size_t network) const { return stores_[network].get(); }

  nn::Context& ctx_;
  uint64_t bytes_of_pass_ = 0;
  engine::DevicePlan plan_;
  std::vector<std::unique_ptr<engine::PartStore>> stores_;  // by network
  std::unique_ptr<engine::WeightStream> stream_;
  std::shared_ptr<Buffer> work_;
  std::optional<engine::StreamTrace> trace_;
  size_t watched_since_ = 0;  // a mark
};

}  // namespace octet::measure
