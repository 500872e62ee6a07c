// octet devices

#include "commands.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {

void add_devices(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_command(program, flags, "devices", "List the devices of this machine");
  set_examples(command, {"octet devices"});
  command.callback([&flags] {
    check_outputs(flags);
    const auto devices = list_devices();
    show(flags, to_text(devices), json_of(flags, devices));
  });
}

}  // namespace octet::cli
