#include "formats/resume_journal.h"

#include <gtest/gtest.h>

#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

constexpr uint64_t kJob = 0x0123456789abcdef;

class Journal : public testing::Test {
 protected:
  Journal() {
    ResumeJournal journal(path_, kJob, std::span(finished_).first(1));
    journal.append(std::span(finished_).subspan(1, 1));
    journal.append(std::span(finished_).subspan(2));
    text_ = folder_.read("journal");
    head_ = text_.find('\n') + 1;
    line_ = text_.find('\n', head_) + 1 - head_;
  }

  auto read(const std::string& text, uint64_t job = kJob, size_t tensors = 100) const {
    folder_.write("journal", text);
    return read_resume_journal(path_, job, tensors);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("journal");
  const std::vector<FinishedTensor> finished_ = {{42, 7}, {0, ~uint64_t{0}}, {99, 0}, {5, 5}};
  std::string text_;
  size_t head_ = 0;
  size_t line_ = 0;
};

TEST_F(Journal, ReadsWhatWasWrittenAndAppended) {
  EXPECT_EQ(text_.size(), head_ + 4 * line_);
  EXPECT_EQ(read_resume_journal(path_, kJob, 100), finished_);
  EXPECT_EQ(read_resume_journal(path_, kJob + 1, 100), std::nullopt);
  EXPECT_EQ(read_resume_journal(folder_.file("absent"), kJob, 100), std::nullopt);
  EXPECT_EQ(read_resume_journal(folder_.path(), kJob, 100), std::nullopt);
  const ResumeJournal replaced(path_, kJob, {});
  EXPECT_EQ(read_resume_journal(path_, kJob, 100)->size(), 0u);
}

TEST_F(Journal, EveryTruncationKeepsTheWholeLines) {
  for (size_t size = 0; size < text_.size(); ++size) {
    const auto found = read(text_.substr(0, size));
    ASSERT_EQ(found.has_value(), size >= head_) << size;
    if (!found) continue;
    const auto whole = std::span(finished_).first((size - head_) / line_);
    ASSERT_EQ(*found, std::vector(whole.begin(), whole.end())) << size;
  }
}

TEST_F(Journal, EveryFlippedBitCostsItsLine) {
  for (size_t at = 0; at < text_.size() * 8; ++at) {
    std::string damaged = text_;
    damaged[at / 8] = static_cast<char>(damaged[at / 8] ^ (1 << at % 8));
    const auto found = read(damaged);
    ASSERT_EQ(found.has_value(), at / 8 >= head_) << at;
    if (!found) continue;
    auto others = finished_;
    others.erase(others.begin() + static_cast<ptrdiff_t>((at / 8 - head_) / line_));
    ASSERT_EQ(*found, others) << at;
  }
}

TEST_F(Journal, PlacesOutsideAndRepeatedPlacesDoNotCount) {
  const auto inside = read(text_, kJob, 43);
  EXPECT_EQ(*inside, (std::vector<FinishedTensor>{finished_[0], finished_[1], finished_[3]}));
  EXPECT_EQ(read(text_ + text_.substr(head_)), finished_);
  EXPECT_EQ(read(text_ + std::string(100'000, '0')), finished_);
  EXPECT_EQ(read(text_ + std::string(1000, '\0')), finished_);
  EXPECT_EQ(read(text_.substr(0, head_) + "x" + text_.substr(head_))->size(), 0u);
}

}  // namespace
}  // namespace octet::test
