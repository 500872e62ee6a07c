// The begin of a page: one file without scripts, light or dark as the reader's system is.
#pragma once

#include <string>
#include <string_view>

namespace octet::report {

// From the doctype to <body>, with the rules that pages share: text, tables, .verdict with .pass or
// .fail, svg with .tick and .grid. `title` may be anybody's text; `style` is the page's own CSS,
// each line after a line break.
std::string page_head(std::string_view title, std::string_view style);

}  // namespace octet::report
