#include "formats/xmp.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr std::string_view kBegin = "<octet:metadata>", kEnd = "</octet:metadata>";

constexpr std::array<std::pair<char, std::string_view>, 3> kEntities = {
    {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}}};

std::string escaped_for_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    std::string_view entity;
    for (const auto& [character, name] : kEntities) {
      if (c == character) entity = name;
    }
    entity.empty() ? escaped += c : escaped += entity;
  }
  return escaped;
}

std::string read_from_xml(std::string_view text) {
  std::string read;
  while (!text.empty()) {
    char c = text.front();
    size_t length = 1;
    for (const auto& [character, name] : kEntities) {
      if (!text.starts_with(name)) continue;
      c = character;
      length = name.size();
    }
    read += c;
    text.remove_prefix(length);
  }
  return read;
}

}  // namespace

std::string xmp_packet(const std::vector<ImageText>& texts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const ImageText& text : texts) {
    check(is_utf8(text.key) && is_utf8(text.text), "XMP: the text of {} is not UTF-8",
          in_quotes(text.key));
    json[text.key] = text.text;
  }
  // XML takes none of the control characters, and JSON writes all of them as escapes but U+007F.
  return fmt::format(
      "<?xpacket begin=\"\xef\xbb\xbf\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>"
      "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">"
      "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
      "<rdf:Description rdf:about=\"\" xmlns:octet=\"urn:octet:picture\">{}{}{}"
      "</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>",
      kBegin, escaped_for_xml(json.dump()), kEnd);
}

std::vector<ImageText> texts_in_xmp(std::string_view packet) {
  std::vector<ImageText> texts;
  const size_t begin = packet.find(kBegin), end = packet.find(kEnd);
  if (begin == packet.npos || end == packet.npos || end < begin) return texts;
  const size_t from = begin + kBegin.size();
  const auto json = parse_ordered_json(read_from_xml(packet.substr(from, end - from)), "XMP");
  for (const auto& [key, text] : json.items()) {
    if (text.is_string()) texts.push_back({key, text.get<std::string>()});
  }
  return texts;
}

}  // namespace octet
