/* The table of settings, and how the value of each is taken. Functions that take or check a value
 * return NULL, or what is wrong with it, as "is not …" (setting_take()). */
#include "cli/settings.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/similar.h"
#include "base/text.h"
#include "lock/key.h"
#include "lock/lease.h"
#include "net/resolve.h"
#include "store/store_kind.h"
#include "store/url.h"

#define REPLICAS_MAX 100
#define DAY_NS       (24 * 3600 * NS_PER_SEC)

/* Adds one URL of "length" bytes. False with what is wrong in "message". The copy that was parsed
 * in place is wiped: it may hold a password. */
static bool add_url(struct settings *settings, const char *text, size_t length, char *message)
{
    size_t count = settings->address.url_count;

    settings->urls = mem_checked(realloc(settings->urls, (count + 1) * sizeof *settings->urls));
    settings->address.urls = settings->urls;
    char *word FREED = mem_checked(strndup(text, length));
    bool fine = url_parse(word, &settings->urls[count], message, SETTING_FAULT_SIZE);
    explicit_bzero(word, length);
    settings->address.url_count += fine;
    return fine;
}

/* Takes one URL, or several; of these, the message says which one is wrong. */
static const char *take_urls(struct settings *settings, const char *value, char *message)
{
    size_t length, rest_length;
    const char *word = urls_word(value, &length), *rest;
    char why[SETTING_FAULT_SIZE];

    if (!word)
        word = value; /* empty, to be refused as such */
    rest = urls_word(word + length, &rest_length);
    if (!rest)
        return add_url(settings, word, length, message) ? NULL : message;
    for (; word; word = urls_word(word + length, &length)) {
        if (add_url(settings, word, length, why))
            continue;
        /* 60 bytes are room for what is before it, with a number of any length. */
        snprintf(message, SETTING_FAULT_SIZE, "(number %zu of several) %.*s",
                 settings->address.url_count + 1, SETTING_FAULT_SIZE - 60, why);
        return message;
    }
    return NULL;
}

/* Prints the schemes of the stores, for the help: "redis:// rediss:// …". Returns "out". */
static char *list_schemes(char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; stores[i]; i++) {
        const char *const schemes[] = {stores[i]->scheme, stores[i]->alias, stores[i]->secure,
                                       stores[i]->secure_alias};
        for (size_t j = 0; j < sizeof schemes / sizeof *schemes; j++)
            if (schemes[j])
                text_append(out, size, "%s%s:%s", *out ? " " : "", schemes[j],
                            stores[i]->parse && !stores[i]->is_bare ? "//" : "");
    }
    return out;
}

static const char *check_filled(const char *value)
{
    return *value ? NULL : "is empty";
}

/* Checks a name for TLS: that of a host, or its address. */
static const char *check_server_name(const char *value)
{
    return *value == '\0' ? "is empty"
           : host_is_name(value) || host_is_address(value)
               ? NULL
               : "is neither the name nor the address of a host";
}

/* Takes --color. */
static const char *take_color(struct settings *settings, const char *value, char *message)
{
    static const char *const names[] = {"auto", "always", "never"};

    (void)message; /* the faults are constants */
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            settings->color = (enum color_when)i;
            return NULL;
        }
    }
    return "is not auto, always or never";
}

/* Returns the number of TERM, SIGTERM or 15; 0 if there is no such signal. */
static int signal_number(const char *name)
{
    int64_t number;

    if (decimal_parse(name, 1, SIGRTMAX, &number))
        return (int)number;
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int signo = 1; signo < SIGRTMIN; signo++) {
        const char *known = sigabbrev_np(signo);
        if (known && strcmp(known, name) == 0)
            return signo;
    }
    return 0;
}

/* Takes --on-lost: what becomes of the command when the lock is lost. */
static const char *take_on_lost(struct settings *settings, const char *value, char *message)
{
    (void)message; /* the faults are constants */
    if (strcmp(value, "stop") == 0) {
        settings->job.on_lost = ON_LOST_STOP;
    } else if (strcmp(value, "continue") == 0) {
        settings->job.on_lost = ON_LOST_CONTINUE;
    } else if (strncmp(value, "signal:", 7) == 0) {
        settings->job.on_lost = ON_LOST_SIGNAL;
        settings->job.lost_signal = signal_number(value + 7);
        return settings->job.lost_signal
                   ? NULL
                   : "does not name a signal (write signal:USR1 or signal:10)";
    } else {
        return "is not stop, continue or signal:NAME";
    }
    return NULL;
}

/* Takes --replicas: a number of them, 0 for none, or which part of all. */
static const char *take_replicas(struct settings *settings, const char *value, char *message)
{
    struct store_address *address = &settings->address;
    int64_t number = 0;

    (void)message; /* the fault is a constant */
    address->replica_count = 0;
    if (strcmp(value, "majority") == 0) {
        address->replicas = REPLICAS_MAJORITY;
    } else if (strcmp(value, "all") == 0) {
        address->replicas = REPLICAS_ALL;
    } else if (decimal_parse(value, 0, REPLICAS_MAX, &number)) {
        address->replicas = number ? REPLICAS_COUNT : REPLICAS_NONE;
        address->replica_count = (unsigned)number;
    } else {
        return "is not a number from 0 to 100, majority or all";
    }
    return NULL;
}

/* A row: its name, its argument, its default, its help, and how it is read. */
#define ROW(ID, NAME, ARGUMENT, INITIAL, HELP, ...)                                                \
    [SETTING_##ID] = {.option.id = SETTING_##ID,                                                   \
                      .option.name = NAME,                                                         \
                      .option.argument = ARGUMENT,                                                 \
                      .option.initial = INITIAL,                                                   \
                      .option.help = HELP,                                                         \
                      __VA_ARGS__}

#define IN(KIND, MEMBER)     .kind = (KIND), .offset = offsetof(struct settings, MEMBER)
#define ANY_DURATION(MEMBER) IN(KIND_DURATION, MEMBER)
#define DURATION(MEMBER, LEAST, MOST, WRONG)                                                       \
    IN(KIND_DURATION, MEMBER), .least = (LEAST), .most = (MOST), .wrong = WRONG
#define NUMBER(MEMBER, LEAST, MOST, WRONG)                                                         \
    IN(KIND_NUMBER, MEMBER), .least = (LEAST), .most = (MOST), .wrong = WRONG
#define FLAG(MEMBER)        IN(KIND_FLAG, MEMBER)
#define ANY_TEXT(MEMBER)    IN(KIND_TEXT, MEMBER)
#define TEXT(MEMBER, CHECK) IN(KIND_TEXT, MEMBER), .check = CHECK
#define PATH(MEMBER)        TEXT(MEMBER, check_filled), .use = SETTING_PATH
#define OWN(TAKE)           .kind = KIND_OWN, .take = TAKE

const struct setting_row setting_rows[SETTING_COUNT] = {
    ROW(URL, "url", "URL", "redis://127.0.0.1:6379/0",
        "the lock store; several are a quorum. Schemes:", OWN(take_urls), .use = SETTING_SECRET,
        .option.letter = 'u', .option.variable = "RLOCK_URL", .option.list = list_schemes),
    ROW(PREFIX, "prefix", "P", "rlock", "name space of the keys", TEXT(address.prefix, key_fault),
        .option.variable = "RLOCK_PREFIX"),
    ROW(PASSWORD, "password", NULL, NULL, NULL, ANY_TEXT(address.password), .use = SETTING_SECRET,
        .option.variable = "RLOCK_PASSWORD"),
    ROW(PASSWORD_FILE, "password-file", "FILE", NULL,
        "the store's password is the first line of FILE (or RLOCK_PASSWORD)",
        PATH(address.password_file)),
    ROW(SENTINEL_USER, "sentinel-user", "NAME", NULL,
        "the user at the Sentinels, if they have users or passwords of their own",
        TEXT(address.sentinel_user, check_filled)),
    ROW(SENTINEL_PASSWORD, "sentinel-password", NULL, NULL, NULL,
        ANY_TEXT(address.sentinel_password), .use = SETTING_SECRET,
        .option.variable = "RLOCK_SENTINEL_PASSWORD"),
    ROW(SENTINEL_PASSWORD_FILE, "sentinel-password-file", "FILE", NULL,
        "their password is the first line of FILE (or RLOCK_SENTINEL_PASSWORD)",
        PATH(address.sentinel_password_file)),
    ROW(CONNECT_TIMEOUT, "connect-timeout", "DUR", "5s",
        "for name look-up, connection and greeting together",
        DURATION(address.connect_timeout, 1, INT64_MAX, "must be longer than 0")),
    ROW(SERVER_WAIT, "server-wait", "DUR", NULL,
        "try again for DUR if the store is away at the start, 0: once; default: the connect "
        "timeout",
        ANY_DURATION(address.server_wait), .option.variable = "RLOCK_SERVER_WAIT"),
    ROW(TLS_CA, "tls-ca", "FILE", NULL,
        "trust the certificates in FILE, or in a directory, not the system's",
        PATH(address.tls.ca.path)),
    ROW(TLS_CERT, "tls-cert", "FILE", NULL, "show the server the certificate in FILE",
        PATH(address.tls.cert.path)),
    ROW(TLS_KEY, "tls-key", "FILE", NULL, "its private key (default: in the certificate's file)",
        PATH(address.tls.key.path)),
    ROW(TLS_SERVER_NAME, "tls-server-name", "NAME", NULL,
        "the server's certificate is for NAME (default: the host in the URL)",
        TEXT(address.tls.server_name, check_server_name)),
    ROW(COLOR, "color", "WHEN", "auto", "auto, always or never (NO_COLOR: never)", OWN(take_color),
        .option.values = "auto always never"),
    ROW(WAIT, "wait", "DUR", NULL, "wait at most DUR (default: for ever)", ANY_DURATION(wait),
        .option.letter = 'w', .option.also = "timeout"),
    ROW(CONFLICT_EXIT_CODE, "conflict-exit-code", "N", "75",
        "status when not acquired; 0 skips silently, for cron",
        NUMBER(conflict_status, 0, 255, "is not a number from 0 to 255"), .option.letter = 'E',
        .option.values = "0 75"),
    ROW(UNLESS_DONE, "unless-done", "DUR", NULL,
        "run nothing if a run of KEY that began less than DUR ago succeeded (status 75 or -E)",
        DURATION(unless_done, NS_PER_MS, 7 * DAY_NS, "must be more than 0, and at most 7d")),
    ROW(PRIORITY, "priority", "N", "0",
        "-9 to 9: served before lower ones, which come first after 15 minutes",
        NUMBER(priority, -LOCK_PRIORITY_MAX, LOCK_PRIORITY_MAX, "is not a number from -9 to 9"),
        .option.values = "-9 -5 -1 1 5 9"),
    ROW(PRIORITY_BOUND, "priority-bound", NULL, "15m", NULL,
        DURATION(priority_bound, NS_PER_SEC, INT64_MAX, "must be at least 1s")),
    ROW(LEASE, "lease", "DUR", "30s",
        "the lock outlives a dead holder by at most this, at least 1s",
        DURATION(lease, LEASE_MIN_NS, INT64_MAX, "must be at least 1s")),
    ROW(NO_RENEW, "no-renew", NULL, "no",
        "a fixed lease: the command is stopped before it ends (status 124)", FLAG(no_renew)),
    ROW(AT_LEAST, "at-least", "DUR", "0",
        "keep the lock this long even if COMMAND ends sooner; rlock does not stay for it",
        ANY_DURATION(at_least)),
    ROW(AT_MOST, "at-most", "DUR", "0", "stop the command after DUR (status 124)",
        ANY_DURATION(job.at_most)),
    ROW(KILL_AFTER, "kill-after", "DUR", "5s", "between TERM and KILL when rlock stops the command",
        ANY_DURATION(job.kill_after)),
    ROW(ON_LOST, "on-lost", "ACTION", "stop",
        "the lock is lost: stop the command, continue, or signal:NAME; status 79 in every case",
        OWN(take_on_lost), .option.values = "stop continue signal:"),
    ROW(STOP, "stop", "CMD", NULL,
        "run CMD with sh -c before COMMAND is stopped, for work elsewhere (ssh); it has "
        "RLOCK_STOP_MS until KILL",
        TEXT(job.stop, check_filled)),
    ROW(WAIT_DESCENDANTS, "wait-descendants", NULL, "no",
        "hold the lock until background processes of COMMAND have ended, too",
        FLAG(job.wait_descendants)),
    ROW(CGROUP, "cgroup", NULL, "no",
        "run COMMAND in a cgroup of its own, which no process escapes (default where systemd has "
        "delegated one)",
        FLAG(job.cgroup)),
    ROW(NOTIFY, "notify", "CMD", NULL,
        "run CMD with sh -c on a long wait or hold, and on failures (RLOCK_EVENT says which)",
        TEXT(job.notify, check_filled)),
    ROW(NOTIFY_AFTER, "notify-after", "DUR", "10m", "what is long",
        DURATION(job.notify_after, 1, INT64_MAX, "must be longer than 0")),
    ROW(NO_REENTRANT, "no-reentrant", NULL, "no", "do not treat an ancestor's lock as one's own",
        FLAG(no_reentrant)),
    ROW(LABEL, "label", "TEXT", NULL, "shown to others (default: the CI job's URL)",
        ANY_TEXT(label)),
    ROW(NO_IDENTITY, "no-identity", NULL, "no", "store no host, user, pid or command name",
        FLAG(no_identity)),
    ROW(KEEP_CREDENTIALS, "keep-credentials", NULL, "no",
        "leave RLOCK_PASSWORD, and passwords in RLOCK_URL, in the command's environment",
        FLAG(keep_credentials)),
    ROW(REPLICAS, "replicas", "N", "0",
        "the lock counts only once N replicas, a majority or all have it", OWN(take_replicas),
        .option.values = "1 2 majority all"),
    ROW(GRACE, "grace", NULL, "no", "wait one lease if the store may have forgotten who holds what",
        FLAG(address.grace)),
};

const struct option_spec option_no_wait =
    OPTION(OPTION_NO_WAIT, "no-wait", NULL, "do not wait", .also = "nonblock", .letter = 'n');

const struct option_spec common_options[] = {
    SETTING(URL),
    OPTION(OPTION_LOCAL, "local", NULL, "this host only, no server to set up (--url local:)"),
    SETTING(PREFIX),
    SETTING(PASSWORD_FILE),
    SETTING(SENTINEL_USER),
    SETTING(SENTINEL_PASSWORD_FILE),
    OPTION(
        OPTION_CONFIG, "config", "FILE",
        "read only FILE, not /etc/rlock.conf, /etc/rlock.conf.d/*.conf and ~/.config/rlock/config",
        .variable = "RLOCK_CONFIG"),
    SETTING(CONNECT_TIMEOUT),
    SETTING(SERVER_WAIT),
    SETTING(TLS_CA),
    SETTING(TLS_CERT),
    SETTING(TLS_KEY),
    SETTING(TLS_SERVER_NAME),
    SETTING(COLOR),
    OPTION(OPTION_QUIET, "quiet", NULL, "errors only", .letter = 'q'),
    OPTION(OPTION_VERBOSE, "verbose", NULL, "say what happens, with times", .letter = 'v'),
    OPTION(OPTION_HELP, "help", NULL, "the help of the command", .letter = 'h'),
    {0}};

enum setting setting_find(const char *name)
{
    for (int i = 1; i < SETTING_COUNT; i++)
        if (strcmp(setting_rows[i].option.name, name) == 0)
            return (enum setting)i;
    return 0;
}

const char *setting_find_similar(const char *name)
{
    const char *meant = NULL;
    size_t slips = SLIPS_MANY;

    for (int i = 1; i < SETTING_COUNT; i++)
        if (similar_is_nearer(name, strlen(name), setting_rows[i].option.name, &slips))
            meant = setting_rows[i].option.name;
    return meant;
}

/* Returns what is wrong with a number outside of the row's bounds; NULL: nothing is. */
static const char *check_bounds(const struct setting_row *row, int64_t number)
{
    return row->wrong && (number < row->least || number > row->most) ? row->wrong : NULL;
}

/* Sets *member to a number that may be negative. Returns what is wrong with the value: it is not a
 * number, and *member stays; or it is outside of the row's bounds. NULL: nothing is. */
static const char *take_number(const struct setting_row *row, int *member, const char *value)
{
    bool below = *value == '-';
    int64_t number;

    if (!decimal_parse(value + below, 0, INT_MAX, &number))
        return row->wrong;
    *member = (int)(below ? -number : number);
    return check_bounds(row, *member);
}

const char *setting_take(enum setting id, struct settings *settings, const char *value,
                         char *message)
{
    const struct setting_row *row = &setting_rows[id];
    void *member = (char *)settings + row->offset;

    switch (row->kind) {
    case KIND_DURATION:
        return duration_parse(value, member) ? check_bounds(row, *(int64_t *)member)
                                             : duration_fault(value, DURATION_FAULT);
    case KIND_NUMBER: return take_number(row, member, value);
    case KIND_FLAG:
        *(bool *)member = strcmp(value, "yes") == 0;
        return *(bool *)member || strcmp(value, "no") == 0 ? NULL : "is not yes or no";
    case KIND_OWN: return row->take(settings, value, message);
    case KIND_TEXT: break;
    }
    *(const char **)member = value;
    return row->check ? row->check(value) : NULL;
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->address.url_count; i++)
        url_free(&settings->urls[i]);
    free(settings->urls);
    arena_free(&settings->arena);
    *settings = (struct settings){0};
}
