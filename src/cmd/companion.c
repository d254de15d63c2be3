/* rlock top and rlock serve. They are programs of their own, so that rlock is linked with none of
 * their libraries: rlock parses their command line, as for any other subcommand, and executes the
 * program, which parses it once more (src/top, src/serve). */
#include "cmd/commands.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/screen.h"
#include "os/program.h"

/* Executes rlock-NAME in place of this process. Returns the exit status if it cannot. */
static int execute_companion(struct call *call)
{
    char name[64], path[PATH_MAX];

    snprintf(name, sizeof name, "rlock-%s", call->command->name);
    if (program_find(name, path, sizeof path))
        execv(path, call->argv);
    if (errno == ENOENT) { /* of either call */
        command_error(call, "the program %s is not installed", name);
        say_hint("install the package %s, or build rlock where its library is; see docs/install.md",
                 name);
    } else {
        command_error(call, "cannot execute %s: %s", path, strerror(errno));
    }
    return STATUS_SYSTEM;
}

static int check_terminal(struct call *call)
{
    if (isatty(STDIN_FILENO) && screen_is_there())
        return STATUS_OK;
    return command_misused(call, "needs a terminal; rlock status does not");
}

static int check_listen(struct call *call)
{
    return command_has(call, OPTION_LISTEN) ? STATUS_OK : command_misused(call, "no --listen");
}

const struct command command_top = {
    .name = "top",
    .summary = "show locks on a full screen, live",
    .usage = {"top [OPTIONS] [KEY|GLOB...]"},
    .example = "Keys: Enter holders and queue, / filter, p pause, x take away (both ask),\n"
               "? all keys, q quit.\n"
               "\n"
               "Example, the locks of all deployments:\n"
               "  rlock top 'deploy-*'\n",
    .options = common_options,
    .words = WORDS_PATTERNS,
    .storeless = true,
    .check = check_terminal,
    .act = execute_companion,
};

static const struct option_spec serve_options[] = {
    OPTION(OPTION_LISTEN, "listen", "WHERE", "ADDR:PORT, [ADDR]:PORT or unix:PATH; required"),
    OPTION(OPTION_ALLOW_HOST, "allow-host", "NAME",
           "browsers may ask by this name, too; may be given again"),
    OPTION(OPTION_AUTH_FILE, "auth-file", "FILE",
           "ask for a user and a password of FILE, as htpasswd -B makes it"),
    SETTINGS_OPTIONS,
    {0}};

const struct command command_serve = {
    .name = "serve",
    .summary = "serve metrics, JSON and a page with all locks over HTTP",
    .usage = {"serve --listen ADDR:PORT|unix:PATH [OPTIONS] [KEY|GLOB...]"},
    .example = "It answers at /, /metrics, /locks.json, /history.json and /healthz, and\n"
               "changes nothing.\n"
               "\n"
               "Example, for a browser and Prometheus on this host:\n"
               "  rlock serve --listen 127.0.0.1:9750\n"
               "\n"
               "Example, for browsers elsewhere, which know this host as locks.example.com:\n"
               "  rlock serve --listen 0.0.0.0:9750 --allow-host locks.example.com \\\n"
               "      --auth-file /etc/rlock.htpasswd\n",
    .options = serve_options,
    .words = WORDS_PATTERNS,
    .storeless = true,
    .check = check_listen,
    .act = execute_companion,
};
