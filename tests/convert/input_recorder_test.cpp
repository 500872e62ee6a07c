// What a recorder keeps of rows: magnitudes of all, and a sample that is spread over them.
#include "convert/input_recorder.h"

#include <cmath>
#include <limits>
#include <set>

#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "nn/weights.h"
#include "support.h"

namespace octet::test {
namespace {

using convert::InputRecorder;
using convert::kept_rows;
using convert::RecorderTurn;

TEST(KeptRows, AreAsManyAsWanted) {
  for (const int64_t wanted : {1, 2, 7, 64}) {
    for (const int64_t turns : {1, 2, 12, 100}) {
      for (const int64_t rows : {1, 3, 64, 1024}) {
        for (const int64_t text : {0, 1, 20, 900}) {
          if (text >= rows) continue;
          int64_t kept = 0;
          for (int64_t turn = 0; turn < turns; ++turn) {
            const auto at = kept_rows({"", turn, turns, text, rows - text}, rows, wanted);
            EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
            EXPECT_EQ(std::set<int64_t>(at.begin(), at.end()).size(), at.size());
            for (const int64_t row : at) EXPECT_TRUE(row >= 0 && row < rows);
            if (turn == 0) {
              EXPECT_FALSE(at.empty()) << "a file of no rows is refused";
            }
            kept += std::ssize(at);
          }
          if (rows >= 16 * wanted) {
            EXPECT_EQ(kept, wanted) << turns << " turns of " << rows;
          }
          EXPECT_LE(kept, wanted);
          if (text == 0 && turns == 1) {
            EXPECT_EQ(kept, std::min(wanted, rows));
          }
        }
      }
    }
  }
}

TEST(KeptRows, AreSpreadOverPlacesAndTurns) {
  constexpr int64_t kTurns = 96, kRows = 1024, kWanted = 64;
  std::vector<int> by_place(8), by_turn(8);
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    for (const int64_t row : kept_rows({"", turn, kTurns, 0, kRows}, kRows, kWanted)) {
      ++by_place[static_cast<size_t>(row * 8 / kRows)];
      ++by_turn[static_cast<size_t>(turn * 8 / kTurns)];
    }
  }
  for (const int count : by_turn) EXPECT_EQ(count, 8);
  for (const int count : by_place) EXPECT_NEAR(count, 8, 2);
}

TEST(KeptRows, OfASequenceAreOfTextToo) {
  const auto text_share = [](int64_t text, int64_t image) {
    int64_t of_text = 0;
    for (int64_t turn = 0; turn < 12; ++turn) {
      for (const int64_t row : kept_rows({"", turn, 12, text, image}, text + image, 64)) {
        of_text += row < text;
      }
    }
    return of_text;
  };
  EXPECT_EQ(text_share(20, 1024), 8);
  EXPECT_EQ(text_share(1024, 1024), 32);
  EXPECT_EQ(text_share(2000, 256), 56);
  // Rows of another number are no sequence.
  EXPECT_EQ(kept_rows({"", 0, 1, 20, 100}, 100, 1), (std::vector<int64_t>{0}));
}

class Recorder : public testing::TestWithParam<DType> {
 protected:
  Recorder() {
    linear_.name = "some.linear";
    recorder_.begin({.network = "branch", .count = 2});
  }

  const quant::LinearInputs& inputs() { return statistics_.at("branch.some.linear"); }

  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 2});
  quant::ActivationStatistics statistics_;
  InputRecorder recorder_{*backend_, 6, statistics_};
  nn::Linear linear_;
  std::mt19937 random_{5};
};

INSTANTIATE_TEST_SUITE_P(Types, Recorder, testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

// Several pieces of download, columns that fill no task, rows that lie apart.
TEST_P(Recorder, SeesAllPieces) {
  constexpr int64_t kRows = 3001, kColumns = 2600, kStride = 2701;
  GuardedMatrix x(GetParam(), kRows, kColumns, kStride);
  fill_activations(x.view(), random_);
  write_element(x.view(), kRows - 1, kColumns - 1, -1000);
  write_element(x.view(), 0, 0, 2000);
  recorder_.input(linear_, x.view());

  EXPECT_EQ(inputs().k, kColumns);
  EXPECT_EQ(inputs().rows_seen, static_cast<uint64_t>(kRows));
  std::vector<float> amax(kColumns, 0);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      float& most = amax[static_cast<size_t>(j)];
      most = std::max(most, std::abs(read_element(x.view(), i, j)));
    }
  }
  EXPECT_EQ(inputs().amax, amax);
  const auto kept = kept_rows({.network = "branch", .count = 2}, kRows, 6);
  ASSERT_EQ(inputs().row_count(), 3);
  for (size_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      ASSERT_EQ(inputs().rows[i * kColumns + static_cast<size_t>(j)],
                read_element(x.view(), kept[i], j));
    }
  }

  // Another turn adds; smaller magnitudes change nothing.
  recorder_.begin({.network = "branch", .index = 1, .count = 2});
  GuardedMatrix zeros(GetParam(), 4, kColumns);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) write_element(zeros.view(), i, j, 0);
  }
  recorder_.input(linear_, zeros.view());
  EXPECT_EQ(inputs().amax, amax);
  EXPECT_EQ(inputs().row_count(), 6);
  EXPECT_EQ(inputs().rows_seen, static_cast<uint64_t>(kRows + 4));
}

TEST_P(Recorder, RefusesWhatCannotBe) {
  GuardedMatrix x(GetParam(), 3, 5);
  fill_activations(x.view(), random_);
  recorder_.input(linear_, x.view());
  EXPECT_ERROR_WITH(recorder_.input(linear_, x.view()), "branch.some.linear ran twice");
  recorder_.begin({.network = "branch", .index = 1, .count = 2});
  GuardedMatrix wider(GetParam(), 3, 6);
  EXPECT_ERROR_WITH(recorder_.input(linear_, wider.view()), "6 channels, and had 5");
  for (const float value : {NAN, -std::numeric_limits<float>::infinity()}) {
    recorder_.begin({.network = "branch", .index = 1, .count = 2});
    write_element(x.view(), 1, 2, value);
    EXPECT_ERROR_WITH(recorder_.input(linear_, x.view()), "channel 2");
  }
}

}  // namespace
}  // namespace octet::test
