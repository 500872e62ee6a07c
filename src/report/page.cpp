#include "report/page.h"

#include <fmt/format.h>

#include <cstdint>

#include "formats/text.h"

namespace octet::report {
namespace {

constexpr const char* kPageStyle = R"(
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5d6875;--paper:#fbfaf7;--card:#fff;
--edge:#dcd9d0;--good:#1c7c4a;--bad:#b3261e;--accent:#2b62a8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa4b0;--paper:#14171c;
--card:#1c2128;--edge:#343b45;--good:#5fc58f;--bad:#ff8a80;--accent:#7fb2f0}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
margin:0 auto;max-width:72rem;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
.dim,.tick,figcaption,th{color:var(--dim)}code{font-size:.85em;overflow-wrap:break-word}
.verdict{border:2px solid;border-radius:.6rem;padding:.9rem 1.1rem;margin:1.2rem 0}
.verdict strong{font-size:1.25rem;letter-spacing:.05em}.pass{color:var(--good)}
.fail{color:var(--bad)}.verdict ul{margin:.4rem 0 0;color:var(--ink)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
td,th{padding:.3rem .7rem .3rem 0;text-align:left;vertical-align:top;font-weight:400;
border-bottom:1px solid var(--edge);font-variant-numeric:tabular-nums}
svg{width:100%;max-width:44rem;background:var(--card);border:1px solid var(--edge);
border-radius:.5rem}.tick{font-size:12px;fill:var(--dim)}.grid{stroke:var(--edge)}
@media(max-width:40rem){body{font-size:14px;padding:1rem .75rem 3rem}td,th{padding-right:.45rem}
.scroll svg{min-width:36rem}})";

}  // namespace

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : without_controls(text)) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string html_name(std::string_view name) {
  std::string text = html_text(name), broken;
  for (size_t i = 0; i < text.size(); ++i) {
    broken += text[i];
    // Behind what separates the words of names, and never within "&lt;" or before an end.
    const bool separates = std::string_view("._/:,-").find(text[i]) != std::string_view::npos;
    const bool goes_on = i + 1 < text.size() && text[i + 1] != text[i] && text[i + 1] != ' ';
    if (separates && goes_on) broken += "<wbr>";
  }
  return broken;
}

std::string png_uri(std::span<const std::byte> png) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string uri = "data:image/png;base64,";
  for (size_t at = 0; at < png.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < png.size() ? std::to_integer<uint32_t>(png[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      uri += at + i <= png.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return uri;
}

std::string page_head(std::string_view title, std::string_view style) {
  return fmt::format(R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{}</title>
<style>{}{}
</style></head><body>
)",
                     html_text(title), kPageStyle, style);
}

std::string html_table(const std::vector<std::string>& headings, const std::string& rows) {
  std::string head;
  for (const std::string& heading : headings) {
    const bool is_number = heading.starts_with('#');
    head += fmt::format(R"(<th scope="col"{}>{}</th>)", is_number ? R"( class="number")" : "",
                        html_text(heading.substr(is_number ? 1 : 0)));
  }
  return fmt::format(
      R"(<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>)",
      head, rows);
}

std::string html_row(std::string_view name, const std::string& value) {
  return fmt::format(R"(<tr><th scope="row">{}</th><td>{}</td></tr>)", name, value);
}

std::string html_items(const std::vector<std::string>& sentences) {
  std::string items;
  for (const std::string& sentence : sentences) {
    items += fmt::format("<li>{}</li>", html_text(sentence));
  }
  return items;
}

std::string svg_begin(double width, double height, std::string_view label) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", width, height,
                     html_text(label));
}

std::string svg_box(double x, double y, double width, double height, std::string_view kind,
                    std::string_view title) {
  const std::string box =
      fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}")", kind,
                  x, y, width, height);
  if (title.empty()) return box + "/>";
  return fmt::format("{}><title>{}</title></rect>", box, html_text(title));
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text,
                     std::string_view kind) {
  return fmt::format(R"(<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", kind,
                     x, y, anchor, html_text(text));
}

}  // namespace octet::report
