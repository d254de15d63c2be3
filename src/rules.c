/* The table of settings. */
#include "rules.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "key.h"
#include "lease.h"
#include "mem.h"

#define NO_DURATION "is not a duration (such as 500ms, 30s, 5m or 1m30s)"

static const char *take_url(struct settings *settings, const char *value, char *room)
{
    const char *start = value + strspn(value, RULES_BLANKS);
    size_t length = strcspn(start, RULES_BLANKS);

    char *word = mem_checked(strndup(start, length));
    bool fine = url_parse(word, &settings->address.url, room, RULES_FAULT_SIZE);
    explicit_bzero(word, length);
    free(word);
    return fine ? NULL : room;
}

static const char *take_prefix(struct settings *settings, const char *value, char *room)
{
    (void)room;
    settings->address.prefix = value;
    return key_fault(value);
}

static const char *take_password(struct settings *settings, const char *value, char *room)
{
    (void)room;
    settings->address.password = value;
    return NULL;
}

static const char *take_password_file(struct settings *settings, const char *value, char *room)
{
    (void)room;
    settings->address.password_file = value;
    return *value ? NULL : "is empty";
}

static const char *take_connect_timeout(struct settings *settings, const char *value, char *room)
{
    (void)room;
    if (!duration_parse(value, &settings->address.connect_timeout))
        return NO_DURATION;
    return settings->address.connect_timeout > 0 ? NULL : "has to be longer than 0";
}

static const char *take_color(struct settings *settings, const char *value, char *room)
{
    static const char *const names[] = {"auto", "always", "never"};

    (void)room;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            settings->color = (enum color_when)i;
            return NULL;
        }
    }
    return "is not auto, always or never";
}

static const char *take_lease(struct settings *settings, const char *value, char *room)
{
    (void)room;
    if (!duration_parse(value, &settings->lease))
        return NO_DURATION;
    return settings->lease >= LEASE_MIN_NS ? NULL : "has to be at least 1s";
}

static const char *take_wait(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return duration_parse(value, &settings->wait) ? NULL : NO_DURATION;
}

static const char *take_conflict_exit_code(struct settings *settings, const char *value, char *room)
{
    char *end;
    long number = strtol(value, &end, 10);

    (void)room;
    if (*value < '0' || *value > '9' || *end || number > 255)
        return "is not a number from 0 to 255";
    settings->conflict_status = (int)number;
    return NULL;
}

static const char *take_at_least(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return duration_parse(value, &settings->at_least) ? NULL : NO_DURATION;
}

static const char *take_at_most(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return duration_parse(value, &settings->at_most) ? NULL : NO_DURATION;
}

static const char *take_kill_after(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return duration_parse(value, &settings->kill_after) ? NULL : NO_DURATION;
}

/* TERM, SIGTERM or 15; 0 if there is none of that name. */
static int signal_number(const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);

    if (*name >= '0' && *name <= '9')
        return *end || number > SIGRTMAX ? 0 : (int)number;
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int signo = 1; signo < SIGRTMIN; signo++) {
        const char *known = sigabbrev_np(signo);
        if (known && strcmp(known, name) == 0)
            return signo;
    }
    return 0;
}

static const char *take_on_lost(struct settings *settings, const char *value, char *room)
{
    (void)room;
    if (strcmp(value, "stop") == 0) {
        settings->on_lost = ON_LOST_STOP;
    } else if (strcmp(value, "continue") == 0) {
        settings->on_lost = ON_LOST_CONTINUE;
    } else if (strncmp(value, "signal:", 7) == 0) {
        settings->on_lost = ON_LOST_SIGNAL;
        settings->lost_signal = signal_number(value + 7);
        return settings->lost_signal ? NULL : "names no signal (write signal:USR1 or signal:10)";
    } else {
        return "is not stop, continue or signal:NAME";
    }
    return NULL;
}

static const char *take_label(struct settings *settings, const char *value, char *room)
{
    (void)room;
    settings->label = value;
    return NULL;
}

static const char *take_no_identity(struct settings *settings, const char *value, char *room)
{
    (void)room;
    settings->no_identity = strcmp(value, "yes") == 0;
    return settings->no_identity || strcmp(value, "no") == 0 ? NULL : "is not yes or no";
}

const struct rule rules[SETTING_COUNT] = {
    [SETTING_URL] = {"url", "RLOCK_URL", "redis://127.0.0.1:6379/0", true, take_url},
    [SETTING_PREFIX] = {"prefix", "RLOCK_PREFIX", "rlock", false, take_prefix},
    [SETTING_PASSWORD] = {"password", "RLOCK_PASSWORD", NULL, true, take_password},
    [SETTING_PASSWORD_FILE] = {"password-file", NULL, NULL, false, take_password_file},
    [SETTING_CONNECT_TIMEOUT] = {"connect-timeout", NULL, "5s", false, take_connect_timeout},
    [SETTING_COLOR] = {"color", NULL, "auto", false, take_color},
    [SETTING_LEASE] = {"lease", NULL, "30s", false, take_lease},
    [SETTING_WAIT] = {"wait", NULL, NULL, false, take_wait},
    [SETTING_CONFLICT_EXIT_CODE] = {"conflict-exit-code", NULL, "75", false,
                                    take_conflict_exit_code},
    [SETTING_AT_LEAST] = {"at-least", NULL, "0", false, take_at_least},
    [SETTING_AT_MOST] = {"at-most", NULL, "0", false, take_at_most},
    [SETTING_KILL_AFTER] = {"kill-after", NULL, "5s", false, take_kill_after},
    [SETTING_ON_LOST] = {"on-lost", NULL, "stop", false, take_on_lost},
    [SETTING_LABEL] = {"label", NULL, NULL, false, take_label},
    [SETTING_NO_IDENTITY] = {"no-identity", NULL, "no", false, take_no_identity},
};

enum setting rules_find(const char *name)
{
    for (int i = 1; i < SETTING_COUNT; i++)
        if (strcmp(rules[i].name, name) == 0)
            return (enum setting)i;
    return 0;
}
