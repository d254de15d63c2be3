/* rlock top: locks on a full screen. The screen is another program's, rlock-top (src/top). */
#include "cmd/commands.h"

#include <unistd.h>

#include "cli/companion.h"
#include "cli/screen.h"

static const struct option_spec options[] = {SETTINGS_OPTIONS, {0}};

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int status;

    if (command_parse(command, argc, argv, &arguments, &status) &&
        command_takes_patterns(command, &arguments, &status)) {
        if (isatty(STDIN_FILENO) && screen_is_there())
            status = companion_execute(command, argv);
        else
            status = command_misused(command, "needs a terminal; rlock status does not");
    }
    args_free(&arguments);
    return status;
}

const struct command command_top = {
    .name = "top",
    .summary = "show locks on a full screen, live",
    .usage = {"top [OPTIONS] [KEY|GLOB...]"},
    .example = "Keys: Enter holders and queue, / filter, k take the lock away (asks), q quit.\n"
               "\n"
               "Example, the locks of all deployments:\n"
               "  rlock top 'deploy-*'\n",
    .options = options,
    .run = run,
};
