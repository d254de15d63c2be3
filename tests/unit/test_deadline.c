/* The deadline of a command: every combination of what a plan says and a guard knows, against a
 * table; and what both guards need of any answer. */
#include "run/deadline.h"

#include "run/fate.h"
#include "tap.h"

#define MS  NS_PER_MS
#define SEC NS_PER_SEC

/* The moments of a lease of 10 s that counts from 100 s, with 2 s between TERM and KILL. */
#define NOW   ((struct moment){0})
#define TERM  ((struct moment){100 * SEC + 7398 * MS})
#define KILL  ((struct moment){100 * SEC + 9398 * MS})
#define END   ((struct moment){100 * SEC + 9898 * MS})
#define SINCE ((struct awake){102 * SEC}) /* it is being ended; a second was suspended before */
#define UNTIL ((struct moment){105 * SEC})
#define NEVER MOMENT_NEVER

/* Columns: --on-lost (s: stop, c: continue, i: signal), renewed, cleared, dead, lost, silent,
 * paused. '*': either. The first row that fits counts. */
static const struct {
    const char *of;
    enum guard by;
    struct moment lost_at, kill_at;
} rows[] = {
    /* All is over. */
    {"**1****", GUARD_NONE, NEVER, NEVER},
    /* The supervisor's death ends the command, whatever --on-lost says. */
    {"**01***", GUARD_AGENT, NOW, KILL},
    /* The command continues without the lock, and is told of the loss once. */
    {"c1001**", GUARD_NONE, NEVER, NEVER},
    {"i1001**", GUARD_NONE, NEVER, NEVER},
    {"c1000**", GUARD_NONE, END, NEVER},
    {"i1000**", GUARD_NONE, TERM, NEVER},
    /* The command ends with the lock; so does each one with a fixed lease. */
    {"**0011*", GUARD_AGENT, NOW, KILL},
    {"**001*1", GUARD_AGENT, NOW, KILL},
    {"**00100", GUARD_SUPERVISOR, NOW, KILL},
    {"**0001*", GUARD_AGENT, TERM, KILL},
    {"**000*1", GUARD_AGENT, TERM, KILL},
    {"**00000", GUARD_SUPERVISOR, TERM, KILL},
};

static size_t row_of(const char *of)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t at = 0;
        while (of[at] && (rows[i].of[at] == '*' || rows[i].of[at] == of[at]))
            at++;
        if (!of[at])
            return i;
    }
    return COUNT(rows);
}

/* One combination of plan and state has the deadline of the row that it matches. The letters of
 * "of" are those of the table; "stopping": the end of the command has begun. */
static void check(const char *of, bool stopping)
{
    const struct job_plan plan = {.on_lost = of[0] == 's'   ? ON_LOST_STOP
                                             : of[0] == 'c' ? ON_LOST_CONTINUE
                                                            : ON_LOST_SIGNAL,
                                  .renew = of[1] == '1',
                                  .kill_after = 2 * SEC};
    const struct supervised known = {.lease = {END, 10 * SEC},
                                     .cleared = of[2] == '1',
                                     .dead = of[3] == '1',
                                     .lost = of[4] == '1',
                                     .silent = of[5] == '1',
                                     .paused = of[6] == '1',
                                     .stopping_since = stopping ? SINCE : (struct awake){0},
                                     .suspended = stopping ? SEC : 0};
    const struct deadline got = deadline_of(&plan, &known);
    size_t row = row_of(of);
    struct moment kill = rows[row].kill_at;

    if (stopping)
        kill = moment_min(kill, UNTIL);
    tap_ok(row < COUNT(rows) && got.by == rows[row].by && got.lost_at.ns == rows[row].lost_at.ns &&
               got.kill_at.ns == kill.ns,
           "%s%s", of, stopping ? ", being ended" : "");
}

int main(void)
{
    char of[8] = {0};

    for (unsigned bits = 0; bits < 3 * 128; bits++) {
        of[0] = "sci"[bits / 128];
        for (unsigned i = 0; i < 6; i++)
            of[i + 1] = bits >> i & 1 ? '1' : '0';
        check(of, bits >> 6 & 1);
    }
    tap_ok(fate_of_loss(true, RUN_CAUSE_NOT_RENEWED) == FATE_LOST &&
               fate_of_loss(false, RUN_CAUSE_NOT_RENEWED) == FATE_TIMED_OUT &&
               fate_of_loss(false, RUN_CAUSE_LOSS + LOSS_TAKEN) == FATE_LOST,
           "the end of a fixed lease is a time limit, any other loss is one");
    enum fate fate = FATE_NONE;
    tap_ok(fate_raise(&fate, FATE_TIMED_OUT) && fate_raise(&fate, FATE_LOST) &&
               !fate_raise(&fate, FATE_NOT_EXECUTED) && fate == FATE_LOST,
           "a loss counts, whatever comes before or after it");
    return tap_done();
}
