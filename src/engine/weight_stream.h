// Weights on their way to a device while it computes. The units of a step that do not stay there
// take turns in a few buffers: while one is used, those that are used next come into the others,
// also across the passes of different networks and across steps.
//
// Each unit has its buffer for as long as the stream is open, so recorded passes find it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "engine/part_store.h"

namespace octet::engine {

// When units came and were waited for, in the backend's marks.
struct StreamTrace {
  struct Entry {
    const PartStore* store = nullptr;
    int64_t unit = 0;
    size_t begin = 0, end = 0;
  };
  std::vector<Entry> copies, waits;
};

class WeightStream {
 public:
  WeightStream(Backend& backend, int buffers, uint64_t buffer_bytes)
      : backend_(backend), buffer_count_(buffers), buffer_bytes_(buffer_bytes) {}
  ~WeightStream() { close(); }
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // Takes memory, and brings the first units of the first store. `stores`: in the order in which a
  // step runs them, loaded.
  void open(std::span<PartStore* const> stores);
  // Gives the memory back. The units that were in it are gone.
  void close();
  bool is_open() const { return !slots_.empty(); }

  // Before a pass: whose pass comes after it, or null when nobody knows.
  void expect(const PartStore* next) { expected_ = next; }
  // Called by a store when a run asks for a unit: ops that follow find it there.
  void need(const PartStore& store, int64_t unit);

  // Notes what happens from now on; null: nothing.
  void set_trace(StreamTrace* trace) { trace_ = trace; }

  uint64_t sent_bytes() const { return sent_bytes_; }  // since it was made

 private:
  struct Item {
    PartStore* store;
    int64_t unit;
    size_t slot;
  };
  struct Slot {
    std::byte* memory = nullptr;
    size_t holds = kNothing;  // an item
    Transfer sent;
  };
  struct Range {
    size_t first = 0, end = 0;  // of items
  };
  static constexpr size_t kNothing = SIZE_MAX;

  void send(size_t item);
  void look_ahead(size_t item);
  size_t after(size_t item) const;

  Backend& backend_;
  int buffer_count_;
  uint64_t buffer_bytes_;
  Buffer memory_;
  std::vector<Slot> slots_;
  std::vector<Item> items_;
  std::map<const PartStore*, Range> ranges_;
  const PartStore* expected_ = nullptr;
  StreamTrace* trace_ = nullptr;
  uint64_t sent_bytes_ = 0;
};

}  // namespace octet::engine
