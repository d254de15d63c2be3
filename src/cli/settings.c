/* The table of settings, and what each takes. */
#include "cli/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "base/mem.h"
#include "lock/key.h"
#include "lock/lease.h"
#include "net/host.h"
#include "store/urls.h"

#define REPLICAS_MAX 100
#define NO_DURATION  "is not a duration (such as 500ms, 30s, 5m or 1m30s)"

static bool add_url(struct settings *settings, const char *text, size_t length, char *message)
{
    size_t count = settings->address.url_count;

    settings->urls = mem_checked(realloc(settings->urls, (count + 1) * sizeof *settings->urls));
    settings->address.urls = settings->urls;
    char *word = mem_checked(strndup(text, length));
    bool fine = url_parse(word, &settings->urls[count], message, RULES_FAULT_SIZE);
    explicit_bzero(word, length);
    free(word);
    settings->address.url_count += fine;
    return fine;
}

/* One or several; of these, says which one is wrong. */
static const char *take_urls(struct settings *settings, const char *value, char *message)
{
    size_t length, rest_length;
    const char *word = urls_word(value, &length), *rest;
    char why[RULES_FAULT_SIZE];

    if (!word)
        word = value; /* empty, to be refused as such */
    rest = urls_word(word + length, &rest_length);
    if (!rest)
        return add_url(settings, word, length, message) ? NULL : message;
    for (; word; word = urls_word(word + length, &length)) {
        if (add_url(settings, word, length, why))
            continue;
        snprintf(message, RULES_FAULT_SIZE, "(number %zu of several) %.*s",
                 settings->address.url_count + 1, RULES_FAULT_SIZE - 60, why);
        return message;
    }
    return NULL;
}

static const char *take_prefix(struct settings *settings, const char *value, char *message)
{
    (void)message;
    settings->address.prefix = value;
    return key_fault(value);
}

static const char *take_password(struct settings *settings, const char *value, char *message)
{
    (void)message;
    settings->address.password = value;
    return NULL;
}

static const char *take_text(const char **text, const char *value)
{
    *text = value;
    return *value ? NULL : "is empty";
}

static const char *take_password_file(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_text(&settings->address.password_file, value);
}

static const char *take_connect_timeout(struct settings *settings, const char *value, char *message)
{
    (void)message;
    if (!duration_parse(value, &settings->address.connect_timeout))
        return NO_DURATION;
    return settings->address.connect_timeout > 0 ? NULL : "has to be longer than 0";
}

static const char *take_server_wait(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return duration_parse(value, &settings->address.server_wait) ? NULL : NO_DURATION;
}

static const char *take_tls_ca(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_text(&settings->address.tls.ca.path, value);
}

static const char *take_tls_cert(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_text(&settings->address.tls.cert.path, value);
}

static const char *take_tls_key(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_text(&settings->address.tls.key.path, value);
}

static const char *take_tls_server_name(struct settings *settings, const char *value, char *message)
{
    (void)message;
    settings->address.tls.server_name = value;
    return *value == '\0' ? "is empty"
           : host_is_name(value) || host_is_address(value)
               ? NULL
               : "is neither the name nor the address of a host";
}

static const char *take_color(struct settings *settings, const char *value, char *message)
{
    static const char *const names[] = {"auto", "always", "never"};

    (void)message;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            settings->color = (enum color_when)i;
            return NULL;
        }
    }
    return "is not auto, always or never";
}

static const char *take_lease(struct settings *settings, const char *value, char *message)
{
    (void)message;
    if (!duration_parse(value, &settings->lease))
        return NO_DURATION;
    return settings->lease >= LEASE_MIN_NS ? NULL : "has to be at least 1s";
}

static const char *take_wait(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return duration_parse(value, &settings->wait) ? NULL : NO_DURATION;
}

static const char *take_conflict_exit_code(struct settings *settings, const char *value,
                                           char *message)
{
    int64_t number;

    (void)message;
    if (!decimal_parse(value, 0, 255, &number))
        return "is not a number from 0 to 255";
    settings->conflict_status = (int)number;
    return NULL;
}

static const char *take_at_least(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return duration_parse(value, &settings->at_least) ? NULL : NO_DURATION;
}

static const char *take_at_most(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return duration_parse(value, &settings->at_most) ? NULL : NO_DURATION;
}

static const char *take_kill_after(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return duration_parse(value, &settings->kill_after) ? NULL : NO_DURATION;
}

/* TERM, SIGTERM or 15; 0 if there is none of that name. */
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

static const char *take_on_lost(struct settings *settings, const char *value, char *message)
{
    (void)message;
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

static const char *take_notify(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_text(&settings->notify, value);
}

static const char *take_notify_after(struct settings *settings, const char *value, char *message)
{
    (void)message;
    if (!duration_parse(value, &settings->notify_after))
        return NO_DURATION;
    return settings->notify_after > 0 ? NULL : "has to be longer than 0";
}

static const char *take_priority_bound(struct settings *settings, const char *value, char *message)
{
    (void)message;
    if (!duration_parse(value, &settings->priority_bound))
        return NO_DURATION;
    return settings->priority_bound >= NS_PER_SEC ? NULL : "has to be at least 1s";
}

static const char *take_label(struct settings *settings, const char *value, char *message)
{
    (void)message;
    settings->label = value;
    return NULL;
}

static const char *take_replicas(struct settings *settings, const char *value, char *message)
{
    struct store_address *address = &settings->address;
    int64_t number = 0;

    (void)message;
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

static const char *take_truth(bool *truth, const char *value)
{
    *truth = strcmp(value, "yes") == 0;
    return *truth || strcmp(value, "no") == 0 ? NULL : "is not yes or no";
}

static const char *take_grace(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_truth(&settings->address.grace, value);
}

static const char *take_no_identity(struct settings *settings, const char *value, char *message)
{
    (void)message;
    return take_truth(&settings->no_identity, value);
}

const struct rule rules[SETTING_COUNT] = {
    [SETTING_URL] = {"url", "RLOCK_URL", "redis://127.0.0.1:6379/0", RULE_SECRET, take_urls},
    [SETTING_PREFIX] = {"prefix", "RLOCK_PREFIX", "rlock", RULE_PLAIN, take_prefix},
    [SETTING_PASSWORD] = {"password", "RLOCK_PASSWORD", NULL, RULE_SECRET, take_password},
    [SETTING_PASSWORD_FILE] = {"password-file", NULL, NULL, RULE_PATH, take_password_file},
    [SETTING_CONNECT_TIMEOUT] = {"connect-timeout", NULL, "5s", RULE_PLAIN, take_connect_timeout},
    [SETTING_SERVER_WAIT] = {"server-wait", "RLOCK_SERVER_WAIT", NULL, RULE_PLAIN,
                             take_server_wait},
    [SETTING_TLS_CA] = {"tls-ca", NULL, NULL, RULE_PATH, take_tls_ca},
    [SETTING_TLS_CERT] = {"tls-cert", NULL, NULL, RULE_PATH, take_tls_cert},
    [SETTING_TLS_KEY] = {"tls-key", NULL, NULL, RULE_PATH, take_tls_key},
    [SETTING_TLS_SERVER_NAME] = {"tls-server-name", NULL, NULL, RULE_PLAIN, take_tls_server_name},
    [SETTING_COLOR] = {"color", NULL, "auto", RULE_PLAIN, take_color},
    [SETTING_LEASE] = {"lease", NULL, "30s", RULE_PLAIN, take_lease},
    [SETTING_WAIT] = {"wait", NULL, NULL, RULE_PLAIN, take_wait},
    [SETTING_CONFLICT_EXIT_CODE] = {"conflict-exit-code", NULL, "75", RULE_PLAIN,
                                    take_conflict_exit_code},
    [SETTING_REPLICAS] = {"replicas", NULL, "0", RULE_PLAIN, take_replicas},
    [SETTING_GRACE] = {"grace", NULL, "no", RULE_PLAIN, take_grace},
    [SETTING_AT_LEAST] = {"at-least", NULL, "0", RULE_PLAIN, take_at_least},
    [SETTING_AT_MOST] = {"at-most", NULL, "0", RULE_PLAIN, take_at_most},
    [SETTING_KILL_AFTER] = {"kill-after", NULL, "5s", RULE_PLAIN, take_kill_after},
    [SETTING_ON_LOST] = {"on-lost", NULL, "stop", RULE_PLAIN, take_on_lost},
    [SETTING_NOTIFY] = {"notify", NULL, NULL, RULE_PLAIN, take_notify},
    [SETTING_NOTIFY_AFTER] = {"notify-after", NULL, "10m", RULE_PLAIN, take_notify_after},
    [SETTING_PRIORITY_BOUND] = {"priority-bound", NULL, "15m", RULE_PLAIN, take_priority_bound},
    [SETTING_LABEL] = {"label", NULL, NULL, RULE_PLAIN, take_label},
    [SETTING_NO_IDENTITY] = {"no-identity", NULL, "no", RULE_PLAIN, take_no_identity},
};

enum setting rules_find(const char *name)
{
    for (int i = 1; i < SETTING_COUNT; i++)
        if (strcmp(rules[i].name, name) == 0)
            return (enum setting)i;
    return 0;
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->address.url_count; i++)
        url_free(&settings->urls[i]);
    free(settings->urls);
    arena_free(&settings->arena);
    *settings = (struct settings){0};
}
