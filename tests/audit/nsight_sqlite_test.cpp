// SQLite of Nsight Systems: read, and refused where it is damaged or computes.
#if defined(OCTET_HAS_SQLITE) && __has_include(<sqlite3.h>)

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <string>

#include "audit/read_trace.h"
#include "base/error.h"
#include "formats/error_message.h"
#include "formats/sqlite_file.h"
#include "formats/temporary_folder.h"

using namespace octet::audit;  // NOLINT: tests
using octet::test::error_of;
using octet::test::TemporaryFolder;

namespace {

std::string made_database(const TemporaryFolder& folder, const std::string& name,
                          const std::string& statements) {
  sqlite3* database = nullptr;
  const std::string path = folder.file(name);
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << error;
  sqlite3_close(database);
  return path;
}

const std::string& name_of_kernel(const Trace& trace, size_t kernel) {
  return trace.names.at(trace.kernels.at(kernel).name);
}

const char* const kNsysTables = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
    shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,
    blockZ INTEGER);
  INSERT INTO StringIds VALUES (1, 'void gemm(char*)'), (2, 'gemm'), (3, 'cudaLaunchKernel'),
    (4, 'layer.7'), (5, 'aten::mm, op_id = 17, sizes = [[1, 2]]');
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (50000, 53500, 0, 7, 88, 16777216, 1, 2, 4, 1, 1, 256, 1, 1),
    (40000, 41000, 0, 7, 77, 16777216, 1, 2, 4, 1, 1, 256, 1, 1),
    (45000, 46000, 0, 7, 77, 33554432, 99, 2, 1, 1, 1, 32, 1, 1);
)";

}  // namespace

TEST(Readers, NsightSystemsSqlite) {
  const TemporaryFolder folder;
  const std::string path = made_database(folder, "a?b%20#.sqlite", std::string(kNsysTables) + R"(
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
    INSERT INTO TARGET_INFO_GPU VALUES (1, 'other'), (0, 'NVIDIA H200');
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, copyKind INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10000, 11000, 0, 7, 1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
      correlationId INTEGER, nameId INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20500, 20600, 16777217, 77, 3),
      (31000, 31100, 16777217, 88, 3), (20500, 20600, 33554433, 77, 3);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
      textId INTEGER, globalTid INTEGER);
    INSERT INTO NVTX_EVENTS VALUES (20000, 30000, 59, NULL, 4, 16777217),
      (20100, 29000, 59, NULL, 5, 16777217), (30500, 32000, 59, 'layer.8', NULL, 16777217),
      (1, NULL, 34, 'mark', NULL, 16777217);
  )");
  const Trace trace = read_trace(path);
  EXPECT_EQ(trace.format, "Nsight Systems SQLite");
  EXPECT_EQ(trace.device, "NVIDIA H200");
  ASSERT_EQ(trace.kernels.size(), 4u);
  EXPECT_EQ(name_of_kernel(trace, 0), "[CUDA memcpy Host-to-Device]");
  EXPECT_EQ(name_of_kernel(trace, 1), "void gemm(char*)");
  EXPECT_EQ(trace.kernels[1].start_us, 40);
  EXPECT_EQ(trace.kernels[1].us, 1);
  EXPECT_EQ(trace.kernels[1].threads, 1024u);
  ASSERT_EQ(trace.ops.size(), 3u);
  const Op& op = trace.ops.at(trace.kernels[1].op);
  EXPECT_EQ(trace.names.at(op.name), "aten::mm");
  EXPECT_FALSE(op.is_range);
  EXPECT_EQ(trace.names.at(trace.ops.at(op.parent).name), "layer.7");
  EXPECT_EQ(trace.kernels[2].op, kNone);  // of a process without ranges
  EXPECT_EQ(trace.names.at(trace.ops.at(trace.kernels[3].op).name), "layer.8");
}

TEST(Readers, HostileSqlite) {
  const TemporaryFolder folder;
  const std::string sound = made_database(folder, "sound", kNsysTables);
  EXPECT_EQ(read_trace(sound).kernels.size(), 3u);
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "other", "CREATE TABLE a (b);")),
                    "without kernels");
  // A view that never ends, where a table is expected.
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "view", R"(
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS
          (SELECT 1 UNION ALL SELECT start + 1 FROM r) SELECT * FROM r;)")),
                    "without kernels");
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "columns", R"(
        CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start);)")),
                    "columns: is a damaged SQLite file");
  // Any type may stand in any column.
  const Trace odd = read_trace(made_database(folder, "odd", std::string(kNsysTables) + R"(
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('x', x'00ff', NULL, -1, 'c', 1e300, 'n', 0, -4,
        9223372036854775807, 9223372036854775807, 2, 2, 2);)"));
  EXPECT_EQ(odd.kernels.size(), 4u);
  // Cut anywhere, and with any page overwritten.
  const std::string bytes = folder.read("sound");
  for (size_t length = 16; length < bytes.size(); length += 509) {
    const std::string path = folder.write("cut", bytes.substr(0, length));
    const std::string message = error_of([&] { read_trace(path); });
    EXPECT_TRUE(message.starts_with(path) && message.find('\n') == message.npos) << message;
  }
  for (size_t at = 100; at < bytes.size(); at += 501) {
    std::string damaged = bytes;
    for (size_t i = at; i < std::min(at + 64, bytes.size()); ++i)
      damaged[i] = static_cast<char>(i * 37);
    try {
      read_trace(folder.write("damaged", damaged));
    } catch (const octet::Error&) {
    }
  }
}

// Nothing that the file computes is ever run: each of these takes hours, or never ends.
TEST(Readers, SqliteThatComputesIsRefused) {
  const TemporaryFolder folder;
  const auto with_end = [](const std::string& end) {
    return R"(CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER )" +
           end + R"(, deviceId INTEGER,
        correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER,
        gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
      WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3000)
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, demangledName) SELECT i, 1 FROM r;)";
  };
  const std::string virtual_column = made_database(
      folder, "virtual", with_end("AS (printf('%.*c', 900000, 'a') LIKE '%a%a%a%a%a%a%a%a%b')"));
  EXPECT_LT(folder.read("virtual").size(), 100'000u);
  EXPECT_ERROR_WITH(read_trace(virtual_column),
                    "virtual: column \"end\" of table CUPTI_ACTIVITY_KIND_KERNEL is a generated");
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "stored", with_end("AS (start + 1) STORED"))),
                    "is a generated");
  // In tables that are read after others, too.
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "later", std::string(kNsysTables) + R"(
        CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT AS (hex(zeroblob(900000))));)")),
                    "column \"name\" of table TARGET_INFO_GPU");
  // A module that runs under the number of a real page.
  EXPECT_ERROR_WITH(read_trace(made_database(folder, "module", R"(
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING rtree(start, end, demangledName);
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET rootpage = 2 WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL';)")),
                    "no such module");
}

TEST(Readers, SqliteIsNotReadForEver) {
  const TemporaryFolder folder;
  octet::SqliteFile file(made_database(folder, "sound", kNsysTables), std::chrono::seconds(0));
  EXPECT_ERROR_WITH(file.select("SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL", [](const auto&) {}),
                    "sound: takes more than 0 seconds to read");
}

#endif
