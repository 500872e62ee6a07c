#include "server/service/journal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "octet/error.h"
#include "server/made_jobs.h"

namespace octet::server {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    char name[] = "/tmp/octet-journal-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~JournalTest() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ifstream in(folder_ + "/jobs.jsonl");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  std::string folder_;
};

TEST_F(JournalTest, RemembersWhatWasNoted) {
  {
    Journal journal(folder_);
    EXPECT_TRUE(journal.former().empty());
    const auto waits = made_job("w", "anna"), fails = made_job("f", "ben"), ends = made_job("e");
    for (const auto& job : {waits, fails, ends}) journal.note_taken(*job);
    fails->fail({.message = "no memory"});
    ends->start("cpu");
    ends->complete(std::make_shared<const RenderReport>());
    journal.note_ended(fails->view());
    journal.note_ended(ends->view());
  }
  const Journal journal(folder_);
  ASSERT_EQ(journal.former().size(), 3u);
  EXPECT_EQ(journal.former()[0].id, "w");
  EXPECT_EQ(journal.former()[0].key, "anna");
  EXPECT_EQ(journal.former()[0].state, JobState::queued);
  EXPECT_EQ(journal.former()[1].state, JobState::failed);
  EXPECT_EQ(journal.former()[1].key, "ben");
  EXPECT_EQ(journal.former()[1].error, "no memory");
  EXPECT_EQ(journal.former()[2].state, JobState::completed);
  EXPECT_GT(journal.former()[2].created_at, 1.7e9);
}

TEST_F(JournalTest, KnowsWhenAJobEndedAndThatItWasForgotten) {
  {
    Journal journal(folder_);
    const auto kept = made_job("kept", "anna"), deleted = made_job("deleted", "anna");
    for (const auto& job : {kept, deleted}) {
      journal.note_taken(*job);
      job->cancel();
      journal.note_ended(job->view());
    }
    journal.note_forgotten("deleted");
    journal.note_forgotten("never there");
  }
  for (int reading = 0; reading < 2; ++reading) {  // the second one, of what the first has written
    const Journal journal(folder_);
    ASSERT_EQ(journal.former().size(), 1u);
    EXPECT_EQ(journal.former()[0].id, "kept");
    EXPECT_GE(journal.former()[0].ended_at, journal.former()[0].created_at);
  }
}

TEST_F(JournalTest, SkipsALineThatWasCutShortAndGarbage) {
  {
    Journal journal(folder_);
    journal.note_taken(*made_job("a"));
    journal.note_taken(*made_job("b"));
  }
  const std::string whole = text();
  for (size_t cut = 1; cut < 40; cut += 7) {
    std::ofstream(folder_ + "/jobs.jsonl") << "null\n[]\n{}\n{\"id\": 3}\n\xff\xfe\n"
                                           << whole.substr(0, whole.size() - cut);
    const Journal journal(folder_);
    ASSERT_EQ(journal.former().size(), cut == 1 ? 2u : 1u) << cut;
    EXPECT_EQ(journal.former()[0].id, "a");
  }
}

TEST_F(JournalTest, RewritesItselfWithWhatIsLeft) {
  Journal journal(folder_);
  for (int i = 0; i < 100; ++i) journal.note_taken(*made_job(std::to_string(i)));
  const size_t before = journal.bytes();
  journal.rewrite({{.id = "kept", .key = "k", .created_at = 1}});
  EXPECT_LT(journal.bytes(), before / 10);
  EXPECT_EQ(journal.bytes(), text().size());
  journal.note_taken(*made_job("next"));
  EXPECT_NE(text().find("next"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs.jsonl.new"));
}

TEST_F(JournalTest, BelongsToOneProcess) {
  const Journal journal(folder_);
  try {
    const Journal second(folder_);
    FAIL() << "a second journal in the same folder was opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another server"), std::string::npos);
  }
}

TEST_F(JournalTest, SaysWhichFolderCannotBeWritten) {
  try {
    const Journal journal("/proc/octet");
    FAIL() << "a journal in /proc was opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/octet"), std::string::npos);
  }
}

}  // namespace
}  // namespace octet::server
