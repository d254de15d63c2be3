/* What a command under a lock finds in its environment. */
#include "environment.h"

#include "tap.h"

#define OURS "RLOCK_KEY=k RLOCK_OWNER=o RLOCK_MODE=exclusive RLOCK_LEASE_MS=1500 "

/* Words are separated by one space. */
static const struct {
    const char *inherited;
    bool keep;
    const char *wanted;
} rows[] = {
    {"A=1 B=2", false, "A=1 B=2 " OURS},
    {"RLOCK_KEY=x RLOCK_MODE=x RLOCK_OWNER=x RLOCK_LEASE_MS=1 RLOCK_SLOT=2 RLOCK_FENCE=3 A=1",
     false, "A=1 " OURS},
    {"RLOCK_KEY=x A=1", true, "A=1 " OURS},
    {"RLOCK_KEYS=x RLOCK_FENCED=x RLOCK_PREFIX=p", false,
     "RLOCK_KEYS=x RLOCK_FENCED=x RLOCK_PREFIX=p " OURS},
    {"RLOCK_PASSWORD=p A=1", false, "A=1 " OURS},
    {"RLOCK_PASSWORD=p A=1", true, "RLOCK_PASSWORD=p A=1 " OURS},
    {"RLOCK_URL=redis://h/1", false, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://:p@h/1", false, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://:@h/1", false, "RLOCK_URL=redis://h/1 " OURS},
    {"RLOCK_URL=redis://u:p@h/1", false, "RLOCK_URL=redis://u:@h/1 " OURS},
    {"RLOCK_URL=unix://u:p@/s?db=1", false, "RLOCK_URL=unix://u:@/s?db=1 " OURS},
    {"RLOCK_URL=redis://u:p@h/1", true, "RLOCK_URL=redis://u:p@h/1 " OURS},
    {"RLOCK_URL=redis://:p@h RLOCK_URL=redis://:q@h", false, "RLOCK_URL=redis://h " OURS},
};

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[200], got[400] = "", *out = got;
        char *inherited[20];
        size_t count = 0;
        struct environment environment;

        strcpy(text, rows[i].inherited);
        for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
            inherited[count++] = word;
        inherited[count] = NULL;
        environment_make(&environment, inherited, "k", "o", 1500, rows[i].keep);
        for (char **entry = environment.entries; *entry; entry++)
            out += sprintf(out, "%s ", *entry);
        tap_is(got, rows[i].wanted, "environment_make", rows[i].inherited);
        environment_free(&environment);
    }
    return tap_done();
}
