/* What can be set, where, and how: one table of all settings, and the struct that holds their
 * values. */
#ifndef RLOCK_CLI_SETTINGS_H
#define RLOCK_CLI_SETTINGS_H

#include "base/arena.h"
#include "cli/args.h"
#include "cli/say.h"
#include "run/exit_status.h"
#include "run/supervisor.h"

/* Settings are options under the same number; only some have a variable or may stand in a file. */
enum setting {
    SETTING_URL = 1,
    SETTING_PREFIX,
    SETTING_PASSWORD, /* no option: it would show in ps */
    SETTING_PASSWORD_FILE,
    SETTING_CONNECT_TIMEOUT,
    SETTING_SERVER_WAIT,
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
    SETTING_NOTIFY,
    SETTING_NOTIFY_AFTER,
    SETTING_PRIORITY_BOUND, /* no option: it is for all alike */
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
     .help = "the lock store: redis://[USER[:PASS]@]HOST[:PORT][/DB], rediss://... (TLS), "        \
             "unix:///PATH[?db=N], sentinel://HOST,.../MASTER, cluster://HOST,..., "               \
             "zookeeper://HOST,..., postgresql://USER@HOST/DB or mysql://USER@HOST/DB; given "     \
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
        {.id = SETTING_SERVER_WAIT,                                                                \
         .name = "server-wait",                                                                    \
         .argument = "DUR",                                                                        \
         .help = "try a store that is away at the start again for DUR, 0: once "                   \
                 "(RLOCK_SERVER_WAIT; default: the connect timeout)"},                             \
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
    /* To end with where the store refuses its address: that of the URL, or what TLS makes of it. */
    int address_status;
    enum color_when color;
    int64_t lease, kill_after, at_least, at_most; /* ns */
    int64_t wait;                                 /* ns, or WAIT_FOREVER */
    int64_t priority_bound;                       /* ns */
    int conflict_status;
    bool conflict_expected; /* -n or -E: not to get the lock is no error */
    enum on_lost on_lost;
    int lost_signal;
    const char *notify;   /* NULL: nobody */
    int64_t notify_after; /* ns */
    const char *label;    /* NULL: nothing was said */
    bool no_identity;

    /* what the strings above live in */
    struct url *urls;
    struct arena arena;
};

/* Of settings that were read, or zeroed. */
void settings_free(struct settings *settings);

enum rule_value {
    RULE_PLAIN,
    RULE_SECRET, /* not to be shown */
    RULE_PATH,   /* in a configuration file it may be relative to that */
};

struct rule {
    const char *name;     /* in files, and as an option */
    const char *variable; /* of the environment; NULL: none */
    const char *initial;  /* the value where nothing is said; NULL: leave it zero */
    enum rule_value value;
    /* Takes a value: NULL, or what is wrong with it, as "is not …". "message" has RULES_FAULT_SIZE
     * bytes for a message that is no constant. */
    const char *(*take)(struct settings *settings, const char *value, char *message);
};

#define RULES_FAULT_SIZE 200

extern const struct rule rules[SETTING_COUNT];

/* The setting of that name, or 0. */
enum setting rules_find(const char *name);

#endif
