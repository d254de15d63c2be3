/* The environment of a command that runs under a lock. */
#include "environment.h"

#include <inttypes.h>
#include <stdio.h>

#include "mem.h"
#include "url.h"

static bool names(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* What an outer rlock said of its lock would be wrong for this one. */
static bool is_stale(const char *entry)
{
    static const char *const stale[] = {"RLOCK_KEY",      "RLOCK_MODE", "RLOCK_OWNER",
                                        "RLOCK_LEASE_MS", "RLOCK_SLOT", "RLOCK_FENCE"};

    for (size_t i = 0; i < sizeof stale / sizeof *stale; i++)
        if (names(entry, stale[i]))
            return true;
    return false;
}

/* A copy of RLOCK_URL=… without its password. A user's name stays, with an empty password: a nested
 * rlock may have the password from a file. */
static char *without_password(const char *entry)
{
    char *copy = mem_strdup(entry);
    size_t start, length;

    if (!url_password_span(entry, &start, &length))
        return copy;
    if (start >= 2 && entry[start - 2] == '/') {
        start--;     /* its ':' */
        length += 2; /* its '@' */
    }
    memmove(copy + start, copy + start + length, strlen(copy + start + length) + 1);
    return copy;
}

static char *made(const char *name, const char *value)
{
    char *entry = NULL;
    return asprintf(&entry, "%s=%s", name, value) < 0 ? mem_checked(NULL) : entry;
}

void environment_make(struct environment *environment, char *const *inherited, const char *key,
                      const char *owner, int64_t lease_ms, bool keep_credentials)
{
    char lease[24];
    size_t count = 0;

    snprintf(lease, sizeof lease, "%" PRId64, lease_ms);
    *environment = (struct environment){.made = {made("RLOCK_KEY", key), made("RLOCK_OWNER", owner),
                                                 made("RLOCK_MODE", "exclusive"),
                                                 made("RLOCK_LEASE_MS", lease)}};
    while (inherited[count])
        count++;
    char **entries = mem_zeroed((count + 5) * sizeof *entries);
    environment->entries = entries;
    for (; *inherited; inherited++) {
        if (is_stale(*inherited) || (!keep_credentials && names(*inherited, "RLOCK_PASSWORD")))
            continue;
        *entries = *inherited;
        if (!keep_credentials && names(*inherited, "RLOCK_URL")) {
            if (environment->made[4])
                continue; /* a second one, which getenv() never sees */
            *entries = environment->made[4] = without_password(*inherited);
        }
        entries++;
    }
    memcpy(entries, environment->made, 4 * sizeof *entries);
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < 5; i++)
        free(environment->made[i]);
    free(environment->entries);
    *environment = (struct environment){0};
}
