/* What the user set, from everywhere: option, environment, user's file, system's file, default, the
 * first of them that says something. Wrong values are told with the place that they came from. */
#ifndef RLOCK_SETTINGS_H
#define RLOCK_SETTINGS_H

#include "args.h"
#include "say.h"
#include "status.h"
#include "supervisor.h"

/* Settings are options under the same number; only some have a variable or may stand in a file. */
enum setting {
    SETTING_URL = 1,
    SETTING_PREFIX,
    SETTING_PASSWORD, /* no option: it would show in ps */
    SETTING_PASSWORD_FILE,
    SETTING_CONNECT_TIMEOUT,
    SETTING_TLS_CA,
    SETTING_TLS_CERT,
    SETTING_TLS_KEY,
    SETTING_TLS_SERVER_NAME,
    SETTING_COLOR,
    SETTING_LEASE,
    SETTING_WAIT,
    SETTING_CONFLICT_EXIT_CODE,
    SETTING_REPLICAS,
    SETTING_GRACE,
    SETTING_AT_LEAST,
    SETTING_AT_MOST,
    SETTING_KILL_AFTER,
    SETTING_ON_LOST,
    SETTING_LABEL,
    SETTING_NO_IDENTITY,
    SETTING_COUNT,

    OPTION_CONFIG = SETTING_COUNT,
    OPTION_LOCAL,   /* SETTING_URL is local: */
    OPTION_NO_WAIT, /* SETTING_WAIT is 0 */
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_HELP,
    OPTION_OTHER /* a command's own options count from here */
};

/* Rows for a command's table: options that all commands take. */
#define SETTINGS_OPTIONS                                                                           \
    {.id = SETTING_URL,                                                                            \
     .name = "url",                                                                                \
     .letter = 'u',                                                                                \
     .argument = "URL",                                                                            \
     .help = "the lock store: redis://[[USER]:PASS@]HOST[:PORT][/DB], rediss://... (TLS), "        \
             "unix:///PATH[?db=N], sentinel://HOST,.../MASTER or cluster://HOST,...; given "       \
             "several times, a quorum of them (RLOCK_URL; default redis://127.0.0.1:6379/0)"},     \
        {.id = OPTION_LOCAL,                                                                       \
         .name = "local",                                                                          \
         .help = "this host only, no server to set up (--url local:)"},                            \
        {.id = SETTING_PREFIX,                                                                     \
         .name = "prefix",                                                                         \
         .argument = "P",                                                                          \
         .help = "name space of the keys (RLOCK_PREFIX; default rlock)"},                          \
        {.id = SETTING_PASSWORD_FILE,                                                              \
         .name = "password-file",                                                                  \
         .argument = "FILE",                                                                       \
         .help = "the store's password is the first line of FILE (or RLOCK_PASSWORD)"},            \
        {.id = OPTION_CONFIG,                                                                      \
         .name = "config",                                                                         \
         .argument = "FILE",                                                                       \
         .help = "read FILE instead of /etc/rlock.conf and ~/.config/rlock/config "                \
                 "(RLOCK_CONFIG)"},                                                                \
        {.id = SETTING_CONNECT_TIMEOUT,                                                            \
         .name = "connect-timeout",                                                                \
         .argument = "DUR",                                                                        \
         .help = "for name look-up, connection and greeting together (default 5s)"},               \
        {.id = SETTING_TLS_CA,                                                                     \
         .name = "tls-ca",                                                                         \
         .argument = "FILE",                                                                       \
         .help = "trust the certificates in FILE, or in a directory, not the system's"},           \
        {.id = SETTING_TLS_CERT,                                                                   \
         .name = "tls-cert",                                                                       \
         .argument = "FILE",                                                                       \
         .help = "show the server the certificate in FILE"},                                       \
        {.id = SETTING_TLS_KEY,                                                                    \
         .name = "tls-key",                                                                        \
         .argument = "FILE",                                                                       \
         .help = "its private key (default: in the certificate's file)"},                          \
        {.id = SETTING_TLS_SERVER_NAME,                                                            \
         .name = "tls-server-name",                                                                \
         .argument = "NAME",                                                                       \
         .help = "the server's certificate is for NAME (default: the host in the URL)"},           \
        {.id = SETTING_COLOR,                                                                      \
         .name = "color",                                                                          \
         .argument = "WHEN",                                                                       \
         .help = "auto, always or never (NO_COLOR; default auto)"},                                \
        {.id = OPTION_QUIET, .name = "quiet", .letter = 'q', .help = "errors only"},               \
        {.id = OPTION_VERBOSE,                                                                     \
         .name = "verbose",                                                                        \
         .letter = 'v',                                                                            \
         .help = "say what happens, with times"},                                                  \
    {                                                                                              \
        .id = OPTION_HELP, .name = "help", .letter = 'h', .help = "this help"                      \
    }

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

#define WAIT_FOREVER (-1)

struct settings {
    struct store_address address;
    int address_status; /* to end with where the store refuses its address */
    enum color_when color;
    int64_t lease, kill_after, at_least, at_most; /* ns */
    int64_t wait;                                 /* ns, or WAIT_FOREVER */
    int conflict_status;
    enum on_lost on_lost;
    int lost_signal;
    const char *label; /* NULL: nothing was said */
    bool no_identity;

    /* what the texts above live in */
    struct url *urls;
    char *files[2], *secret;
};

/* Collects everything, sets the verbosity, and blots the passwords out of URLs among the arguments, which
 * ps would show. Returns STATUS_OK; or STATUS_USAGE or STATUS_CONFIG, by where it came from,
 * with a message in "fault". Settings borrow from arguments and environment. settings_free() in
 * either case. */
int settings_read(struct settings *settings, const struct arguments *arguments, char *fault,
                  size_t size);
void settings_free(struct settings *settings);

/* Overwrites the passwords of what looks like URLs in "text" with asterisks. */
void settings_blot(char *text);

#endif
