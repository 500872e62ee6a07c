// How far a measurement can be trusted: plain data.
#pragma once

namespace octet {

// How well the turns of a measurement agree, whose figure is their median.
struct Steadiness {
  // The largest interquartile range over the median, of all that was timed for the row.
  double spread = 0;
  // False when the turns disagree or are fewer than three, or when the figures contradict each
  // other: the machine was busy with something else, and they say little.
  bool reliable = true;
};

}  // namespace octet
