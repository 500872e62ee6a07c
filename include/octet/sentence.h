// A sentence in segments: text, and the fields of requests that it names. Whoever shows it may
// replace a field with their own word, such as a flag or an argument's name; the text around it,
// which may contain users' data, stays as it is.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet {

class Sentence {
 public:
  struct Segment {
    std::string text = {};
    bool is_field = false;
    bool operator==(const Segment&) const = default;
  };

  Sentence() = default;
  Sentence(std::string text) : segments_{{std::move(text)}}, text_(segments_[0].text) {}
  Sentence(const char* text) : Sentence(std::string(text)) {}
  explicit Sentence(std::vector<Segment> segments)
      : segments_(std::move(segments)),
        text_(said([](const std::string& field) { return "`" + field + "`"; })) {}

  const std::vector<Segment>& segments() const { return segments_; }
  bool empty() const { return text_.empty(); }

  bool operator==(const Sentence&) const = default;

  // Fields in backquotes: "`guidance` is -1, expected ...".
  const std::string& text() const { return text_; }
  operator const std::string&() const { return text_; }
  operator std::string_view() const { return text_; }
  friend std::ostream& operator<<(std::ostream& out, const Sentence& sentence) {
    return out << sentence.text_;
  }

  // With `word_for(field)`, a std::string, in place of each field.
  template <class WordFor>
  std::string said(const WordFor& word_for) const {
    std::string text;
    for (const Segment& each : segments_) text += each.is_field ? word_for(each.text) : each.text;
    return text;
  }

 private:
  std::vector<Segment> segments_;
  std::string text_;
};

}  // namespace octet
