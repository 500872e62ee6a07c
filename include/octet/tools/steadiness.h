// How reliable a measurement is: plain data.
#pragma once

namespace octet {

// How well the repetitions of a measurement agree; the reported figure is their median.
struct Steadiness {
  // The largest interquartile range over the median among all times of the row.
  double spread = 0;
  // False if the repetitions disagree or are fewer than three, or if the figures contradict each
  // other: the machine was busy, and they mean little.
  bool reliable = true;
};

}  // namespace octet
