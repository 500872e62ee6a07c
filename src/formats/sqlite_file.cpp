#include "formats/sqlite_file.h"

#include "base/error.h"
#include "formats/text.h"

#ifdef OCTET_HAS_SQLITE
#include <sqlite3.h>
#endif

namespace octet {

bool is_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

#ifdef OCTET_HAS_SQLITE

namespace {

constexpr std::chrono::seconds kSqliteSeconds(120);
constexpr int kSqliteSteps = 100'000;    // between two looks at the clock
constexpr int kSqliteLongest = 1 << 20;  // bytes of a value

// A path as SQLite takes it with parameters: anything but plain characters is escaped.
std::string sqlite_address(const std::string& path) {
  // Three slashes: the first two would begin the name of a host.
  std::string address = path.starts_with('/') ? "file://" : "file:";
  for (const char byte : path) {
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' ||
                          byte == '_' || byte == '-';
    if (is_plain) {
      address += byte;
    } else {
      address += fmt::format("%{:02X}", static_cast<uint8_t>(byte));
    }
  }
  return address + "?mode=ro&immutable=1";
}

}  // namespace

SqliteFile::SqliteFile(const std::string& path)
    : path_(path), deadline_(std::chrono::steady_clock::now() + kSqliteSeconds) {
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE;
  if (::sqlite3_open_v2(sqlite_address(path).c_str(), &database_, flags, nullptr) != SQLITE_OK) {
    ::sqlite3_close(database_);
    fail("{}: cannot be opened as an SQLite file", path_);
  }
  for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_ENABLE_TRIGGER}) {
    ::sqlite3_db_config(database_, off, 0, nullptr);
  }
  ::sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kSqliteLongest);
  ::sqlite3_progress_handler(database_, kSqliteSteps, on_progress, this);
  ::sqlite3_exec(database_,
                 "PRAGMA cell_size_check=ON; PRAGMA cache_size=-8192; PRAGMA mmap_size=0", nullptr,
                 nullptr, nullptr);
}

SqliteFile::~SqliteFile() { ::sqlite3_close(database_); }

int SqliteFile::on_progress(void* self) {
  return std::chrono::steady_clock::now() > static_cast<SqliteFile*>(self)->deadline_ ? 1 : 0;
}

void SqliteFile::refuse() {
  if (::sqlite3_errcode(database_) == SQLITE_INTERRUPT) {
    fail("{}: takes more than {} seconds to read", path_, kSqliteSeconds.count());
  }
  fail("{}: is a damaged SQLite file: {}", path_, one_line(::sqlite3_errmsg(database_)));
}

void SqliteFile::select(const std::string& query, const std::function<void(const Row&)>& row) {
  sqlite3_stmt* statement = nullptr;
  if (::sqlite3_prepare_v2(database_, query.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    refuse();
  }
  const struct Finalizer {
    sqlite3_stmt* statement;
    ~Finalizer() { ::sqlite3_finalize(statement); }
  } finalizer{statement};
  int result;
  while ((result = ::sqlite3_step(statement)) == SQLITE_ROW) row(Row(statement));
  if (result != SQLITE_DONE) refuse();
}

bool SqliteFile::has_table(std::string_view name) {
  bool found = false;
  select(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}' AND "
                     "rootpage > 0",
                     name),
         [&](const Row&) { found = true; });
  return found;
}

bool SqliteFile::has_column(std::string_view table, std::string_view column) {
  bool found = false;
  select(fmt::format("PRAGMA table_info({})", table),
         [&](const Row& row) { found = found || row.text(1) == column; });
  return found;
}

int64_t SqliteFile::Row::integer(int column) const {
  return ::sqlite3_column_int64(statement_, column);
}

bool SqliteFile::Row::is_null(int column) const {
  return ::sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::string_view SqliteFile::Row::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(::sqlite3_column_text(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(::sqlite3_column_bytes(statement_, column))};
}

#else

SqliteFile::SqliteFile(const std::string& path) {
  fail("{}: is an SQLite file, and this build has no SQLite; give CSV of nsys stats instead", path);
}
SqliteFile::~SqliteFile() = default;
int SqliteFile::on_progress(void*) { return 0; }
void SqliteFile::refuse() { fail("{}: cannot be read without SQLite", path_); }
void SqliteFile::select(const std::string&, const std::function<void(const Row&)>&) { refuse(); }
bool SqliteFile::has_table(std::string_view) { return false; }
bool SqliteFile::has_column(std::string_view, std::string_view) { return false; }
int64_t SqliteFile::Row::integer(int) const { return 0; }
bool SqliteFile::Row::is_null(int) const { return true; }
std::string_view SqliteFile::Row::text(int) const { return {}; }

#endif

}  // namespace octet
