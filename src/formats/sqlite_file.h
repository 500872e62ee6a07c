// Reading SQLite files that strangers made: nothing of their schema is run, and no query takes for
// ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace octet {

// Whether bytes begin as such a file does.
bool is_sqlite(std::string_view head);

class SqliteFile {
 public:
  // Opened read-only, and taken as not changing: no lock, no journal. Throws Error when it cannot
  // be opened, or this build has no SQLite. `limit`: for everything that is read of it.
  static constexpr std::chrono::seconds kLimit{120};
  explicit SqliteFile(const std::string& path, std::chrono::seconds limit = kLimit);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // A table that holds its rows itself: a view or a virtual table is none, and one with generated
  // columns is refused with an Error. `name` and `column` are the program's own words, not the
  // file's. Tables have to be asked for before they are read.
  bool has_table(std::string_view name);
  bool has_column(std::string_view table, std::string_view column);

  class Row {
   public:
    int64_t integer(int column) const;  // 0 for anything but a number
    bool is_null(int column) const;
    std::string_view text(int column) const;  // valid for the call

   private:
    friend class SqliteFile;
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    sqlite3_stmt* statement_;
  };

  // `query` is the program's own text. Throws Error when the file is damaged or takes too long.
  void select(const std::string& query, const std::function<void(const Row&)>& row);

 private:
  [[noreturn]] void refuse();
  bool is_late() const;
  static int on_progress(void* self);

  std::string path_;
  sqlite3* database_ = nullptr;
  std::chrono::seconds limit_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace octet
