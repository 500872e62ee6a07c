// octet devices

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {

void add_devices(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("devices", "List the devices of this machine");
  add_output_flags(*command, flags);
  set_examples(*command, {"octet devices"});
  command->callback([&flags] {
    check_outputs(flags);
    const auto devices = list_devices();
    show(flags, to_text(devices), to_json(devices));
  });
}

}  // namespace octet::cli
