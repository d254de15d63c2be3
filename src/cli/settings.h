/* All settings: one table of what can be set by option, variable and file, and the struct that
 * holds the values. */
#pragma once

#include "base/arena.h"
#include "cli/args.h"
#include "cli/say.h"
#include "run/exit_status.h"
#include "run/plan.h"

/* The numbers of settings, which are those of their options, too. */
enum setting {
    SETTING_URL = 1,
    SETTING_PREFIX,
    SETTING_PASSWORD, /* no option: it would show in ps */
    SETTING_PASSWORD_FILE,
    SETTING_SENTINEL_USER,
    SETTING_SENTINEL_PASSWORD, /* no option either */
    SETTING_SENTINEL_PASSWORD_FILE,
    SETTING_CONNECT_TIMEOUT,
    SETTING_SERVER_WAIT,
    SETTING_TLS_CA,
    SETTING_TLS_CERT,
    SETTING_TLS_KEY,
    SETTING_TLS_SERVER_NAME,
    SETTING_COLOR,
    SETTING_WAIT,
    SETTING_CONFLICT_EXIT_CODE,
    SETTING_UNLESS_DONE,
    SETTING_PRIORITY,
    SETTING_PRIORITY_BOUND, /* no option: it must be the same for all waiters */
    SETTING_LEASE,
    SETTING_NO_RENEW,
    SETTING_AT_LEAST,
    SETTING_AT_MOST,
    SETTING_KILL_AFTER,
    SETTING_ON_LOST,
    SETTING_STOP,
    SETTING_WAIT_DESCENDANTS,
    SETTING_CGROUP,
    SETTING_NOTIFY,
    SETTING_NOTIFY_AFTER,
    SETTING_NO_REENTRANT,
    SETTING_LABEL,
    SETTING_NO_IDENTITY,
    SETTING_KEEP_CREDENTIALS,
    SETTING_REPLICAS,
    SETTING_GRACE,
    SETTING_COUNT,

    OPTION_CONFIG = SETTING_COUNT,
    OPTION_LOCAL,   /* SETTING_URL is local: */
    OPTION_NO_WAIT, /* SETTING_WAIT is 0 */
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_HELP,
    OPTION_OTHER /* a command's own options count from here */
};

/* In rising order: a later one overrides those before it. */
enum origin { ORIGIN_DEFAULT, ORIGIN_SYSTEM, ORIGIN_USER, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

/* The text that was given for one setting, and where. */
struct given {
    const char *value; /* NULL: none */
    enum origin origin;
    const char *source; /* the file, the variable, or the options where one is --local; or NULL */
    int line;           /* in that file, from 1 */
};

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

#define WAIT_FOREVER (-1)

struct settings {
    struct store_address address;
    int address_status; /* the exit status where the store refuses its address */
    enum color_when color;
    int64_t wait; /* ns, or WAIT_FOREVER */
    int conflict_status;
    bool conflict_expected; /* by -n or -E: no error if the lock is not acquired */
    int64_t unless_done;    /* ns; 0: run in any case */
    int priority;
    int64_t priority_bound;  /* ns */
    int64_t lease, at_least; /* ns */
    bool no_renew;
    struct job_plan job; /* its options */
    bool no_reentrant;
    const char *label; /* NULL: none was given */
    bool no_identity;
    bool keep_credentials;

    struct given given[SETTING_COUNT];
    /* The memory of the strings above. */
    struct url *urls;
    struct arena arena;
};

/* Releases settings that were read, or zeroed. */
void settings_free(struct settings *settings);

enum setting_kind {
    KIND_DURATION, /* int64_t, in ns */
    KIND_NUMBER,   /* int */
    KIND_TEXT,     /* const char * */
    KIND_FLAG,     /* bool; as an option it has no argument, elsewhere it is yes or no */
    KIND_OWN,      /* by "take" */
};

enum setting_use {
    SETTING_PLAIN,
    SETTING_SECRET, /* must not be shown */
    SETTING_PATH,   /* may be relative to the configuration file in which it stands */
};

/* All that there is to know about a setting. */
struct setting_row {
    struct option_spec option; /* its name is that in files, too */
    enum setting_kind kind;
    enum setting_use use;
    size_t offset;       /* of its member in struct settings */
    int64_t least, most; /* of a duration or a number */
    const char *wrong;   /* the fault of one outside of these; NULL: there is none */
    /* Returns the fault of a text, or NULL. */
    const char *(*check)(const char *value);
    /* KIND_OWN: as setting_take(). */
    const char *(*take)(struct settings *settings, const char *value, char *message);
};

extern const struct setting_row setting_rows[SETTING_COUNT];

/* The options that every command takes; -n, which stands beside SETTING_WAIT. */
extern const struct option_spec common_options[], option_no_wait;

/* Rows for a command's table; ..._AS has another help. */
/* clang-format off */
#define SETTING(NAME)          {.same = &setting_rows[SETTING_##NAME].option}
#define SETTING_AS(NAME, HELP) {.same = &setting_rows[SETTING_##NAME].option, .help = (HELP)}
#define NO_WAIT                {.same = &option_no_wait}
#define NO_WAIT_AS(HELP)       {.same = &option_no_wait, .help = (HELP)}
#define SETTINGS_OPTIONS       {.table = common_options}
/* clang-format on */

#define SETTING_FAULT_SIZE 320

/* Returns the setting of that name, or 0. */
enum setting setting_find(const char *name);
/* The name of a setting that is similar to that one; NULL: none is. */
const char *setting_find_similar(const char *name);

/* Sets one setting. Returns NULL, or what is wrong with the value, as "is not …". "message" has
 * SETTING_FAULT_SIZE bytes for a fault that is not a constant. */
const char *setting_take(enum setting id, struct settings *settings, const char *value,
                         char *message);

/* -- settings_read.c: from options, environment, user's file, system's files and defaults, of which
 * the first that says something counts; a wrong value is reported with its place -- */

/* Collects everything, sets the verbosity, and overwrites passwords among the arguments and in the
 * environment, which ps and /proc would show; getenv() and "environ" still have the latter. Returns
 * STATUS_OK; or STATUS_USAGE or STATUS_CONFIG, by where the wrong value came from, with a message
 * without passwords in "fault". Settings borrow from arguments and environment. Release them with
 * settings_free() in either case; they must not be moved. */
int settings_read(struct settings *settings, const struct arguments *arguments, char *fault,
                  size_t size);
/* Sets only the verbosity, for a command that needs no store. */
void settings_set_verbosity(const struct arguments *arguments);

/* Returns the status for a wrong value of a setting that was read: STATUS_USAGE for an option, else
 * STATUS_CONFIG. */
int settings_status(const struct settings *settings, enum setting id);
/* Prints where a setting comes from: "--wait", "RLOCK_URL", "/etc/rlock.conf:3" or "default".
 * Returns out. */
char *settings_print_origin(const struct settings *settings, enum setting id, char *out,
                            size_t size);
/* Prints what is wrong with a setting: "PLACE 'VALUE' WHY", or "PLACE WHY" for a secret. Returns
 * settings_status(). */
int settings_refuse(const struct settings *settings, enum setting id, const char *why, char *fault,
                    size_t size);
