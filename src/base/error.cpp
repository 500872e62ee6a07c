#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

#include "base/escaped_text.h"
#include "base/per_thread.h"

namespace octet {
namespace {

// Replaces a field's backquotes while a sentence is formatted, to be split there.
constinit ThreadPointer<const std::string> mark_in_use;

struct MarkInUse {
  explicit MarkInUse(const std::string& mark) {
    if (!mark_in_use.set(&mark)) throw std::bad_alloc();
  }
  ~MarkInUse() { mark_in_use.set(nullptr); }
};

bool names_field(std::string_view quoted) {
  return quoted == "{}" ||
         (!quoted.empty() && std::all_of(quoted.begin(), quoted.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         }));
}

std::string with_marks(std::string_view format, const std::string& mark) {
  std::string marked;
  for (size_t open = 0; (open = format.find('`')) != format.npos;) {
    marked += format.substr(0, open);
    format.remove_prefix(open + 1);
    const std::string_view quoted = format.substr(0, format.find('`'));
    if (quoted.size() == format.size() || !names_field(quoted)) {
      marked += '`';
      continue;
    }
    marked.append(mark).append(quoted).append(mark);
    format.remove_prefix(quoted.size() + 1);
  }
  return marked.append(format);
}

// A sentence whose text is fit to be shown.
Sentence shown(const Sentence& said) {
  if (without_controls(said.text()) == said.text()) return said;
  std::vector<Sentence::Segment> segments = said.segments();
  for (Sentence::Segment& each : segments) each.text = without_controls(each.text);
  return Sentence(std::move(segments));
}

}  // namespace

Error::Error(const Sentence& sentence) : Error(std::make_shared<const Sentence>(shown(sentence))) {}

Error::Error(std::shared_ptr<const Sentence> sentence)
    : std::runtime_error(sentence->text()), sentence_(std::move(sentence)) {}

std::string text_to_format(const Sentence& sentence) {
  const std::string* const mark = mark_in_use.get();
  if (mark == nullptr) return sentence.text();
  return sentence.said([mark](const std::string& field) { return *mark + field + *mark; });
}

Sentence make_sentence(fmt::string_view format, fmt::format_args args) {
  const std::string plain = fmt::vformat(format, args);
  if (plain.find('`') == plain.npos) return without_controls(plain);
  // A mark that does not occur in users' data. Its first and last characters differ, so that none
  // arises where a mark meets the data, either.
  std::string mark;
  for (int i = 0; mark.empty() || plain.find(mark) != plain.npos; ++i) {
    mark = fmt::format("\x01{}\x02", i);
  }
  const MarkInUse in_use(mark);
  const std::string marked = fmt::vformat(with_marks({format.data(), format.size()}, mark), args);
  std::vector<Sentence::Segment> segments;
  for (size_t begin = 0; begin <= marked.size();) {
    const size_t end = std::min(marked.find(mark, begin), marked.size());
    const bool is_field = segments.size() % 2 == 1;
    segments.push_back({without_controls(marked.substr(begin, end - begin)), is_field});
    begin = end + mark.size();
  }
  return Sentence(std::move(segments));
}

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

void fail_by_system(int error_number, const Sentence& what) {
  const Sentence why = sentence("{}: {}", what, system_error_text(error_number));
  if (error_number == ENOMEM) throw OutOfMemory(why);
  throw Error(why);
}

}  // namespace octet
