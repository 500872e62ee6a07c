// All linears of a run, file after file: by layer, by model, and the pairs that accuse them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "audit/verdict.h"
#include "audit/work_list.h"

namespace octet::audit {

// What a linear was multiplied in where it is not native: "bf16", "fp16", "fp32".
std::string floating_name(const WorkList& list, const Work& work);

// The model that a layer's name begins with: "text_encoder" of "text_encoder.layers.0.mlp", nothing
// of "blocks.0.mlp" and of names without the number of a block.
std::string model_of(std::string_view layer);

class LinearBook {
 public:
  // Unquantized linears of a shape that has so much less to do than the one with most are time
  // embeddings and the like.
  static constexpr double kSmallShare = 64;

  void add(const WorkList& list, const std::vector<LinearCall>& calls);
  // A class of layers of Octet's own reports.
  void add_reported(const ReportedLinear& reported, AuditVerdict verdict, WorkClass work,
                    const std::string& floating);

  // Names of models, the one that took most time first; a single empty one where names do not tell
  // models apart.
  std::vector<std::string> models() const;
  // Of one model, or of all linears where `model` is empty.
  LinearCounts counts(const std::string& model) const;
  std::vector<AuditLinear> layers() const;
  // By calls, the certain ones first.
  std::vector<AuditPair> pairs() const;

 private:
  using LayerKey = std::tuple<std::string, int64_t, int64_t, int64_t, AuditVerdict, std::string>;
  using PairKey = std::tuple<std::string, std::vector<int64_t>, std::string, int64_t, int64_t>;
  // How often linears change from widened weights to native ones, in order of time.
  struct Order {
    bool last_was_fake = false;
    int64_t fakes = 0, natives = 0, runs = 0;
  };
  struct PairSum {
    AuditPair pair;
    std::set<std::string> layers;
  };

  void note_order(const std::string& model, const LinearCall& call);
  void add_pair(const WorkList& list, const LinearCall& call, const std::string& layer,
                const std::string& floating);
  bool is_one_model(const std::string& model) const;

  std::map<LayerKey, AuditLinear> layers_;
  std::map<std::string, std::map<std::string, int64_t>> floating_;  // by model: calls by type
  std::map<std::string, std::map<Doubt, int64_t>> doubts_;          // by model
  std::map<std::string, Order> orders_;                             // by model; empty: all
  std::map<PairKey, PairSum> pairs_;
};

}  // namespace octet::audit
