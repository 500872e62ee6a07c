#include "output.h"

#include <fmt/format.h>

#include <cstdio>

#include "field_names.h"
#include "octet/tools/files.h"
#include "octet/tools/text.h"

namespace octet::cli {
ProgressReports::ProgressReports(const CommonFlags& flags, std::string title, std::string unit)
    : quiet_(flags.quiet), title_(std::move(title)), unit_(std::move(unit)) {}

void ProgressReports::operator()(int done, int total) {
  if (quiet_) return;
  if (!progress_) progress_.emplace(title_, total, unit_);
  progress_->update(done);
}

void PhaseReports::operator()(const std::string& phase, int done, int total) {
  if (phase != phase_) {
    progress_.reset();
    progress_.emplace(flags_, title_, phase);
    phase_ = phase;
  }
  (*progress_)(done, total);
}

void say(const CommonFlags& flags, const Sentence& sentence) {
  // fputs rather than fmt::print, which throws when standard error is full or closed.
  std::fputs(fmt::format("octet: {}\n", printable(with_flags(sentence, flags.app))).c_str(),
             stderr);
}

Detail detail_of(const CommonFlags& flags) {
  return flags.quiet ? Detail::brief : flags.verbose ? Detail::full : Detail::usual;
}

void show(const CommonFlags& flags, const std::string& text, const std::string& json) {
  std::fputs((flags.json == "-" ? json : text).c_str(), stdout);
  if (!flags.json.empty() && flags.json != "-") write_text_file(flags.json, json);
}

}  // namespace octet::cli
