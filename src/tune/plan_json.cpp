#include "tune/plan_json.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"

namespace octet::tune {
namespace {

using nlohmann::json;

constexpr int kSchema = 2;
constexpr int kMaxMultiprocessors = 1'000'000;
constexpr double kMaxUs = 1e12;  // eleven days
constexpr const char* kShortText = "short printable text";
constexpr std::string_view kDateForm = "0000-00-00T00:00:00Z";

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

bool is_text(std::string_view text) {
  return text.size() <= kMaxPlanTextBytes && std::ranges::all_of(text, is_plain);
}

bool is_name(std::string_view text) { return !text.empty() && is_text(text); }

bool is_time(double us) { return us > 0 && us <= kMaxUs; }  // false for a NaN

bool is_date(std::string_view text) {
  const auto fits = [](char c, char form) {
    return form == '0' ? c >= '0' && c <= '9' : c == form;
  };
  return std::equal(text.begin(), text.end(), kDateForm.begin(), kDateForm.end(), fits);
}

// One object of the file: exactly the members that are expected, each read with its type checked.
// Errors say where in the file it is.
class Members {
 public:
  Members(const json& value, std::string where, std::initializer_list<const char*> names)
      : value_(value), where_(std::move(where)) {
    check(value.is_object(), "{}: is {}, expected an object", where_, describe(value));
    for (const char* name : names) {
      check(value.contains(name), "{}: the member \"{}\" is missing", where_, name);
    }
    for (const auto& [name, member] : value.items()) {
      check(std::ranges::find(names, name) != names.end(), "{}: the member {} is unknown", where_,
            in_quotes(name));
    }
  }

  const json& operator[](const char* name) const { return value_.at(name); }

  std::string text(const char* name, bool (*fits)(std::string_view), const char* expected) const {
    const json& member = value_.at(name);
    expect(name, member.is_string() && fits(member.get_ref<const std::string&>()), expected);
    return member.get<std::string>();
  }

  double time(const char* name) const {
    const json& member = value_.at(name);
    expect(name, member.is_number() && is_time(member.get<double>()), "positive microseconds");
    return member.get<double>();
  }

  bool truth(const char* name) const {
    const json& member = value_.at(name);
    expect(name, member.is_boolean(), "true or false");
    return member.get<bool>();
  }

  int count(const char* name) const {
    const json& member = value_.at(name);
    expect(name,
           member.is_number_unsigned() && member.get<uint64_t>() <= uint64_t{kMaxMultiprocessors},
           "a count");
    return member.get<int>();
  }

 private:
  void expect(const char* name, bool is_good, const char* expected) const {
    check(is_good, "{}: \"{}\" is {}, expected {}", where_, name, describe(value_.at(name)),
          expected);
  }

  const json& value_;
  std::string where_;
};

// Empty when the header is the expected one.
std::string header_difference(const json& value, const std::string& what,
                              const PlanHeader& expected) {
  const std::string where = what + ": header";
  check(value.is_object(), "{}: is {}, expected an object", where, describe(value));
  const auto schema = value.find("schema");
  check(schema != value.end() && schema->is_number_integer(),
        "{}: there is no whole number \"schema\"", where);
  // Before anything else: other schemas may have other members.
  if (*schema != kSchema) return fmt::format("schema {}, here {}", schema->dump(), kSchema);

  const Members header(value, where,
                       {"schema", "device", "multiprocessors", "driver", "toolkit", "library"});
  std::string difference;
  const auto compare = [&difference](const char* name, const auto& found, const auto& here) {
    if (found == here) return;
    difference +=
        fmt::format("{}{} {}, here {}", difference.empty() ? "" : "; ", name, found, here);
  };
  compare("device", header.text("device", is_text, kShortText), expected.device);
  compare("multiprocessors", header.count("multiprocessors"), expected.multiprocessors);
  compare("driver", header.text("driver", is_text, kShortText), expected.driver);
  compare("toolkit", header.text("toolkit", is_text, kShortText), expected.toolkit);
  compare("library", header.text("library", is_text, kShortText), expected.library);
  return difference;
}

GemmPlan plan_from(const json& value, const std::string& where) {
  const Members members(
      value, where,
      {"kernel", "us", "under_load", "runner_up", "runner_up_us", "reference_us", "date"});
  GemmPlan plan;
  plan.source = GemmPlan::Source::file;
  plan.kernel = members.text("kernel", is_name, "the name of a kernel");
  plan.us = members.time("us");
  plan.under_load = members.truth("under_load");
  plan.runner_up = members.text("runner_up", is_text, kShortText);
  if (!plan.runner_up.empty()) {
    plan.runner_up_us = members.time("runner_up_us");
  } else {
    check(members["runner_up_us"] == 0,
          "{}: \"runner_up_us\" is {}, expected 0 without a runner-up", where,
          describe(members["runner_up_us"]));
  }
  const json& references = members["reference_us"];
  const std::string inside = where + ": reference_us";
  check(references.is_object() && references.size() <= kMaxPlanReferences,
        "{}: is {}, expected an object of at most {} members", inside, describe(references),
        kMaxPlanReferences);
  for (const auto& [name, us] : references.items()) {
    check(is_name(name) && us.is_number() && is_time(us.get<double>()),
          "{}: {} is {}, expected a short name and positive microseconds", inside, in_quotes(name),
          describe(us));
    plan.reference_us[name] = us.get<double>();
  }
  plan.date = members.text("date", is_date, "a date such as 2025-01-31T12:00:00Z");
  return plan;
}

}  // namespace

PlanHeader storable(PlanHeader header) {
  for (std::string* text : {&header.device, &header.driver, &header.toolkit, &header.library}) {
    if (text->size() > kMaxPlanTextBytes) text->resize(kMaxPlanTextBytes);
    std::replace_if(
        text->begin(), text->end(), [](char c) { return !is_plain(c); }, '?');
  }
  header.multiprocessors = std::clamp(header.multiprocessors, 0, kMaxMultiprocessors);
  return header;
}

void check_storable(const std::string& key, const GemmPlan& plan) {
  check(is_name(key) && is_name(plan.kernel) && is_text(plan.runner_up),
        "the names in a plan for {} are {} and {}, expected short printable ones", in_quotes(key),
        in_quotes(plan.kernel), in_quotes(plan.runner_up));
  check(is_time(plan.us) && (plan.runner_up.empty() || is_time(plan.runner_up_us)),
        "the times in a plan for {} are {} and {} us, expected positive ones", key, plan.us,
        plan.runner_up_us);
  check(plan.reference_us.size() <= kMaxPlanReferences,
        "a plan for {} has {} references, expected at most {}", key, plan.reference_us.size(),
        kMaxPlanReferences);
  for (const auto& [name, us] : plan.reference_us) {
    check(
        is_name(name) && is_time(us),
        "the reference {} of a plan for {} takes {} us, expected a short name and a positive time",
        in_quotes(name), key, us);
  }
  check(is_date(plan.date), "the date of a plan for {} is {}, expected the form {}", key,
        in_quotes(plan.date), kDateForm);
}

std::string plans_to_text(const PlanHeader& header, const Plans& plans) {
  json entries = json::object();
  for (const auto& [key, plan] : plans) {
    entries[key] = {{"kernel", plan.kernel},
                    {"us", plan.us},
                    {"under_load", plan.under_load},
                    {"runner_up", plan.runner_up},
                    {"runner_up_us", plan.runner_up.empty() ? 0 : plan.runner_up_us},
                    {"reference_us", json(plan.reference_us)},
                    {"date", plan.date}};
  }
  const json file = {{"header",
                      {{"schema", kSchema},
                       {"device", header.device},
                       {"multiprocessors", header.multiprocessors},
                       {"driver", header.driver},
                       {"toolkit", header.toolkit},
                       {"library", header.library}}},
                     {"plans", std::move(entries)}};
  return file.dump(1) + "\n";
}

PlansFromText plans_from_text(std::string_view text, const std::string& what,
                              const PlanHeader& expected) {
  const json file = parse_json(text, what);
  check(file.is_object() && file.contains("header"),
        "{}: is {} without a header, expected a plan file", what, describe(file));
  PlansFromText result;
  result.difference = header_difference(file["header"], what, expected);
  if (!result.difference.empty()) return result;

  const Members members(file, what, {"header", "plans"});
  const json& plans = members["plans"];
  check(plans.is_object() && plans.size() <= kMaxPlans,
        "{}: \"plans\" is {}, expected an object of at most {} members", what, describe(plans),
        kMaxPlans);
  for (const auto& [key, value] : plans.items()) {
    const std::string where = fmt::format("{}: plan {}", what, in_quotes(key));
    check(is_name(key), "{}: expected a short printable problem", where);
    result.plans.emplace(key, plan_from(value, where));
  }
  return result;
}

}  // namespace octet::tune
