#include "run/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "store/url.h"

/* systemd's variable beside LISTEN_PID, which names the same process in other words. It may be left
 * out. */
#define PIDFDID "LISTEN_PIDFDID="

/* The variables of rlock. Those of an outer one about its own lock would be wrong for this one. */
enum variable { VARIABLE_OTHER, VARIABLE_OF_LOCK, VARIABLE_PASSWORD, VARIABLE_URL };

/* Returns which of rlock's own variables an entry NAME=value is; VARIABLE_OTHER: none of these. */
static enum variable variable_of(const char *entry)
{
    static const struct {
        char name[20];
        enum variable variable;
    } rows[] = {{"KEY=", VARIABLE_OF_LOCK},
                {"MODE=", VARIABLE_OF_LOCK},
                {"OWNER=", VARIABLE_OF_LOCK},
                {"LEASE_MS=", VARIABLE_OF_LOCK},
                {"SLOT=", VARIABLE_OF_LOCK},
                {"FENCE=", VARIABLE_OF_LOCK},
                {"PASSWORD=", VARIABLE_PASSWORD},
                {"SENTINEL_PASSWORD=", VARIABLE_PASSWORD},
                {"URL=", VARIABLE_URL}};

    if (strncmp(entry, "RLOCK_", 6) != 0)
        return VARIABLE_OTHER;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(entry + 6, rows[i].name, strlen(rows[i].name)) == 0)
            return rows[i].variable;
    return VARIABLE_OTHER;
}

/* Overwrites, in the value of RLOCK_URL, what may be a password in words without a scheme, which
 * are not URLs: all before the last '@' of each. */
static void hide_in_words(char *text)
{
    size_t length;

    for (const char *word = text; (word = urls_word(word, &length)); word += length) {
        const char *at = memrchr(word, '@', length);
        /* "exec:NAME/REST" is a URL, too, of a driver. */
        if (at && !memmem(word, length, "://", 3) && strncmp(word, "exec:", 5) != 0)
            memset(text + (word - text), '*', (size_t)(at - word));
    }
}

void environment_hide(char **entries)
{
    for (; *entries; entries++) {
        enum variable variable = variable_of(*entries);
        if (variable != VARIABLE_PASSWORD && variable != VARIABLE_URL)
            continue;
        char *value = strchr(*entries, '=') + 1;
        *entries = mem_strdup(*entries);
        if (variable == VARIABLE_PASSWORD) {
            memset(value, '*', strlen(value));
        } else {
            urls_blot(value);
            hide_in_words(value);
        }
    }
}

/* Copies RLOCK_URL=… without its passwords. A user's name stays, with an empty password: a nested
 * rlock may have the password from a file. The caller frees. */
static char *without_passwords(const char *entry)
{
    char *copy = mem_strdup(entry);
    char *text = strchr(copy, '=') + 1;
    size_t start, length;

    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start) {
        if (text[start - 1] == ':' && text[start - 2] == '/') { /* "://:password@": no user */
            start--;                                            /* its ':' */
            length += 2;                                        /* its '@' */
        }
        memmove(text + start, text + start + length, strlen(text + start + length) + 1);
    }
    hide_in_words(text);
    return copy;
}

char *environment_keys(const char *const *keys, size_t count)
{
    struct strbuf words = {.text = NULL};

    for (size_t i = 0; i < count; i++)
        strbuf_printf(&words, "%s%s", i ? " " : "", keys[i]);
    return strbuf_detach(&words);
}

/* Returns RLOCK_KEY=… for these keys. The caller frees. */
static char *key_entry(const char *const *keys, size_t count)
{
    char *words FREED = environment_keys(keys, count);
    return strbuf_print("RLOCK_KEY=%s", words);
}

/* Returns the environment's own copy of an entry of systemd that names this process, in which the
 * command's process will write its number; NULL: another entry. */
static char *service_entry(struct environment *environment, const char *entry)
{
    static const char *const names[CHILD_NUMBERS] = {"LISTEN_PID=", "WATCHDOG_PID="};

    for (size_t i = 0; i < CHILD_NUMBERS; i++) {
        char *own = environment->of_service[i];
        size_t length = strlen(names[i]);
        if (strncmp(entry, names[i], length) != 0)
            continue;
        snprintf(own, sizeof environment->of_service[i], "%s%d", names[i], (int)getpid());
        if (strcmp(entry, own) == 0) {
            environment->numbers[i] = own + length;
            return own;
        }
    }
    return NULL;
}

void environment_make(struct environment *environment, char *const *inherited,
                      const struct acquire_request *lock, enum environment_passwords passwords)
{
    bool removes = passwords == PASSWORDS_REMOVED;
    size_t count = 0, used = 0;

    *environment = (struct environment){.lock = lock};
    if (lock) {
        environment->words[ENVIRONMENT_KEY] = key_entry(lock->keys, lock->key_count);
        environment->words[ENVIRONMENT_MODE] =
            strbuf_print("RLOCK_MODE=%s", lock_mode_name(lock->mode));
        environment->words[ENVIRONMENT_OWNER] = strbuf_print("RLOCK_OWNER=%s", lock->owner);
    }
    for (; inherited[count]; count++)
        service_entry(environment, inherited[count]); /* PIDFDID may come before LISTEN_PID */
    char **entries = mem_zeroed((count + ENVIRONMENT_WORDS + 1) * sizeof *entries);
    environment->entries = entries;
    for (; *inherited; inherited++) {
        enum variable variable = variable_of(*inherited);
        bool is_url = removes && variable == VARIABLE_URL;
        if ((lock && variable == VARIABLE_OF_LOCK) || (removes && variable == VARIABLE_PASSWORD) ||
            (is_url && environment->url) || /* a second one, which getenv() never sees */
            /* numbers[0]: there is a LISTEN_PID that becomes the command's */
            (environment->numbers[0] && strncmp(*inherited, PIDFDID, strlen(PIDFDID)) == 0))
            continue;
        if (is_url)
            environment->url = without_passwords(*inherited);
        char *changed = is_url ? environment->url : service_entry(environment, *inherited);
        entries[used++] = changed ? changed : *inherited;
    }
    for (size_t i = 0; environment->words[i]; i++)
        entries[used++] = environment->words[i];
}

/* Sets the entry of a word, from malloc(), which becomes the environment's: in place of the one
 * that it had, or at the end. */
static void put_entry(struct environment *environment, enum environment_word word, char *entry)
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
    struct strbuf fences = {.text = NULL}, slots ENDED_BY(strbuf_free) = {.text = NULL};
    const struct acquire_request *lock = environment->lock;
    struct held_keys held;

    held_keys_choose(&held, lock->keys, lock->key_count, grants);
    strbuf_puts(&fences, "RLOCK_FENCE=");
    strbuf_puts(&slots, "RLOCK_SLOT=");
    for (size_t i = 0; i < held.count; i++) {
        strbuf_printf(&fences, "%s%" PRIu64, i ? " " : "", held.grants[i].fence);
        strbuf_printf(&slots, "%s%u", i ? " " : "", held.grants[i].slot);
    }
    put_entry(environment, ENVIRONMENT_KEY, key_entry(held.keys, held.count));
    put_entry(environment, ENVIRONMENT_LEASE,
              strbuf_print("RLOCK_LEASE_MS=%" PRId64, lease / NS_PER_MS));
    put_entry(environment, ENVIRONMENT_FENCE, strbuf_detach(&fences));
    if (lock->mode == LOCK_LIMIT)
        put_entry(environment, ENVIRONMENT_SLOT, strbuf_detach(&slots));
}

/* Whether two entries, NAME=value, are of one variable. */
static bool have_same_name(const char *entry, const char *other)
{
    size_t length = strcspn(entry, "=");

    return strncmp(entry, other, length + 1) == 0;
}

char **environment_beside(const struct environment *environment, char *const *added)
{
    char *const *entries = environment->entries;
    size_t count = 0, used = 0;

    while (entries[count])
        count++;
    for (size_t i = 0; added[i]; i++)
        count++;
    char **list = mem_zeroed((count + 1) * sizeof *list);
    for (; *entries; entries++) {
        char *const *replacing = added;
        while (*replacing && !have_same_name(*replacing, *entries))
            replacing++;
        if (!*replacing && !have_same_name("RLOCK_OWNER=", *entries))
            list[used++] = *entries;
    }
    for (; *added; added++)
        list[used++] = *added;
    return list;
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < ENVIRONMENT_WORDS; i++)
        free(environment->words[i]);
    free(environment->url);
    free(environment->entries);
    *environment = (struct environment){0};
}
