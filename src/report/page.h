// What pages and drawings are made of. A page is one file without scripts, light or dark as the
// reader's system is.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::report {

// Text from users and files as text of a page or of an attribute: markup, control characters and
// bytes that are not UTF-8 mean nothing any more.
std::string html_text(std::string_view text);
// The same for a long name, which may go on in the next line behind a '.', '_', '/' and the like.
std::string html_name(std::string_view name);

// "data:image/png;base64,..."
std::string png_uri(std::span<const std::byte> png);

// From the doctype to <body>, with the rules that pages share: text, tables, .verdict with .pass or
// .fail, svg with .tick and .grid. `title` may be anybody's text; `style` is the page's own CSS,
// each line after a line break.
std::string page_head(std::string_view title, std::string_view style);

// "<table>" with a line of headings; those that begin with # stand above numbers. `rows` is HTML.
std::string html_table(const std::vector<std::string>& headings, const std::string& rows);

// A row of two cells: what `value`, which is HTML, is called, and itself.
std::string html_row(std::string_view name, const std::string& value);

// "<li>" of each sentence.
std::string html_items(const std::vector<std::string>& sentences);

// "<svg ...>" of a drawing that `label` says in words; it ends with "</svg>".
std::string svg_begin(double width, double height, std::string_view label);

// `kind` is a class of the page's style; a pointer that rests on it shows `title`.
std::string svg_box(double x, double y, double width, double height, std::string_view kind,
                    std::string_view title = {});

// `anchor` is start, middle or end.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view text,
                     std::string_view kind = "tick");

}  // namespace octet::report
