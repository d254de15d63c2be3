/* rlock serve: locks over HTTP. The server is another program, rlock-serve (src/serve). */
#include "cmd/commands.h"

#include "cli/companion.h"

static const struct option_spec options[] = {
    {.id = OPTION_LISTEN,
     .name = "listen",
     .argument = "WHERE",
     .help = "ADDR:PORT, [ADDR]:PORT or unix:PATH; has to be given"},
    {.id = OPTION_ALLOW_HOST,
     .name = "allow-host",
     .argument = "NAME",
     .help = "browsers may ask by this name, too; may be given again"},
    {.id = OPTION_AUTH_FILE,
     .name = "auth-file",
     .argument = "FILE",
     .help = "ask for a user and a password of FILE, as htpasswd -B makes it"},
    SETTINGS_OPTIONS,
    {0}};

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int status;

    if (command_parse(command, argc, argv, &arguments, &status) &&
        command_takes_patterns(command, &arguments, &status)) {
        if (command_option(&arguments, OPTION_LISTEN))
            status = companion_execute(command, argv);
        else
            status = command_misused(command, "no --listen");
    }
    args_free(&arguments);
    return status;
}

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
    .options = options,
    .run = run,
};
