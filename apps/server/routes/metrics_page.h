// Text for Prometheus, metric by metric.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/service/seconds_histogram.h"

namespace octet::server {

class MetricsPage {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  void begin(const std::string& name, const std::string& type, const std::string& help);
  // Of the metric that was begun last.
  void value(const Labels& labels, double value, const std::string& suffix = "");

  // One with a single value.
  void gauge(const std::string& name, const std::string& help, double number);
  void counter(const std::string& name, const std::string& help, double number);
  void histogram(const std::string& name, const std::string& help, const SecondsHistogram& seconds);

  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

}  // namespace octet::server
