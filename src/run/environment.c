/* The environment of a command that runs under a lock. */
#include "run/environment.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "lock/lock.h"
#include "store/url.h"

/* The variables of rlock. Those of an outer one about its own lock would be wrong for this one. */
enum variable { VARIABLE_OTHER, VARIABLE_OF_LOCK, VARIABLE_PASSWORD, VARIABLE_URL };

static enum variable variable_of(const char *entry)
{
    static const struct {
        char name[12];
        enum variable variable;
    } rows[] = {{"KEY=", VARIABLE_OF_LOCK},       {"MODE=", VARIABLE_OF_LOCK},
                {"OWNER=", VARIABLE_OF_LOCK},     {"LEASE_MS=", VARIABLE_OF_LOCK},
                {"SLOT=", VARIABLE_OF_LOCK},      {"FENCE=", VARIABLE_OF_LOCK},
                {"PASSWORD=", VARIABLE_PASSWORD}, {"URL=", VARIABLE_URL}};

    if (strncmp(entry, "RLOCK_", 6) != 0)
        return VARIABLE_OTHER;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(entry + 6, rows[i].name, strlen(rows[i].name)) == 0)
            return rows[i].variable;
    return VARIABLE_OTHER;
}

void environment_hide(char **entries)
{
    for (; *entries; entries++) {
        enum variable variable = variable_of(*entries);
        if (variable != VARIABLE_PASSWORD && variable != VARIABLE_URL)
            continue;
        char *value = strchr(*entries, '=') + 1;
        *entries = mem_strdup(*entries);
        if (variable == VARIABLE_PASSWORD)
            memset(value, '*', strlen(value));
        else
            urls_blot(value);
    }
}

/* A copy of RLOCK_URL=… without its passwords. A user's name stays, with an empty password: a
 * nested rlock may have the password from a file. */
static char *without_passwords(const char *entry)
{
    char *copy = mem_strdup(entry);
    char *text = strchr(copy, '=') + 1;
    size_t start, length;

    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start) {
        if (text[start - 1] == ':' && text[start - 2] == '/') {
            start--;     /* its ':' */
            length += 2; /* its '@' */
        }
        memmove(text + start, text + start + length, strlen(text + start + length) + 1);
    }
    return copy;
}

static char *entry_of(const char *name, const char *value)
{
    char *entry = NULL;
    return asprintf(&entry, "%s=%s", name, value) < 0 ? mem_checked(NULL) : entry;
}

char *environment_keys(const char *const *keys, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += strlen(keys[i]) + 1;
    char *words = mem_zeroed(size + 1), *end = words;
    for (size_t i = 0; i < count; i++)
        end += sprintf(end, "%s%s", i ? " " : "", keys[i]);
    return words;
}

static char *key_entry(const char *const *keys, size_t count)
{
    char *words = environment_keys(keys, count);
    char *entry = entry_of("RLOCK_KEY", words);
    free(words);
    return entry;
}

static void describe(struct environment *environment, const struct environment_lock *lock)
{
    *environment =
        (struct environment){.words = {key_entry(lock->keys, lock->key_count),
                                       entry_of("RLOCK_MODE", lock_mode_name(lock->mode)),
                                       lock->owner ? entry_of("RLOCK_OWNER", lock->owner) : NULL},
                             .keys = lock->keys,
                             .key_count = lock->key_count,
                             .limited = lock->mode == LOCK_LIMIT};
}

void environment_make(struct environment *environment, char *const *inherited,
                      const struct environment_lock *lock, bool keep_credentials)
{
    size_t count = 0, used = 0;

    *environment = (struct environment){0};
    if (lock)
        describe(environment, lock);
    while (inherited[count])
        count++;
    char **entries = mem_zeroed((count + ENVIRONMENT_WORDS + 1) * sizeof *entries);
    environment->entries = entries;
    for (; *inherited; inherited++) {
        enum variable variable = variable_of(*inherited);
        bool is_url = !keep_credentials && variable == VARIABLE_URL;
        if ((lock && variable == VARIABLE_OF_LOCK) ||
            (!keep_credentials && variable == VARIABLE_PASSWORD) ||
            (is_url && environment->url)) /* a second one, which getenv() never sees */
            continue;
        if (is_url)
            environment->url = without_passwords(*inherited);
        entries[used++] = is_url ? environment->url : *inherited;
    }
    for (size_t i = 0; environment->words[i]; i++)
        entries[used++] = environment->words[i];
}

/* Sets the word with that number. */
static void put(struct environment *environment, size_t word, char *entry)
{
    char **place = environment->entries, *old = environment->words[word];

    while (*place && *place != old)
        place++;
    *place = environment->words[word] = entry;
    free(old);
}

void environment_grant(struct environment *environment, int64_t lease,
                       const struct lock_grant *grants)
{
    char fences[LOCK_KEYS_MAX * 21 + 1] = "", slots[sizeof fences] = "";
    char *fence = fences, *slot = slots, lease_ms[24];
    struct held_keys held;

    held_keys_choose(&held, environment->keys, environment->key_count, grants);
    for (size_t i = 0; i < held.count; i++) {
        fence += sprintf(fence, "%s%" PRIu64, i ? " " : "", held.grants[i].fence);
        slot += sprintf(slot, "%s%u", i ? " " : "", held.grants[i].slot);
    }
    put(environment, 0, key_entry(held.keys, held.count));
    snprintf(lease_ms, sizeof lease_ms, "%" PRId64, lease / NS_PER_MS);
    put(environment, 3, entry_of("RLOCK_LEASE_MS", lease_ms));
    put(environment, 4, entry_of("RLOCK_FENCE", fences));
    if (environment->limited)
        put(environment, 5, entry_of("RLOCK_SLOT", slots));
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < ENVIRONMENT_WORDS; i++)
        free(environment->words[i]);
    free(environment->url);
    free(environment->entries);
    *environment = (struct environment){0};
}
