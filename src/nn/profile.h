// What ran: times per class of ops, and per class of layers which kernel its linears ran on.
//
// Two marks around each op cost a few microseconds of the host and nothing of the device; the
// device is only waited for by collect().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "nn/weights.h"

namespace octet::nn {

struct OpTime {
  int64_t calls = 0;
  double us = 0;
  OpWork work;

  double tops() const { return us > 0 ? work.operations / us * 1e-6 : 0; }
};

class Profile : public OpObserver {
 public:
  struct KernelUse {
    std::string layer;   // class of layers: "attention.qkv"; "attention" itself
    std::string op;      // gemm: native INT8; matmul: unquantized; attention
    std::string kernel;  // of a gemm, and of attention where there are several
    bool fake = false;   // a matmul in fake INT8
    OpTime time;
  };

  // Watches the backend until its own end.
  explicit Profile(Backend& backend);
  ~Profile() override;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Which of a linear's runs were what.
  struct LinearUse {
    Precision precision = Precision::kept;
    int64_t int8 = 0, floating = 0;  // launches of gemm, and of matmul
  };

  // The part that the next linears belong to; empty: none whose linears are counted.
  void enter_network(std::string_view name) { network_ = name; }
  // The linear, or the class of layers, that the next ops belong to; `fake`: products of it are of
  // fake INT8.
  void enter(const Linear& linear, bool fake = false);
  void enter(std::string_view layer);

  void before(std::string_view op) override;
  void after(const OpRecord& record) override;

  // Waits for the device, and counts what was marked since the last time.
  void collect();
  void clear();
  // linears(), and forgets them.
  std::map<std::string, LinearUse> take_linears();

  // As of the last collect().
  const std::map<std::string, OpTime>& ops() const { return ops_; }
  std::vector<KernelUse> kernels() const;  // by layer
  // Of parts that are counted, by "<part>.<linear>"; these are known at once.
  const std::map<std::string, LinearUse>& linears() const { return linears_; }

 private:
  struct Event {
    std::string_view op;  // a literal of the Backend
    std::string layer, kernel;
    bool fake;
    OpWork work;
    size_t begin, end;
  };
  using Key = std::tuple<std::string, std::string, std::string, bool>;  // layer, op, kernel, fake

  Backend& backend_;
  std::string network_, layer_;
  LinearUse* linear_ = nullptr;  // of linears_
  bool fake_ = false;
  size_t begin_ = 0;
  std::vector<Event> events_;
  std::map<std::string, OpTime> ops_;
  std::map<Key, OpTime> kernels_;
  std::map<std::string, LinearUse> linears_;
};

}  // namespace octet::nn
