#include "convert/input_recorder.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "nn/weights.h"

namespace octet::convert {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;
constexpr int64_t kColumns = 512;  // of one task: a kilobyte or two of each row

// `count` of `rows`, evenly apart. The first turns about by the golden ratio from turn to turn, so
// that few rows of many turns are spread over all places.
void add_evenly(int64_t first, int64_t rows, int64_t count, int64_t turn,
                std::vector<int64_t>& kept) {
  const uint32_t place = static_cast<uint32_t>(turn) * 0x9e3779b9u;  // of 2^32
  const auto shift = static_cast<int64_t>((uint64_t{place} * static_cast<uint64_t>(rows)) >> 32);
  count = std::min(count, rows);
  for (int64_t i = 0; i < count; ++i) kept.push_back(first + (i * rows + shift) / count);
}

template <class Word>
constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;  // all bits but the sign's

float value_of(uint16_t bits) { return to_f32(bf16_t{bits}); }
float value_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// most[j] = max(most[j], |row i of j|), for the columns [begin, end).
template <class Word>
void raise(Word* most, const Word* values, int64_t rows, int64_t stride, int64_t begin,
           int64_t end) {
  for (int64_t i = 0; i < rows; ++i) {
    const Word* row = values + i * stride;
    for (int64_t j = begin; j < end; ++j) {
      most[j] = std::max(most[j], static_cast<Word>(row[j] & kMagnitude<Word>));
    }
  }
}

}  // namespace

std::vector<int64_t> kept_rows(const RecorderTurn& turn, int64_t rows, int64_t wanted) {
  // Samples are counted through all turns; the first turn always gives one.
  const int64_t first = ceil_div(wanted * turn.index, turn.count);
  const int64_t last = ceil_div(wanted * (turn.index + 1), turn.count);
  const bool is_sequence = turn.text_rows > 0 && rows == turn.text_rows + turn.image_rows;
  const int64_t text_rows = is_sequence ? turn.text_rows : 0;
  constexpr int64_t kEighth = 8;
  const int64_t share = is_sequence ? std::max(kEighth * text_rows, rows) : 0, of = kEighth * rows;
  const int64_t text_count = std::min(last * share / of - first * share / of, text_rows);
  std::vector<int64_t> kept;
  add_evenly(0, text_rows, text_count, turn.index, kept);
  add_evenly(text_rows, rows - text_rows, last - first - text_count, turn.index, kept);
  return kept;
}

void InputRecorder::begin(RecorderTurn turn) {
  turn_ = std::move(turn);
  seen_.clear();
}

void InputRecorder::input(const nn::Linear& w, const ConstTensorView& x) {
  const std::string name = turn_.network + "." + w.name;
  check(seen_.insert(name).second, "calibration: linear {} ran twice in one turn", name);
  quant::LinearInputs& inputs = statistics_[name];
  const int64_t k = x.shape[1];
  if (inputs.k == 0) {
    inputs.k = k;
    inputs.amax.resize(static_cast<size_t>(k));
  }
  check(inputs.k == k, "calibration: linear {} has inputs of {} channels, and had {}", name, k,
        inputs.k);
  check(x.dtype == DType::bf16 || x.dtype == DType::f32,
        "calibration: linear {} has inputs in {}, expected BF16 or F32", name, name_of(x.dtype));
  if (x.dtype == DType::bf16) {
    record<uint16_t>(name, x, inputs);
  } else {
    record<uint32_t>(name, x, inputs);
  }
  inputs.rows_seen += static_cast<uint64_t>(x.shape[0]);
}

template <class Word>
void InputRecorder::record(const std::string& name, const ConstTensorView& x,
                           quant::LinearInputs& inputs) {
  const int64_t rows = x.shape[0], k = inputs.k, stride = x.row_stride();
  const auto row_bytes = stride * static_cast<int64_t>(sizeof(Word));
  const int64_t rows_at_once = std::max<int64_t>(kPieceBytes / row_bytes, 1);
  const std::vector<int64_t> kept = kept_rows(turn_, rows, wanted_);
  auto next = kept.begin();
  std::vector<Word> most(static_cast<size_t>(k), 0);
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - first);
    // Rows may lie apart; behind the last there may be nothing.
    const auto bytes =
        static_cast<size_t>((count - 1) * row_bytes) + static_cast<size_t>(k) * sizeof(Word);
    if (piece_.size() < bytes) piece_.resize(bytes);
    backend_.copy_to_host(piece_.data(), x.data + first * row_bytes, bytes);
    const auto* values = reinterpret_cast<const Word*>(piece_.data());
    backend_.pool().run(ceil_div(k, kColumns), [&](int64_t task, int) {
      const int64_t begin = task * kColumns;
      raise(most.data(), values, count, stride, begin, std::min(k, begin + kColumns));
    });
    for (; next != kept.end() && *next < first + count; ++next) {
      const Word* row = values + (*next - first) * stride;
      for (int64_t j = 0; j < k; ++j) inputs.rows.push_back(value_of(row[j]));
    }
  }
  for (size_t j = 0; j < most.size(); ++j) {
    const float value = value_of(most[j]);
    check(std::isfinite(value),
          "calibration: linear {} got a NaN or an infinity in channel {}; the checkpoint's weights "
          "are broken or overflow",
          name, j);
    inputs.amax[j] = std::max(inputs.amax[j], value);
  }
}

}  // namespace octet::convert
