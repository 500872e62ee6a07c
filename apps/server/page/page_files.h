// The files of the page at `/`, as part of the program.
#pragma once

#include <span>
#include <string_view>

namespace octet::server {

struct PageFile {
  std::string_view path;  // of its URL: "/" or "/page/canvas.js"
  std::string_view type;  // "text/javascript; charset=utf-8"
  std::string_view text;
};

std::span<const PageFile> page_files();

}  // namespace octet::server
