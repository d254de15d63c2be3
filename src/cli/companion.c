/* Subcommands that are programs of their own. */
#include "cli/companion.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/program.h"

int companion_execute(const struct command *command, char **argv)
{
    char name[64], path[PATH_MAX];

    snprintf(name, sizeof name, "rlock-%s", command->name);
    if (program_find(name, path, sizeof path))
        execv(path, argv);
    if (errno == ENOENT) {
        command_error(command, "the program %s is not installed", name);
        say_hint("install the package %s, or build rlock where its library is; see README.md",
                 name);
    } else {
        command_error(command, "cannot execute %s: %s", path, strerror(errno));
    }
    return STATUS_SYSTEM;
}
