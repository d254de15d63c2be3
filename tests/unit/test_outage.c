/* A store that fails, at the start and later: what may pass, and what the user is told of it. */
#include "lock/outage.h"

#include "fake_loop.h"
#include "tap.h"

#define LONGEST_NS (30 * NS_PER_SEC)

/* "steps": "MS WHAT" in order; WHAT is + an answer, p patient, q end, or a failure: ! refused,
 * . silent, ~ loading, a digit: itself, w not yet for 40 s, x denied, n no such host. "wanted":
 * what the user is told, and "over:" with the reason if the failure is the last. */
static const struct {
    const char *name;
    int server_wait_ms;
    const char *steps, *wanted;
} rows[] = {
    {"the first answer", 5000, "0 +", ""},
    {"away for a moment", 5000, "0 ! 900 +", ""},
    {"away for longer", 5000, "0 ! 2000 +", "away:refused back:2000 "},
    {"told once, with the latest reason", 5000, "0 ! 900 ~ 2000 ! 3000 +",
     "away:loading back:3000 "},
    {"silent", 5000, "4000 +", "away:no answer from the store yet back:4000 "},
    {"silent, then it says why, once", 5000, "3500 ! 4000 ~ 4500 +",
     "away:no answer from the store yet away:refused back:4500 "},
    {"silent, without a wait", 0, "4000 +", ""},
    {"away, without a wait", 0, "0 !", "over:refused "},
    {"away for too long", 5000, "0 ! 5000 ~", "away:refused over:loading, for 5s "},
    {"a reason after silence", 5000, "0 ~ 4000 ! 5000 .", "away:loading over:loading, for 5s "},
    {"denied", 5000, "0 x", "over:denied "},
    {"no such host", 5000, "0 n", "over:no such host "},
    {"the user has gone", 5000, "0 ! 500 q 3000 +", ""},

    {"later: each reason at once", 5000, "0 + 100 ! 200 ! 300 ~ 400 +",
     "away:refused away:loading back:300 "},
    {"later: each reason once, even if they take turns", 5000,
     "0 + 100 ! 200 . 300 ! 400 . 500 ~ 600 . 700 ! 800 +",
     "away:refused away:silent away:loading back:700 "},
    {"later: a server that goes away step by step is one reason", 5000, "0 + 1 s 2 r 3 f 4 ~ 5 +",
     "away:redis://h:1: silent away:loading back:4 "},
    {"later: eight reasons", 5000, "0 + 1 0 2 1 3 2 4 3 5 4 6 5 7 6 8 7 9 8 10 9 11 8 12 0 13 +",
     "away:0 away:1 away:2 away:3 away:4 away:5 away:6 away:7 back:12 "},
    {"later: reasons that take turns, anew after each answer", 5000,
     "0 + 100 ! 200 . 300 ! 400 + 500 . 600 ! 700 . 800 +",
     "away:refused away:silent back:300 away:silent away:refused back:300 "},
    {"later: anew after each answer", 5000, "0 + 100 ! 200 + 300 ! 500 +",
     "away:refused back:100 away:refused back:200 "},
    {"later: denied", 5000, "0 + 100 x", "over:denied "},
    {"later: no such host may pass", 5000, "0 + 100 n 200 +", "away:no such host back:100 "},
    {"later: given up so long after the first failure in a row", 5000,
     "0 + 20000 + 49999 ! 79998 . 79999 ~", "away:refused away:silent over:loading, for 30s "},
    {"later: a patient user waits for a store that is away", 5000, "0 p 0 + 100 ! 99999 ~ 200000 +",
     "away:refused away:loading back:199900 "},
    {"later: a patient user is not let wait for a store that denies", 5000, "0 p 0 + 100 ! 200 x",
     "away:refused over:denied "},
    {"at the start a patient user waits no longer", 5000, "0 p 0 ! 5000 ~",
     "away:refused over:loading, for 5s "},
    {"later: it says when it serves again", 5000, "0 + 20000 w 89999 ! 90000 !",
     "away:not yet away:refused over:not yet, for 1m10s "},
    {"at the start, its time to serve does not prolong the wait", 5000, "0 w 5000 w",
     "away:not yet over:not yet, for 5s "},
    {"full at the start: given up so long after it was", 5000, "0 m 4900 m 34899 ! 34900 !",
     "away:full over:full, for 35s "},
    {"later: full", 5000, "0 + 20000 m 49000 m 78000 m 107999 ! 108000 !",
     "away:full away:refused over:full, for 1m28s "},
};

static const struct {
    char letter;
    struct answer why;
} failures[] = {
    ROW('!', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE, .why.text = "refused"),
    ROW('.', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE, .why.text = "silent"),
    ROW('s', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE,
        .why.text = "redis://h:1: silent"),
    ROW('r', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE,
        .why.text = "cannot reach redis://h:1: reset"),
    ROW('f', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE,
        .why.text = "cannot reach redis://h:1: refused"),
    ROW('~', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_NOT_READY, .why.text = "loading"),
    ROW('w', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_NOT_READY, .why.grace_ms = 40000,
        .why.text = "not yet"),
    ROW('m', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_NOT_READY, .why.full = true,
        .why.text = "full"),
    ROW('x', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_DENIED, .why.text = "denied"),
    ROW('n', .why.verdict = VERDICT_UNKNOWN, .why.cause = CAUSE_UNREACHABLE, .why.nowhere = true,
        .why.text = "no such host"),
};

struct course {
    struct loop *loop;
    struct outage outage;
    struct moment begun;
    struct loop_timer step;
    const char *steps;
    char told[400];
};

static void tell(struct course *course, const char *what, const char *text)
{
    size_t used = strlen(course->told);

    snprintf(course->told + used, sizeof course->told - used, "%s:%s ", what, text);
}

static void on_trouble(void *arg, const struct answer *why)
{
    tell(arg, "away", why->text);
}

static void on_recovered(void *arg, int64_t after)
{
    char ms[24];

    snprintf(ms, sizeof ms, "%lld", (long long)(after / NS_PER_MS));
    tell(arg, "back", ms);
}

static void fail(struct course *course, struct moment now, const struct answer *why)
{
    if (why->full)
        outage_full(&course->outage, now);
    if (!outage_may_pass(&course->outage, now, why)) {
        tell(course, "over", outage_give_up(&course->outage, now, why)->text);
        return;
    }
    struct moment again = outage_note(&course->outage, now, why);
    if (again.ns <= now.ns || again.ns > now.ns + NS_PER_SEC)
        tell(course, "the next attempt", "too soon, or too late");
}

static void fail_with_digit(struct course *course, struct moment now, char digit)
{
    struct answer why;

    answer_fail(&why, CAUSE_UNREACHABLE, "%c", digit);
    fail(course, now, &why);
}

static void arm_step(struct course *course)
{
    char *end;
    long ms = strtol(course->steps, &end, 10);

    if (end == course->steps)
        return;
    course->steps = end + 1;
    loop_arm(course->loop, &course->step, moment_plus(course->begun, ms * NS_PER_MS));
}

static void take_step(struct loop_timer *timer)
{
    struct course *course = timer->owner;
    struct moment now = loop_now(course->loop);
    char what = *course->steps++;

    if (what == '+')
        outage_answered(&course->outage, now);
    else if (what == 'p')
        course->outage.patient = true;
    else if (what == 'q')
        outage_end(&course->outage);
    for (size_t i = 0; i < COUNT(failures); i++)
        if (failures[i].letter == what)
            fail(course, now, &failures[i].why);
    if (what >= '0' && what <= '9')
        fail_with_digit(course, now, what);
    arm_step(course);
}

/* The steps of a course make the outage tell what the row wants, in that order. */
static void test_course(size_t i)
{
    static const struct outage_events events = {on_trouble, on_recovered};
    struct course course = {.loop = loop_new(), .steps = rows[i].steps};

    course.step = (struct loop_timer){.fire = take_step, .owner = &course};
    course.begun = loop_now(course.loop);
    outage_begin(&course.outage, course.loop, course.begun, rows[i].server_wait_ms * NS_PER_MS,
                 LONGEST_NS, &events, &course);
    arm_step(&course);
    for (bool turning = true; turning && course.step.armed;)
        turning = fake_turn(course.loop);
    outage_free(&course.outage);
    tap_is(course.told, rows[i].wanted, rows[i].name, rows[i].steps);
    loop_free(course.loop);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_course(i);
    return tap_done();
}
