/* The table of settings. */
#include "rules.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "key.h"
#include "lease.h"
#include "mem.h"
#include "urls.h"

#define REPLICAS_MAX 100
#define NO_DURATION  "is not a duration (such as 500ms, 30s, 5m or 1m30s)"

static bool add_url(struct settings *settings, const char *text, size_t length, char *room)
{
    size_t count = settings->address.url_count;

    settings->urls = mem_checked(realloc(settings->urls, (count + 1) * sizeof *settings->urls));
    settings->address.urls = settings->urls;
    char *word = mem_checked(strndup(text, length));
    bool fine = url_parse(word, &settings->urls[count], room, RULES_FAULT_SIZE);
    explicit_bzero(word, length);
    free(word);
    settings->address.url_count += fine;
    return fine;
}

/* One or several; of these, says which one is wrong. */
static const char *take_urls(struct settings *settings, const char *value, char *room)
{
    size_t length, rest_length;
    const char *word = urls_word(value, &length), *rest;
    char why[RULES_FAULT_SIZE];

    if (!word)
        word = value; /* empty, to be refused as such */
    rest = urls_word(word + length, &rest_length);
    if (!rest)
        return add_url(settings, word, length, room) ? NULL : room;
    for (; word; word = urls_word(word + length, &length)) {
        if (add_url(settings, word, length, why))
            continue;
        snprintf(room, RULES_FAULT_SIZE, "(number %zu of several) %.*s",
                 settings->address.url_count + 1, RULES_FAULT_SIZE - 60, why);
        return room;
    }
    return NULL;
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

static const char *take_text(const char **text, const char *value)
{
    *text = value;
    return *value ? NULL : "is empty";
}

static const char *take_password_file(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_text(&settings->address.password_file, value);
}

static const char *take_connect_timeout(struct settings *settings, const char *value, char *room)
{
    (void)room;
    if (!duration_parse(value, &settings->address.connect_timeout))
        return NO_DURATION;
    return settings->address.connect_timeout > 0 ? NULL : "has to be longer than 0";
}

static const char *take_tls_ca(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_text(&settings->address.tls.ca, value);
}

static const char *take_tls_cert(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_text(&settings->address.tls.cert, value);
}

static const char *take_tls_key(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_text(&settings->address.tls.key, value);
}

static const char *take_tls_server_name(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_text(&settings->address.tls.server_name, value);
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

static const char *take_replicas(struct settings *settings, const char *value, char *room)
{
    struct store_address *address = &settings->address;
    char *end;
    unsigned long number = strtoul(value, &end, 10);

    (void)room;
    address->replica_count = 0;
    if (strcmp(value, "majority") == 0) {
        address->replicas = REPLICAS_MAJORITY;
    } else if (strcmp(value, "all") == 0) {
        address->replicas = REPLICAS_ALL;
    } else {
        address->replicas = number ? REPLICAS_COUNT : REPLICAS_NONE;
        address->replica_count = (unsigned)number;
        if (*value < '0' || *value > '9' || *end || number > REPLICAS_MAX)
            return "is not a number from 0 to 100, majority or all";
    }
    return NULL;
}

static const char *take_truth(bool *truth, const char *value)
{
    *truth = strcmp(value, "yes") == 0;
    return *truth || strcmp(value, "no") == 0 ? NULL : "is not yes or no";
}

static const char *take_grace(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_truth(&settings->address.grace, value);
}

static const char *take_no_identity(struct settings *settings, const char *value, char *room)
{
    (void)room;
    return take_truth(&settings->no_identity, value);
}

const struct rule rules[SETTING_COUNT] = {
    [SETTING_URL] = {"url", "RLOCK_URL", "redis://127.0.0.1:6379/0", true, take_urls},
    [SETTING_PREFIX] = {"prefix", "RLOCK_PREFIX", "rlock", false, take_prefix},
    [SETTING_PASSWORD] = {"password", "RLOCK_PASSWORD", NULL, true, take_password},
    [SETTING_PASSWORD_FILE] = {"password-file", NULL, NULL, false, take_password_file},
    [SETTING_CONNECT_TIMEOUT] = {"connect-timeout", NULL, "5s", false, take_connect_timeout},
    [SETTING_TLS_CA] = {"tls-ca", NULL, NULL, false, take_tls_ca},
    [SETTING_TLS_CERT] = {"tls-cert", NULL, NULL, false, take_tls_cert},
    [SETTING_TLS_KEY] = {"tls-key", NULL, NULL, false, take_tls_key},
    [SETTING_TLS_SERVER_NAME] = {"tls-server-name", NULL, NULL, false, take_tls_server_name},
    [SETTING_COLOR] = {"color", NULL, "auto", false, take_color},
    [SETTING_LEASE] = {"lease", NULL, "30s", false, take_lease},
    [SETTING_WAIT] = {"wait", NULL, NULL, false, take_wait},
    [SETTING_CONFLICT_EXIT_CODE] = {"conflict-exit-code", NULL, "75", false,
                                    take_conflict_exit_code},
    [SETTING_REPLICAS] = {"replicas", NULL, "0", false, take_replicas},
    [SETTING_GRACE] = {"grace", NULL, "no", false, take_grace},
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
