#include "report/svg.h"

#include <fmt/format.h>

#include "report/html.h"

namespace octet::report {

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
