#include "server/page/page_files.h"

#include <string>
#include <vector>

#include "page_list.h"

namespace octet::server {
namespace {

struct EmbeddedFile {
  std::string_view name, text;
};

constexpr EmbeddedFile kEmbeddedFiles[] = {OCTET_PAGE_FILES};

std::string_view type_of_page_file(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

std::string path_of_page_file(std::string_view name) {
  return name == "index.html" ? "/" : "/page/" + std::string(name);
}

}  // namespace

std::span<const PageFile> page_files() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> list;
    for (const EmbeddedFile& file : kEmbeddedFiles) list.push_back(path_of_page_file(file.name));
    return list;
  }();
  static const std::vector<PageFile> files = [] {
    std::vector<PageFile> list;
    for (size_t i = 0; i < paths.size(); ++i) {
      list.push_back({paths[i], type_of_page_file(kEmbeddedFiles[i].name), kEmbeddedFiles[i].text});
    }
    return list;
  }();
  return files;
}

}  // namespace octet::server
