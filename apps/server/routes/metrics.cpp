// GET /metrics: counters and gauges in Prometheus' text format, version 0.0.4.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "octet/version.h"
#include "server/routes/context.h"
#include "server/routes/metrics_page.h"

namespace octet::server {
namespace {

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void add_jobs(MetricsPage& page, const ServiceCounts& counts) {
  page.gauge("octet_queue_depth", "Jobs that wait", counts.queued);
  page.gauge("octet_jobs_running", "Jobs that are rendered", counts.running);
  page.gauge("octet_jobs_kept", "Jobs that have ended and can still be asked for", counts.kept);
  page.gauge("octet_results_bytes", "Results that are kept in memory",
             static_cast<double>(counts.kept_bytes));
  page.begin("octet_jobs_total", "counter", "Jobs that have ended, by their state");
  page.value({{"state", "completed"}}, counts.completed);
  page.value({{"state", "failed"}}, counts.failed);
  page.value({{"state", "cancelled"}}, counts.cancelled);
  page.counter("octet_jobs_submitted_total", "Jobs that were taken", counts.submitted);
  page.counter("octet_jobs_rejected_total", "Requests for jobs that were refused", counts.rejected);
  page.counter("octet_pictures_total", "Pictures that were made", counts.pictures);
  page.histogram("octet_job_wait_seconds", "What started jobs had waited", counts.waiting);
  page.histogram("octet_job_render_seconds", "Rendering of jobs", counts.rendering);
}

void add_steps(MetricsPage& page, const ServiceCounts& counts) {
  page.begin("octet_step_seconds", "summary", "Seconds of denoising steps");
  page.value({}, counts.step_seconds, "_sum");
  page.value({}, counts.steps, "_count");
  const double steps = static_cast<double>(counts.steps);
  page.gauge("octet_seconds_per_step", "The mean of all steps; 0: none yet",
             steps > 0 ? counts.step_seconds / steps : 0);
  const double linears = static_cast<double>(counts.all_linears);
  page.gauge("octet_int8_linears_ratio",
             "Share of the last job's large linears that ran in native INT8",
             linears > 0 ? static_cast<double>(counts.int8_linears) / linears : 0);
  page.counter("octet_joules_total", "Energy that the devices have drawn; 0: unknown",
               counts.joules);
}

void add_workers(MetricsPage& page, const std::vector<WorkerState>& workers) {
  using Value = double (*)(const WorkerState&);
  const auto add = [&](const char* name, const char* help, Value value) {
    page.begin(name, "gauge", help);
    for (size_t i = 0; i < workers.size(); ++i) {
      page.value({{"worker", std::to_string(i)}, {"device", workers[i].device}}, value(workers[i]));
    }
  };
  add("octet_worker_loaded", "1: the worker has its model",
      [](const WorkerState& worker) { return worker.loaded ? 1.0 : 0.0; });
  add("octet_worker_busy", "1: the worker renders",
      [](const WorkerState& worker) { return worker.busy ? 1.0 : 0.0; });
  add("octet_device_memory_used_bytes", "Device memory that the worker uses",
      [](const WorkerState& worker) { return static_cast<double>(worker.engine.used_bytes); });
  add("octet_device_memory_peak_bytes", "The most of it since the last picture began",
      [](const WorkerState& worker) { return static_cast<double>(worker.engine.peak_bytes); });
  add("octet_device_memory_free_bytes", "Device memory that is free; 0: unknown",
      [](const WorkerState& worker) { return static_cast<double>(worker.engine.free_bytes); });
}

void add_http(MetricsPage& page, const AnswerCounts::Counts& answers,
              const http::ServerCounts& connections) {
  page.begin("octet_http_requests_total", "counter", "Answers, by route and status");
  for (const auto& [key, each] : answers) {
    page.value({{"route", key.first}, {"status", std::to_string(key.second)}}, each.first);
  }
  page.begin("octet_http_request_seconds_total", "counter", "Seconds until answers were sent");
  for (const auto& [key, each] : answers) {
    page.value({{"route", key.first}, {"status", std::to_string(key.second)}}, each.second);
  }
  page.gauge("octet_http_connections", "Open connections", connections.connections);
  page.gauge("octet_http_streams", "Open streams of events", connections.streams);
  page.gauge("octet_http_unsent_bytes", "Of answers that their readers have not taken yet",
             static_cast<double>(connections.unsent_bytes));
  page.counter("octet_http_refused_total", "Connections and requests refused by a limit",
               connections.refused);
  page.counter("octet_http_disconnected_total", "Clients that left before their answer's end",
               connections.disconnected);
}

void show_metrics(const Context& context, const CallPtr& call) {
  MetricsPage page;
  page.begin("octet_build_info", "gauge", "1, with the version of the program");
  page.value({{"version", version()}, {"commit", commit()}}, 1);
  page.gauge("octet_ready", "1: jobs are taken and a worker has its model",
             context.service.is_ready() ? 1 : 0);
  page.gauge("octet_start_time_seconds", "When the server was started, since 1970",
             context.started_at);
  page.gauge("process_resident_memory_bytes", "Memory of the process", resident_bytes());
  const ServiceCounts counts = context.service.counts();
  add_jobs(page, counts);
  add_steps(page, counts);
  add_workers(page, context.service.workers());
  const auto& connections = context.options.connections;
  add_http(page, context.answers.all(), connections ? connections() : http::ServerCounts());
  call->text(200, page.text(), "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace

void MetricsPage::begin(const std::string& name, const std::string& type, const std::string& help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}.\n# TYPE {} {}\n", name, help, name, type);
}

// Of the values of labels, a backslash, a quote and a line break have to be escaped.
void MetricsPage::value(const Labels& labels, double value, const std::string& suffix) {
  std::string list;
  for (const auto& [name, text] : labels) {
    std::string escaped;
    for (const char each : text) {
      if (each == '\\' || each == '"') escaped += '\\';
      escaped += each == '\n' ? std::string("\\n") : std::string(1, each);
    }
    list += fmt::format("{}{}=\"{}\"", list.empty() ? "{" : ",", name, escaped);
  }
  if (!list.empty()) list += "}";
  text_ += fmt::format("{}{}{} {}\n", name_, suffix, list, value);
}

void MetricsPage::gauge(const std::string& name, const std::string& help, double number) {
  begin(name, "gauge", help);
  value({}, number);
}

void MetricsPage::counter(const std::string& name, const std::string& help, double number) {
  begin(name, "counter", help);
  value({}, number);
}

void MetricsPage::histogram(const std::string& name, const std::string& help,
                            const SecondsHistogram& seconds) {
  begin(name, "histogram", help);
  double up_to = 0;
  for (size_t i = 0; i < seconds.counts.size(); ++i) {
    up_to += static_cast<double>(seconds.counts[i]);
    const bool is_last = i == SecondsHistogram::kBounds.size();
    const std::string bound = is_last ? "+Inf" : fmt::format("{}", SecondsHistogram::kBounds[i]);
    value({{"le", bound}}, up_to, "_bucket");
  }
  value({}, seconds.sum, "_sum");
  value({}, up_to, "_count");
}

void add_metrics_routes(Context& context) {
  context.router.add({.method = "GET", .pattern = "/metrics", .answer = [&context](auto& call) {
                        show_metrics(context, call);
                      }});
}

}  // namespace octet::server
