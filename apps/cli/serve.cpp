// octet serve
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "config.h"
#include "demo/demo.h"
#include "octet/caption.h"
#include "octet/error.h"
#include "octet/local_models.h"
#include "octet/picture_files.h"
#include "output.h"
#include "picture_flags.h"
#include "stop_signal.h"
#ifdef OCTET_HAS_SERVER
#include "server/server.h"
#endif

namespace octet::cli {

#ifndef OCTET_HAS_SERVER

void add_serve(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_command(program, flags, "serve", "Make pictures for other programs and for a browser");
  command.allow_extras();
  command.callback([] {
    throw Error(
        "serve: this build has no server, since libmicrohttpd was not found; install it "
        "(libmicrohttpd-dev) and build again");
  });
}

#else

namespace {

constexpr const char* kServerOptions = "Server";
constexpr const char* kLimitOptions = "Limits";

struct ServeArguments {
  ServeArguments() {
    serve.port = 8642;
    serve.service.name = "octet";
  }

  server::ServeOptions serve;
  std::vector<std::string> devices, loras;
  std::string state = "default";
  double keep_s = 3600;
  std::string log_format = "text";
  bool no_warm_up = false;
  bool no_state = false;
  std::string largest_size = "2048x2048";
};

bool is_loopback(const std::string& address) {
  return address == "127.0.0.1" || address == "::1" || address == "localhost" ||
         address.starts_with("127.");
}

// XDG's place for what a program remembers; one folder for each port.
std::string state_folder(const ServeArguments& arguments) {
  if (arguments.no_state) return "";
  if (arguments.state != "default") return arguments.state;
  const auto text_of = [](const char* value) { return std::string(value != nullptr ? value : ""); };
  std::string root = text_of(std::getenv("XDG_STATE_HOME"));
  const std::string home = text_of(std::getenv("HOME"));
  if (root.empty() && !home.empty()) root = home + "/.local/state";
  if (root.empty() || arguments.serve.port == 0) return "";
  return fmt::format("{}/octet/serve-{}", root, arguments.serve.port);
}

// "style=/loras/style.safetensors"
void add_lora(const std::string& text, std::map<std::string, std::string>& loras) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool is_name =
      equals != std::string::npos && !name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
          name.npos;
  if (!is_name) {
    throw CLI::ValidationError(fmt::format(
        "--lora is '{}', expected NAME=FILE with a name of letters, digits, -, _ and .", text));
  }
  std::error_code ignored;
  const std::string file = text.substr(equals + 1);
  if (!std::filesystem::is_regular_file(file, ignored)) {
    throw Error(fmt::format("--lora {}: {} is no file", name, file));
  }
  loras[name] = file;
}

server::ReadPrompt read_for_demo(const std::string& text) {
  DemoPrompt prompt = demo_prompt(text);
  server::ReadPrompt read{.caption = std::move(prompt.caption), .warnings = prompt.warnings};
  for (const std::string& each : prompt.left_out) {
    read.warnings.push_back("not in the picture: " + each);
  }
  return read;
}

server::ReadPrompt read_by_wrapping(const std::string& text) {
  return {.caption = wrap_plain_text(text),
          .warnings = {"the model was trained on JSON captions, and paints plain text worse; it "
                       "may even paint a refusal"}};
}

void use_model(const CommonFlags& flags, ServeArguments& arguments) {
  server::ServiceOptions& service = arguments.serve.service;
  const bool has_none = service.model.model.empty() && !read_config().model;
  if (has_none) {
    service.model.model = demo_request().model.model;
    service.model_id = "demo";
    service.read_prompt = read_for_demo;
    arguments.serve.prompt_is_wrapped = false;
    return;
  }
  use_configured_model(flags, service.model);
  service.model_id = std::filesystem::path(service.model.model).lexically_normal().stem().string();
  service.read_prompt = read_by_wrapping;
}

void check_arguments(const ServeArguments& arguments) {
  const server::ServeOptions& serve = arguments.serve;
  if (!is_loopback(serve.address) && serve.keys.empty() && !serve.insecure) {
    throw CLI::ValidationError(fmt::format(
        "--host {}: other machines could use this server; --keys FILE names who may, --insecure "
        "lets everybody",
        serve.address));
  }
  const std::string& url = serve.public_url;
  if (!url.empty() &&
      (!(url.starts_with("http://") || url.starts_with("https://")) || url.ends_with('/'))) {
    throw CLI::ValidationError(fmt::format(
        "--public-url is '{}', expected something like https://pictures.example.org", url));
  }
  if (serve.certificate.empty() != serve.private_key.empty()) {
    throw CLI::ValidationError("--tls-cert and --tls-key need each other");
  }
}

void run_server(const CommonFlags& flags, ServeArguments& arguments) {
  check_arguments(arguments);
  server::ServeOptions& serve = arguments.serve;
  server::ServiceOptions& service = serve.service;
  use_model(flags, arguments);
  service.devices = arguments.devices.empty() ? std::vector{flags.device} : arguments.devices;
  service.model.threads = flags.threads;
  for (const std::string& text : arguments.loras) add_lora(text, service.loras);
  service.warm_up = !arguments.no_warm_up;
  service.state_folder = state_folder(arguments);
  const PictureSize largest = parse_size(arguments.largest_size);
  service.limits.pixels = int64_t{largest.width} * largest.height;
  const StopSignal stop;
  const auto print = [](const std::string& line) {
    std::fputs((line + "\n").c_str(), stderr);
    std::fflush(stderr);
  };
  const std::string devices = fmt::format("{}", fmt::join(service.devices, " and "));
  server::serve(serve, {.listening =
                            [&](const std::string& url) {
                              print(fmt::format("octet: {} (model {}, {}); Ctrl-C ends it", url,
                                                service.model_id, devices));
                              if (service.state_folder.empty() && !arguments.no_state) {
                                print(
                                    "octet: no job is remembered after a restart: with --port 0 "
                                    "or without HOME, only --state FOLDER keeps them");
                              }
                            },
                        .log_line =
                            [&](const std::string& line) {
                              if (!flags.quiet) print(line);
                            },
                        .stop = [&] { return stop.was_sent(); },
                        .json_log = arguments.log_format == "json",
                        .lowest = flags.verbose ? log::Level::debug : log::Level::info});
}

void add_server_flags(CLI::App& command, ServeArguments& arguments) {
  server::ServeOptions& serve = arguments.serve;
  add_value(command, "--host", "ADDRESS", serve.address,
            "Address to listen at; others than this machine's own need --keys or --insecure")
      ->capture_default_str();
  add_whole_number(command, "--port", serve.port, 0, 65535, "Port; 0: any that is free");
  add_value(command, "--name", "NAME", serve.service.name,
            "Name of this server, with which the ids of its jobs begin")
      ->capture_default_str()
      ->check([](const std::string& name) {
        const bool is_good =
            name.size() <= 40 &&
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == name.npos;
        return is_good
                   ? std::string()
                   : fmt::format("--name is '{}', expected lower-case letters and digits", name);
      });
  add_value(command, "--keys", "FILE", serve.keys,
            "Who may use it: a line 'NAME KEY' for each, read again when it changes");
  command.add_flag("--insecure", serve.insecure, "Let everybody who can reach it use it");
  add_value(command, "--tls-cert", "FILE", serve.certificate, "Certificate for HTTPS, PEM");
  add_value(command, "--tls-key", "FILE", serve.private_key, "Its private key, PEM");
  add_value(command, "--public-url", "URL", serve.public_url,
            "How clients call it, where something stands before it: https://pictures.example.org");
  add_value(command, "--allow-origin", "ORIGIN", serve.allowed_origins,
            "Web page of another server that may use it, such as https://example.org")
      ->allow_extra_args(false);
  add_value(command, "--state", "FOLDER", arguments.state,
            "Where it notes its jobs, so that they are not forgotten after a restart (default: "
            "octet/serve-PORT in XDG_STATE_HOME)");
  command.add_flag("--no-state", arguments.no_state, "Note nothing on disk");
  add_seconds(command, "--keep-for", arguments.keep_s, 1e7,
              "Seconds for which results can be fetched");
  add_seconds(command, "--grace", serve.grace_s, 86400,
              "Seconds that jobs may still take when the server is asked to end");
  add_seconds(command, "--linger", serve.linger_s, 3600,
              "Seconds after the last of these jobs, for their clients to fetch the results");
  add_choice(command, "--log-format", arguments.log_format, {"text", "json"},
             "Form of the log lines");
  command.add_flag("--no-warm-up", arguments.no_warm_up,
                   "Answer as soon as the model is loaded; the first picture waits longer");
  set_group(command, kServerOptions,
            {"--host", "--port", "--name", "--keys", "--insecure", "--tls-cert", "--tls-key",
             "--public-url", "--allow-origin", "--state", "--no-state", "--keep-for", "--grace",
             "--linger", "--log-format", "--no-warm-up"});
}

void add_limit_flags(CLI::App& command, ServeArguments& arguments) {
  server::ServiceOptions& service = arguments.serve.service;
  server::RequestLimits& request = service.limits;
  server::http::Limits& limits = arguments.serve.limits;
  constexpr int64_t kMost = 1'000'000'000;
  add_whole_number(command, "--queue", service.queue, 1, 4096, "Jobs of one key that may wait");
  add_value(command, "--max-size", "SIZE", arguments.largest_size, "Pixels of a picture")
      ->capture_default_str();
  add_whole_number(command, "--max-steps", request.steps, 1, 1000, "Steps of a picture");
  add_whole_number(command, "--max-images", request.images, 1, 1000, "Pictures of a job");
  add_whole_number(command, "--max-caption", request.caption_bytes, 1, kMost, "Bytes of a caption");
  add_whole_number(command, "--max-loras", request.loras, 0, 100, "LoRAs of a job");
  add_seconds(command, "--max-seconds", request.seconds, 86400, "Seconds of rendering a job");
  add_whole_number(command, "--max-body", limits.body_bytes, 1024, kMost, "Bytes of a request");
  add_whole_number(command, "--max-streams", limits.streams, 1, 100000, "Open event streams");
  add_whole_number(command, "--max-connections", limits.connections, 1, 100000, "Open connections");
  add_whole_number(command, "--max-connections-per-address", limits.connections_per_address, 0,
                   100000, "Open connections of one address; 0: any number");
  add_whole_number(command, "--keep-bytes", service.keep_bytes, 0, int64_t{1} << 40,
                   "Bytes of results that are kept");
  set_group(command, kLimitOptions,
            {"--queue", "--max-size", "--max-steps", "--max-images", "--max-caption", "--max-loras",
             "--max-seconds", "--max-body", "--max-streams", "--max-connections",
             "--max-connections-per-address", "--keep-bytes"});
}

}  // namespace

void add_serve(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(program, flags, "serve",
                                            "Make pictures for other programs and for a browser");
  const auto arguments = std::make_shared<ServeArguments>();
  ModelOptions& model = arguments->serve.service.model;
  add_value(command, "--model", "MODEL", model.model,
            "The model, as for octet generate (default: that of octet config, else the small one "
            "that ships with Octet)");
  add_part_flags(command, model);
  command.remove_option(command.get_option("--device"));
  command.remove_option(command.get_option("--json"));  // there is no result
  add_value(command, "--device", "DEVICE", arguments->devices,
            "Device to run on, as for octet generate; a worker for each that is named")
      ->allow_extra_args(false)
      ->check([](const std::string& name) {
        return is_device(name) ? std::string() : fmt::format("'{}' is not a device", name);
      });
  add_value(command, "--lora", "NAME=FILE", arguments->loras,
            "A LoRA that requests may ask for by this name")
      ->allow_extra_args(false);
  command.add_flag("--cache-weights", model.cache_weights,
                   "Cache the INT8 weights of a model stored in another format, for later runs");
  add_require_int8(command, model.require_int8);
  add_choice(command, "--attention", model.attention,
             "Precision of the networks' attention: int8 for its scores, int8-full for all of it");
  add_choice(command, "--text-encoder-linears", model.text_encoder_linears,
             "Precision of the text encoder's linears",
             {Linears::int8, Linears::floating, Linears::fake});
  add_choice(command, "--tune", model.tuning, "Which kernels are chosen by measurement");
  set_group(command, kModelOptions,
            {"--model", "--lora", "--cache-weights", "--require-int8", "--attention",
             "--text-encoder-linears", "--tune"});
  add_memory_flags(command, model);
  set_group(command, kCommonOptions, {"--device"});
  add_server_flags(command, *arguments);
  add_limit_flags(command, *arguments);
  set_examples(command, {"octet serve",
                         "octet serve --model ideogram-4-int8 --base ideogram-ai/ideogram-4-fp8",
                         "octet serve --host 0.0.0.0 --keys keys.txt --device cuda:0 --device "
                         "cuda:1"});
  command.callback([&flags, arguments] {
    arguments->serve.service.keep_s = arguments->keep_s;
    run_server(flags, *arguments);
  });
}

#endif

}  // namespace octet::cli
