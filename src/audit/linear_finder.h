// Walks through all that ran, in order, and pairs what widens weights with the products that
// follow.
//
// A weight that is widened leaves a track in every trace with operands: codes of n x k elements go
// into a copy or a multiplication, numbers come out, perhaps more arithmetic with a small operand
// (the scales), and then a product in floating point with n x k weights. Addresses would be better
// evidence, but no profiler writes them; layouts have to do, and the order of things.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "audit/linears.h"
#include "audit/waiting_weights.h"

namespace octet::audit {

class LinearFinder {
 public:
  explicit LinearFinder(WorkList& list) : list_(list) {}

  std::vector<LinearCall> find();

 private:
  void multiply(uint32_t index);
  void multiply_floating(LinearCall& call, int64_t batch);
  bool multiply_codes(LinearCall& call, const Product& product);
  void see_softmax(const Work& work);
  void see_choice(const Work& work);
  void forget_widening(LinearCall& call);
  bool keeps_widened() const;
  bool widens_nearly_all() const;
  void settle();
  bool look_for_conversion(uint32_t index);  // whether it has to do with codes
  void widen(uint32_t index, const Conversion& conversion, int64_t numbers);
  void quantize(uint32_t index, const Conversion& conversion);
  void remember_coded(int64_t elements);
  void note_received(const Signature& operands);
  void note_untyped(std::string_view op, const Signature& operands);
  bool continues_widening(uint32_t index);
  bool scale_looked_up(uint32_t index, const Signature& operands);
  void note_cast(const Work& work);
  void note_users(uint32_t index);
  bool is_low_rank(const Operand& operand) const;
  void note_heads(uint32_t index);
  void note_activations(uint32_t index);
  void note_result(uint32_t index);
  void note_use(const Operand& operand, bool refutes = true);
  // What was taken for a product not long ago.
  template <class Each>
  void each_taken(const Each& each) {
    // An op uses a tensor at most so many products after the one that it was taken for.
    constexpr size_t kLongestUse = 8;
    std::erase_if(taken_, [&](size_t call) {
      return call >= calls_.size() || calls_[call].product + kLongestUse < products_;
    });
    for (const size_t call : taken_) each(calls_[call]);
  }
  bool follows(size_t widened_before) const;
  void doubt_lone_shapes();
  void doubt_the_rare();
  void doubt_one_group();
  void doubt_squares_of_training();
  void doubt_untyped();
  void take(LinearCall& call, const WeightMatch& match);
  void take_named(LinearCall& call);
  void take_activations(LinearCall& call);
  void set_class(uint32_t index, WorkClass work);
  bool is_same_call(uint32_t index) const;

  WorkList& list_;
  WaitingWeights waiting_;
  // Since the last product: works that quantize activations, and how many elements each made codes
  // of that are codes still.
  std::vector<uint32_t> quantized_;
  std::vector<int64_t> coded_;
  uint32_t last_decoded_ = kNone;  // the work that made numbers of such codes again
  std::vector<LinearCall> calls_;
  std::vector<size_t> taken_;  // the latest calls with a weight that was widened
  // Elements of codes that other processes sent, and whether numbers were made codes for that.
  std::map<int64_t, bool> received_;
  int64_t most_received_ = 0;
  std::map<std::vector<int64_t>, int64_t> untyped_;  // how often matrices were copied
  bool cast_before_ = false;  // a copy that may have widened a weight, where operands are unknown
  bool normed_before_ = false, compiled_before_ = false;  // since the last product
  int64_t unpacked_ = 0;  // codes whose bits were shifted and masked
  // Since the product: entries of a table that codes were looked up in, and how often that was
  // without a scale so far.
  int64_t code_book_ = 0, lookups_ = 0;
  bool was_of_two_ = false;     // the last product was of two activations, and no call
  bool after_softmax_ = false;  // and no operands were recorded
  int64_t softmax_ = 0;         // elements of the last softmax since the product
  std::vector<size_t> parts_;   // calls that used a part of the same widened tensor
  size_t products_ = 0;
};

// Elements of the largest operand that holds numbers.
int64_t most_floats(const Signature& signature);
// Arithmetic that widening a weight can need, by the op's name; and that can be
// with scales that were expanded to the weight's size.
bool chooses(std::string_view op);
bool is_scaling(std::string_view op);
bool multiplies(std::string_view op);
bool may_expand_scales(std::string_view op);

}  // namespace octet::audit
