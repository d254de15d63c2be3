/* The environment of a command under a lock. */
#include "run/environment.h"

#include "base/clock.h"
#include "tap.h"

#define OURS "RLOCK_KEY=k RLOCK_MODE=exclusive RLOCK_OWNER=o "

/* Words are separated by one space. */
static const struct {
    const char *inherited;
    enum environment_passwords passwords;
    const char *wanted;
} rows[] = {
    {"A=1 B=2", PASSWORDS_REMOVED, "A=1 B=2 " OURS},
    {"RLOCK_KEY=x RLOCK_MODE=x RLOCK_OWNER=x RLOCK_LEASE_MS=1 RLOCK_SLOT=2 RLOCK_FENCE=3 A=1",
     PASSWORDS_REMOVED, "A=1 " OURS},
    {"RLOCK_KEY=x A=1", PASSWORDS_KEPT, "A=1 " OURS},
    {"RLOCK_KEYS=x RLOCK_FENCED=x RLOCK_PREFIX=p", PASSWORDS_REMOVED,
     "RLOCK_KEYS=x RLOCK_FENCED=x RLOCK_PREFIX=p " OURS},
    {"RLOCK_PASSWORD=p A=1", PASSWORDS_REMOVED, "A=1 " OURS},
    {"RLOCK_SENTINEL_PASSWORD=p A=1", PASSWORDS_REMOVED, "A=1 " OURS},
    {"RLOCK_PASSWORD=p A=1", PASSWORDS_KEPT, "RLOCK_PASSWORD=p A=1 " OURS},
    {"RLOCK_URL=redis://h/1", PASSWORDS_REMOVED, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://:p@h/1", PASSWORDS_REMOVED, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://:@h/1", PASSWORDS_REMOVED, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://u:p@h/1", PASSWORDS_REMOVED, "RLOCK_URL=redis://u:@h/1 " OURS},
    {"RLOCK_URL=unix://u:p@/s?db=1", PASSWORDS_REMOVED, "RLOCK_URL=unix://u:@/s?db=1 " OURS},
    {"RLOCK_URL=redis://u:p@h/1", PASSWORDS_KEPT, "RLOCK_URL=redis://u:p@h/1 " OURS},
    {"RLOCK_URL=redis://:p@h RLOCK_URL=redis://:q@h", PASSWORDS_REMOVED,
     "RLOCK_URL=redis://h " OURS},
    {"RLOCK_URL=unix://:p@/a@b://c@d", PASSWORDS_REMOVED, "RLOCK_URL=unix:///a@b://c@d " OURS},
    {"RLOCK_URL=redis://:p@g\tredis://u:q@h\tredis://i", PASSWORDS_REMOVED,
     "RLOCK_URL=redis://g\tredis://u:@h\tredis://i " OURS},
    {"RLOCK_URL=\tsentinel://:p@a:1,b:2/m\nrediss://:q@h\n", PASSWORDS_REMOVED,
     "RLOCK_URL=\tsentinel://a:1,b:2/m\nrediss://h\n " OURS},
    {"RLOCK_URL=redis://:p@g\tredis://:q@h", PASSWORDS_KEPT,
     "RLOCK_URL=redis://:p@g\tredis://:q@h " OURS},
};

/* The same, before and after it is hidden. */
static const struct {
    const char *given;
    const char *shown;
} hidden[] = {
    {"A=1 RLOCK_PREFIX=p", "A=1 RLOCK_PREFIX=p"},
    {"RLOCK_PASSWORD=secret A=1", "RLOCK_PASSWORD=****** A=1"},
    {"RLOCK_SENTINEL_PASSWORD=abc", "RLOCK_SENTINEL_PASSWORD=***"},
    {"RLOCK_PASSWORD= RLOCK_PASSWORDS=x", "RLOCK_PASSWORD= RLOCK_PASSWORDS=x"},
    {"RLOCK_PASSWORD=a RLOCK_PASSWORD=bc", "RLOCK_PASSWORD=* RLOCK_PASSWORD=**"},
    {"RLOCK_URL=redis://u:pw@h/1", "RLOCK_URL=redis://u:**@h/1"},
    {"RLOCK_URL=redis://:a@h\tredis://u:bc@i\tredis://j",
     "RLOCK_URL=redis://:*@h\tredis://u:**@i\tredis://j"},
    {"OTHER_URL=redis://u:pw@h RLOCK_URL=unix:///s",
     "OTHER_URL=redis://u:pw@h RLOCK_URL=unix:///s"},
};

static const char *const one[] = {"k"}, *const three[] = {"k", "\303\274", "a:b"};
/* The same three, of which only the last one is held. */
static const char *const third[] = {"k", "\303\274", "a:b"};
static const struct lock_grant grants[] = {{.fence = UINT64_MAX, .slot = 7},
                                           {.fence = 1, .slot = 4000000000},
                                           {.fence = 9007199254740991, .slot = 1}};
static const struct lock_grant grants_of_third[] = {
    {.absent = true}, {.absent = true}, {.fence = 9007199254740991, .slot = 1}};

/* Words are separated by "|": keys are by blanks. */
static const struct {
    const char *const *keys;
    size_t count;
    enum lock_mode mode;
    const char *wanted;
} granted[] = {
    {one, 1, LOCK_EXCLUSIVE,
     "RLOCK_KEY=k|RLOCK_MODE=exclusive|RLOCK_LEASE_MS=1500|RLOCK_FENCE=18446744073709551615|"},
    {one, 1, LOCK_SHARED,
     "RLOCK_KEY=k|RLOCK_MODE=shared|RLOCK_LEASE_MS=1500|RLOCK_FENCE=18446744073709551615|"},
    {one, 1, LOCK_LIMIT,
     "RLOCK_KEY=k|RLOCK_MODE=limit|RLOCK_LEASE_MS=1500|RLOCK_FENCE=18446744073709551615|RLOCK_SLOT="
     "7|"},
    {three, 3, LOCK_EXCLUSIVE,
     "RLOCK_KEY=k \303\274 a:b|RLOCK_MODE=exclusive|"
     "RLOCK_LEASE_MS=1500|RLOCK_FENCE=18446744073709551615 1 9007199254740991|"},
    {three, 3, LOCK_LIMIT,
     "RLOCK_KEY=k \303\274 a:b|RLOCK_MODE=limit|"
     "RLOCK_LEASE_MS=1500|RLOCK_FENCE=18446744073709551615 1 9007199254740991|RLOCK_SLOT=7 "
     "4000000000 1|"},
    {third, 3, LOCK_EXCLUSIVE,
     "RLOCK_KEY=a:b|RLOCK_MODE=exclusive|RLOCK_LEASE_MS=1500|RLOCK_FENCE=9007199254740991|"},
    {third, 3, LOCK_LIMIT,
     "RLOCK_KEY=a:b|RLOCK_MODE=limit|RLOCK_LEASE_MS=1500|RLOCK_FENCE=9007199254740991|"
     "RLOCK_SLOT=1|"},
};

/* The command inherits what rlock has, but for rlock's own variables and passwords. */
static void test_inherited(size_t i)
{
    const struct acquire_request lock = {.keys = one, .key_count = 1, .owner = "o"};
    char text[200], got[400] = "", *out = got;
    char *inherited[20];
    size_t count = 0;
    struct environment environment;

    strcpy(text, rows[i].inherited);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        inherited[count++] = word;
    inherited[count] = NULL;
    environment_make(&environment, inherited, &lock, rows[i].passwords);
    for (char **entry = environment.entries; *entry; entry++)
        out += sprintf(out, "%s ", *entry);
    tap_is(got, rows[i].wanted, "environment_make", rows[i].inherited);
    environment_free(&environment);
}

/* Passwords are hidden where they stood, which /proc shows, and kept in copies. */
static void test_hidden(size_t i)
{
    char text[200], shown[400] = "", kept[400] = "", *out = shown, *also = kept;
    char *entries[20], *where[20];
    size_t count = 0;

    strcpy(text, hidden[i].given);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        where[count] = entries[count] = word, count++;
    entries[count] = NULL;
    environment_hide(entries);
    for (size_t j = 0; j < count; j++) {
        out += sprintf(out, "%s%s", j ? " " : "", where[j]);
        also += sprintf(also, "%s%s", j ? " " : "", entries[j]);
        if (entries[j] != where[j])
            free(entries[j]);
    }
    tap_is(shown, hidden[i].shown, "environment_hide", hidden[i].given);
    tap_is(kept, hidden[i].given, "environment_hide keeps", hidden[i].given);
}

/* The variables of a grant, without RLOCK_OWNER. */
static void test_granted(size_t i)
{
    const struct acquire_request lock = {.keys = granted[i].keys,
                                         .key_count = granted[i].count,
                                         .owner = "o",
                                         .mode = granted[i].mode};
    char *none[] = {NULL};
    char got[400] = "", *out = got;
    struct environment environment;

    environment_make(&environment, none, &lock, PASSWORDS_REMOVED);
    environment_grant(&environment, 1500 * NS_PER_MS,
                      granted[i].keys == third ? grants_of_third : grants);
    for (char **entry = environment.entries; *entry; entry++)
        if (strncmp(*entry, "RLOCK_OWNER", 11) != 0)
            out += sprintf(out, "%s|", *entry);
    tap_is(got, granted[i].wanted, "environment_grant", granted[i].wanted);
    environment_free(&environment);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_inherited(i);
    for (size_t i = 0; i < COUNT(hidden); i++)
        test_hidden(i);
    for (size_t i = 0; i < COUNT(granted); i++)
        test_granted(i);
    return tap_done();
}
