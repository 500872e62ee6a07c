#include "formats/sqlite_file.h"

#include "base/error.h"
#include "formats/text.h"

#ifdef OCTET_HAS_SQLITE
#include <sqlite3.h>

#include <new>
#endif

namespace octet {

bool is_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

#ifdef OCTET_HAS_SQLITE

namespace {

constexpr int kSqliteSteps = 1000;  // between two looks at the clock, besides one for each row

struct SqliteLimit {
  int what, most;
};

// More than any export needs. The lengths also bound what a single step can take, in which nobody
// looks at the clock.
constexpr SqliteLimit kSqliteLimits[] = {
    {SQLITE_LIMIT_LENGTH, 1 << 20},  // bytes of a value
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 16}, {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},        {SQLITE_LIMIT_WORKER_THREADS, 0},
};

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

SqliteFile::SqliteFile(const std::string& path, std::chrono::seconds limit)
    : path_(path), limit_(limit), deadline_(std::chrono::steady_clock::now() + limit) {
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE;
  if (::sqlite3_open_v2(sqlite_address(path).c_str(), &database_, flags, nullptr) != SQLITE_OK) {
    const bool lacks_memory = database_ == nullptr || ::sqlite3_errcode(database_) == SQLITE_NOMEM;
    ::sqlite3_close(database_);
    if (lacks_memory) throw std::bad_alloc();
    fail("{}: cannot be opened as an SQLite file", path_);
  }
  for (const int off :
       {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER,
        SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, SQLITE_DBCONFIG_WRITABLE_SCHEMA}) {
    ::sqlite3_db_config(database_, off, 0, nullptr);
  }
  ::sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // No virtual table either, under whatever number of a page.
  ::sqlite3_drop_modules(database_, nullptr);
  for (const auto& [what, most] : kSqliteLimits) ::sqlite3_limit(database_, what, most);
  ::sqlite3_progress_handler(database_, kSqliteSteps, on_progress, this);
  ::sqlite3_exec(database_,
                 "PRAGMA cell_size_check=ON; PRAGMA cache_size=-8192; PRAGMA mmap_size=0", nullptr,
                 nullptr, nullptr);
}

SqliteFile::~SqliteFile() { ::sqlite3_close(database_); }

bool SqliteFile::is_late() const { return std::chrono::steady_clock::now() > deadline_; }

int SqliteFile::on_progress(void* self) { return static_cast<SqliteFile*>(self)->is_late(); }

void SqliteFile::refuse() {
  if (::sqlite3_errcode(database_) == SQLITE_NOMEM) throw std::bad_alloc();
  check(!is_late(), "{}: takes more than {} seconds to read; export fewer steps", path_,
        limit_.count());
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
  while ((result = ::sqlite3_step(statement)) == SQLITE_ROW) {
    row(Row(statement));
    if (is_late()) refuse();
  }
  if (result != SQLITE_DONE) refuse();
}

bool SqliteFile::has_table(std::string_view name) {
  bool found = false;
  select(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}' AND "
                     "rootpage > 0",
                     name),
         [&](const Row&) { found = true; });
  if (!found) return false;
  // A generated column is an expression of the file's, worked out in each row.
  constexpr int kHidden = 6;
  select(fmt::format("PRAGMA table_xinfo({})", name), [&](const Row& row) {
    check(row.integer(kHidden) == 0,
          "{}: column {} of table {} is a generated one, which no export has", path_,
          Quoted{row.text(1)}, name);
  });
  return true;
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

SqliteFile::SqliteFile(const std::string& path, std::chrono::seconds) {
  fail("{}: is an SQLite file, and this build has no SQLite; give CSV of nsys stats instead", path);
}
SqliteFile::~SqliteFile() = default;
bool SqliteFile::is_late() const { return false; }
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
