// What drawings are made of. Text in them may be anybody's.
#pragma once

#include <string>
#include <string_view>

namespace octet::report {

// "<svg ...>" of a drawing that `label` says in words; it ends with "</svg>".
std::string svg_begin(double width, double height, std::string_view label);

// `kind` is a class of the page's style; a pointer that rests on it shows `title`.
std::string svg_box(double x, double y, double width, double height, std::string_view kind,
                    std::string_view title = {});

// `anchor` is start, middle or end.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view text,
                     std::string_view kind = "tick");

}  // namespace octet::report
