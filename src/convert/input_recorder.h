// What a calibration keeps of the inputs of linears: the largest magnitude of every channel, of all
// rows, and some rows, spread evenly over the turns that the networks run.
//
// Nothing is random: which rows are kept depends only on the turn, so that a
// calibration that was interrupted goes on as if it had not been.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nn/context.h"
#include "quant/activations.h"

namespace octet::convert {

// One run of a network, in which each of its linears is seen once.
struct RecorderTurn {
  std::string network;                    // prefix of the names of its linears, with a dot
  int64_t index = 0, count = 1;           // of all turns in which these linears are seen
  int64_t text_rows = 0, image_rows = 0;  // tokens: linears see both in this order, or other rows
};

// The rows, in ascending order, that are kept of `rows` at this turn so that all turns give
// `wanted`, or as many as there are. Of a sequence with text an eighth at least is text's: it is
// short compared with the image, and its channels reach further.
std::vector<int64_t> kept_rows(const RecorderTurn& turn, int64_t rows, int64_t wanted);

class InputRecorder : public nn::InputTap {
 public:
  // Adds to `statistics`, which the caller owns. `rows`: that are kept of each linear.
  InputRecorder(Backend& backend, int64_t rows, quant::ActivationStatistics& statistics)
      : backend_(backend), wanted_(rows), statistics_(statistics) {}

  void begin(RecorderTurn turn);
  // Throws Error when a linear is seen twice in a turn, or sees a NaN or an infinity.
  void input(const nn::Linear& w, const ConstTensorView& x) override;

 private:
  // Word: the bits of a number, whose order is that of magnitudes once the sign is gone.
  template <class Word>
  void record(const std::string& name, const ConstTensorView& x, quant::LinearInputs& inputs);

  Backend& backend_;
  int64_t wanted_;
  quant::ActivationStatistics& statistics_;
  RecorderTurn turn_;
  std::set<std::string> seen_;    // in this turn
  std::vector<std::byte> piece_;  // on its way from the device
};

}  // namespace octet::convert
