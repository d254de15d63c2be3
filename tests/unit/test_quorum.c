/* How votes are counted: all combinations for up to five nodes; doubtful votes; the
 * answers. And the reports of several nodes about their locks. */
#include "store/quorum/quorum.h"
#include "store/quorum/views.h"
#include "tap.h"

#define MOST 5

/* -- all votes ------------------------------------------------------------------------------- */

static const struct lock_grant seven[LOCK_KEYS_MAX] = {{.fence = 7}};
static const struct lock_party other = {.owner = "other"};
static struct lock_grant granted[LOCK_KEYS_MAX];

static const struct answer answers[] = {
    [VOTE_YES] = {.verdict = VERDICT_GRANTED, .granted.grants = seven},
    [VOTE_NO] = {.verdict = VERDICT_REFUSED, .cause = CAUSE_HELD, .refused.holder = &other},
    [VOTE_VOID] = {.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER},
    [VOTE_UNKNOWN] = {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .text = "gone"},
};

static void vote(struct quorum *quorum, enum quorum_rule rule, const enum vote *votes, size_t count)
{
    quorum_begin(quorum, rule, count, 30000);
    for (size_t i = 0; i < count; i++) {
        if (votes[i] != VOTE_NONE)
            quorum_cast(quorum, i, votes[i], NULL, &answers[votes[i]]);
    }
}

static size_t count_of(const enum vote *votes, size_t count, enum vote vote)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += votes[i] == vote;
    return found;
}

/* Invariants, whatever the nodes say. */
static const char *fault_of(enum quorum_rule rule, const enum vote *votes, size_t count)
{
    struct quorum quorum;
    struct answer answer;
    size_t majority = quorum_majority(count), yes = count_of(votes, count, VOTE_YES);

    vote(&quorum, rule, votes, count);
    enum quorum_outcome outcome = quorum_outcome(&quorum);
    if (rule != QUORUM_FREE && (outcome == QUORUM_CARRIED) != (yes >= majority))
        return "not as the majority says";
    size_t absent = count_of(votes, count, VOTE_NO) + count_of(votes, count, VOTE_VOID);
    if (rule == QUORUM_RETURN && (outcome == QUORUM_REFUSED) != (count - absent < majority))
        return "not lost where no majority has it";
    if (outcome == QUORUM_CARRIED && count_of(votes, count, VOTE_UNKNOWN) + majority > count)
        return "carried where no majority answers";
    quorum_answer(&quorum, outcome, &answer, granted);
    if ((answer.verdict == VERDICT_GRANTED) != (outcome == QUORUM_CARRIED) ||
        (answer.verdict == VERDICT_REFUSED) != (outcome == QUORUM_REFUSED))
        return "another answer";
    if (answer.verdict != VERDICT_GRANTED && answer.cause == CAUSE_NONE)
        return "for no cause";
    if (answer.verdict == VERDICT_UNKNOWN && !answer.text[0])
        return "for no reason";
    quorum_close(&quorum);
    return quorum_outcome(&quorum) == QUORUM_OPEN ? "open for ever" : NULL;
}

/* Once it is decided, those who are heard later do not change it. */
static bool is_final(enum quorum_rule rule, enum vote *votes, size_t count)
{
    struct quorum quorum;
    enum quorum_outcome before;

    vote(&quorum, rule, votes, count);
    before = quorum_outcome(&quorum);
    for (size_t i = 0; before != QUORUM_OPEN && i < count; i++) {
        if (votes[i] != VOTE_NONE)
            continue;
        for (int later = VOTE_YES; later <= VOTE_UNKNOWN; later++) {
            quorum_cast(&quorum, i, (enum vote)later, NULL, &answers[later]);
            if (quorum_outcome(&quorum) != before)
                return false;
        }
        vote(&quorum, rule, votes, count);
    }
    return true;
}

/* All combinations of votes of 2 to MOST nodes; a number in base five is one of them. */
static void test_all(enum quorum_rule rule, const char *name)
{
    for (size_t count = 2; count <= MOST; count++) {
        const char *fault = NULL;
        unsigned long total = 1, number = 0;

        for (size_t i = 0; i < count; i++)
            total *= 5;
        for (; number < total && !fault; number++) {
            enum vote votes[MOST];
            unsigned long rest = number;
            for (size_t i = 0; i < count; i++, rest /= 5)
                votes[i] = (enum vote)(rest % 5);
            fault = fault_of(rule, votes, count);
            bool held = rule != QUORUM_FREE && rule != QUORUM_READ;
            if (!fault && held && !is_final(rule, votes, count))
                fault = "decided, and then not so";
        }
        if (!tap_ok(!fault, "%s: all votes of %zu", name, count))
            tap_note("%s: votes %lu, in fives", fault, number - 1);
    }
}

/* -- who counts ------------------------------------------------------------------------------ */

/* Nodes that say YES, each with its memory and service in ms; lease 30 s. */
static const struct {
    const char *name;
    int64_t ages[3][2];
    enum quorum_outcome outcome;
    int64_t grace_ms; /* of a quorum that has failed */
} ages[] = {
    {"a quorum that is new", {{1, 1}, {1, 1}, {1, 1}}, QUORUM_CARRIED, 0},
    {"one that does not tell", {{0, 0}, {0, 0}, {0, 0}}, QUORUM_CARRIED, 0},
    {"first asked one after the other", {{90, 90}, {40, 40}, {1, 1}}, QUORUM_CARRIED, 0},
    {"an old one", {{90000, 90000}, {90000, 90000}, {90000, 90000}}, QUORUM_CARRIED, 0},
    {"one that forgot", {{90000, 90000}, {90000, 90000}, {1, 1}}, QUORUM_CARRIED, 0},
    {"two that forgot", {{90000, 90000}, {5000, 5000}, {1, 1}}, QUORUM_FAILED, 29999},
    {"two that restarted", {{90000, 90000}, {5000, 90000}, {1, 90000}}, QUORUM_FAILED, 29999},
    {"all restarted", {{1000, 90000}, {1000, 90000}, {1000, 90000}}, QUORUM_FAILED, 29000},
    {"longer ago than a lease", {{90000, 90000}, {30000, 30000}, {1, 1}}, QUORUM_CARRIED, 0},
    {"new ones that have been there", {{9000, 9000}, {60000, 1}, {60000, 1}}, QUORUM_CARRIED, 0},
};

/* Nodes that forgot or restarted within a lease before others do not count for a majority; then
 * the quorum says for how long. */
static void test_ages(void)
{
    for (size_t i = 0; i < COUNT(ages); i++) {
        struct quorum quorum;
        quorum_begin(&quorum, QUORUM_TAKE, 3, 30000);
        for (size_t node = 0; node < 3; node++) {
            struct member_report report = {.seniority = {.memory_ms = ages[i].ages[node][0],
                                                         .service_ms = ages[i].ages[node][1]}};
            quorum_cast(&quorum, node, VOTE_YES, &report, &answers[VOTE_YES]);
        }
        struct answer answer;
        quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
        tap_ok(quorum_outcome(&quorum) == ages[i].outcome && answer.grace_ms == ages[i].grace_ms,
               "%s", ages[i].name);
    }
}

/* A holder's lease that is longer than the one asked for may have been forgotten, too. */
static void test_longer_lease(void)
{
    static const struct member_report young = {.seniority = {40000, 40000}};
    static const struct member_report old = {.seniority = {90000, 90000}};
    struct answer no = answers[VOTE_NO];
    struct quorum quorum;

    no.refused.left_ms = 50000;
    quorum_begin(&quorum, QUORUM_TAKE, 3, 30000);
    quorum_cast(&quorum, 0, VOTE_YES, &young, &answers[VOTE_YES]);
    quorum_cast(&quorum, 1, VOTE_YES, &young, &answers[VOTE_YES]);
    tap_ok(quorum_outcome(&quorum) == QUORUM_CARRIED, "old enough for a lease of our length");
    quorum_cast(&quorum, 2, VOTE_NO, &old, &no);
    tap_ok(quorum_outcome(&quorum) == QUORUM_REFUSED, "not for one that somebody has");
}

/* -- one server, one vote -------------------------------------------------------------------- */

/* Which server each of three nodes is, as heard in this order, and says YES; NULL: it is silent. */
static const struct {
    const char *name, *servers[3];
    enum quorum_outcome outcome;
} twins[] = {
    {"two servers", {"a", "b", NULL}, QUORUM_CARRIED},
    {"one server as two nodes", {"a", "a", NULL}, QUORUM_FAILED},
    {"one server as two nodes, and another", {"a", "a", "b"}, QUORUM_CARRIED},
    {"one server as three nodes", {"a", "a", "a"}, QUORUM_FAILED},
    {"servers that do not tell", {"", "", NULL}, QUORUM_CARRIED},
};

/* One server by two addresses counts once, in whatever order the nodes answer, by each rule. */
static void test_twins(void)
{
    static const size_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    static const enum quorum_rule rules[] = {QUORUM_TAKE, QUORUM_KEEP, QUORUM_READ};

    for (size_t i = 0; i < COUNT(twins); i++) {
        size_t right = 0;
        for (size_t one = 0; one < COUNT(orders) * COUNT(rules); one++) {
            struct quorum quorum;
            quorum_begin(&quorum, rules[one % COUNT(rules)], 3, 30000);
            for (size_t heard = 0; heard < 3; heard++) {
                size_t node = orders[one / COUNT(rules)][heard];
                struct member_report report = {.sent = true};
                if (!twins[i].servers[heard])
                    continue;
                snprintf(report.server, sizeof report.server, "%s", twins[i].servers[heard]);
                quorum_cast(&quorum, node, VOTE_YES, &report, &answers[VOTE_YES]);
            }
            quorum_close(&quorum);
            right += quorum_outcome(&quorum) == twins[i].outcome;
        }
        tap_ok(right == COUNT(orders) * COUNT(rules), "%s", twins[i].name);
    }
}

/* -- what is answered ------------------------------------------------------------------------ */

/* The fences that the nodes grant, each with an n if the owner nests there, and the one that is
 * told. */
static const struct {
    const char *what;
    size_t nodes;
    const char *grants;
    uint64_t wanted;
} fences[] = {
    {"the highest fence", 3, "7 9 8", 9},
    {"the ancestor's fence before any other", 3, "7n 9 8", 7},
    /* One has executed the ancestor's own request late, with a later fence. */
    {"the fence that most know, not that of the first", 5, "9n 5n 5n 12", 5},
    {"the fence that most know, not that of the second", 5, "5n 9n 5n 12", 5},
    {"the fence that most know, not that of the third", 5, "5n 5n 9n 12", 5},
};

/* A grant has the highest fence of the nodes, or for a nested owner the one that most of them
 * know. */
static void test_fences(void)
{
    for (size_t i = 0; i < COUNT(fences); i++) {
        struct quorum quorum;
        struct answer answer;
        char *at = (char *)(uintptr_t)fences[i].grants; /* strtoul() goes from word to word */

        quorum_begin(&quorum, QUORUM_TAKE, fences[i].nodes, 30000);
        for (size_t node = 0; *at; node++) {
            struct lock_grant grants[LOCK_KEYS_MAX] = {{.fence = strtoul(at, &at, 10)}};
            struct answer yes = {.verdict = VERDICT_GRANTED, .granted.grants = grants};
            grants->nested = *at == 'n';
            at += grants->nested;
            quorum_cast(&quorum, node, VOTE_YES, NULL, &yes);
        }
        quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
        tap_ok(answer.granted.grants[0].fence == fences[i].wanted &&
                   answer.granted.grants[1].fence == 0,
               "%s", fences[i].what);
    }
}

/* Which of several nodes' failures the quorum reports: the most frequent one, the one that
 * decides, "full" only if a majority might be had, and a misfit only of a majority. */
static void test_reasons(void)
{
    struct answer denied = {.cause = CAUSE_DENIED, .verdict = VERDICT_UNKNOWN, .text = "no right"};
    struct answer misfit = {.cause = CAUSE_MISFIT, .verdict = VERDICT_REFUSED, .text = "a latch"};
    struct answer away = {.cause = CAUSE_UNREACHABLE, .verdict = VERDICT_UNKNOWN, .text = "gone"};
    struct answer full = {.cause = CAUSE_NOT_READY, .verdict = VERDICT_UNKNOWN, .full = true};
    struct quorum quorum;
    struct answer answer;

    quorum_begin(&quorum, QUORUM_TAKE, 3, 30000);
    quorum_cast(&quorum, 0, VOTE_UNKNOWN, NULL, &denied);
    quorum_cast(&quorum, 1, VOTE_UNKNOWN, NULL, &denied);
    quorum_close(&quorum);
    quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
    tap_is(answer.text, "no quorum, 3 of 3 servers failed: no right", "what most say", "");
    quorum_begin(&quorum, QUORUM_RETURN, 3, 30000);
    quorum_cast(&quorum, 0, VOTE_YES, NULL, &answers[VOTE_YES]);
    quorum_cast(&quorum, 1, VOTE_NO, NULL, &answers[VOTE_NO]);
    quorum_cast(&quorum, 2, VOTE_UNKNOWN, NULL, &away);
    quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
    tap_is(answer.text, "it may have been lost, 1 of 3 servers failed: gone",
           "one that is silent decides whether it was lost", "");
    for (size_t gone = 0; gone < 3; gone++) {
        quorum_begin(&quorum, QUORUM_TAKE, 3, 30000);
        for (size_t i = 0; i < 3; i++)
            quorum_cast(&quorum, i, i == 2 ? VOTE_YES : VOTE_UNKNOWN, NULL,
                        i == 2     ? &answers[VOTE_YES]
                        : i < gone ? &away
                                   : &full);
        quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
        tap_ok(answer.full == (gone < 2), "%zu full, %zu away: waited for like a queue", 2 - gone,
               gone);
    }
    quorum_begin(&quorum, QUORUM_TAKE, 3, 30000);
    quorum_cast(&quorum, 0, VOTE_NO, NULL, &misfit);
    quorum_cast(&quorum, 1, VOTE_NO, NULL, &answers[VOTE_NO]);
    quorum_cast(&quorum, 2, VOTE_NO, NULL, &answers[VOTE_NO]);
    quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
    tap_ok(answer.cause == CAUSE_HELD && strcmp(answer.refused.holder->owner, "other") == 0,
           "a misfit on one node does not end the wait");
    quorum_cast(&quorum, 1, VOTE_NO, NULL, &misfit);
    quorum_answer(&quorum, quorum_outcome(&quorum), &answer, granted);
    tap_ok(answer.cause == CAUSE_MISFIT, "misfits on two of three end it");
}

/* -- views ----------------------------------------------------------------------------------- */

/* Reports of nodes: "NODE KEY OWNER FENCE LEFT" each, "-" for no holder; and what is made of
 * it. */
static const struct {
    const char *name;
    const char *reports[4];
    size_t missing;
    bool clear;
    const char *wanted;
} views[] = {
    {"nothing", {NULL}, 0, true, ""},
    {"held by all", {"0 k a 7 90", "1 k a 7 80", "2 k a 7 70"}, 0, true, "k a 7 80; "},
    {"by a majority", {"0 k a 7 90", "2 k a 7 70"}, 0, true, "k a 7 70; "},
    {"by one of three", {"1 k a 7 90"}, 0, true, ""},
    {"by one, and one is missing", {"1 k a 7 90"}, 1, false, "k a 7 90; "},
    {"by two, and one is missing", {"0 k a 7 90", "1 k a 7 90"}, 1, true, "k a 7 90; "},
    {"two that try", {"0 k a 7 90", "1 k b 8 90"}, 0, true, ""},
    ROW("a fence that one has not heard of", {"0 k a 7 9", "1 k a 9 9", "2 k a 9 9"}, 0, true,
        "k a 9 9; "),
    ROW("sorted by key", {"0 l a 7 9", "0 k b 8 9", "1 l a 7 9", "1 k b 8 9"}, 0, true,
        "k b 8 9; l a 7 9; "),
    {"free, and asked for by name", {"0 named - 5 0", "1 named - 6 0"}, 0, true, "named - 6; "},
    {"no lock on most", {"0 named ! 0 0", "1 named - 5 0", "2 named ! 0 0"}, 0, true, "named !; "},
    {"no lock on one", {"0 named ! 0 0", "1 named - 5 0", "2 named - 6 0"}, 0, true, "named - 6; "},
    {"free, and not asked for", {"0 k - 5 0", "1 k - 6 0"}, 0, true, ""},
    {"no lock on most, and not asked for", {"0 k ! 0 0", "2 k ! 0 0"}, 0, true, "k !; "},
    {"no lock on one, and not asked for", {"0 k ! 0 0"}, 0, true, ""},
};

static void take(struct lock_views *all, const char *report)
{
    struct lock_party party = {.count = 1};
    struct lock_view view = {.holders = &party, .fence = 0};
    char key[20], owner[20];
    unsigned long fence, node; /* the list does not tell which one it was */

    if (sscanf(report, "%lu %19s %19s %lu %ld", &node, key, owner, &fence, &party.left_ms) != 5)
        abort();
    strcpy(party.owner, owner);
    party.fence = view.fence = fence;
    view.key = key;
    view.misfit = strcmp(owner, "!") == 0 ? "no lock" : NULL;
    view.holder_count = !view.misfit && strcmp(owner, "-") != 0;
    lock_views_add(all, &view);
}

static void show(void *arg, const struct lock_view *view)
{
    char *out = arg;

    out += strlen(out);
    if (view->misfit)
        sprintf(out, "%s !; ", view->key);
    else if (view->holder_count == 0)
        sprintf(out, "%s - %lu; ", view->key, (unsigned long)view->fence);
    else
        sprintf(out, "%s %s %lu %ld; ", view->key, view->holders->owner,
                (unsigned long)view->holders->fence, (long)view->holders->left_ms);
}

/* Three servers, of which some are silent ("missing"): a lock that a majority has is shown, and so
 * is one that the silent ones may have, too; only the latter is not clear. */
static void test_views(void)
{
    static const char *const patterns[] = {"*", "named"};

    for (size_t i = 0; i < COUNT(views); i++) {
        struct lock_views all = {0};
        char got[200] = "";
        struct survey_request request = {
            .patterns = patterns, .pattern_count = 2, .each = show, .each_arg = got};

        for (size_t r = 0; r < 4 && views[i].reports[r]; r++)
            take(&all, views[i].reports[r]);
        tap_ok(quorum_views_are_clear(&all, 3, views[i].missing) == views[i].clear, "%s: %s",
               views[i].name, views[i].clear ? "clear" : "not clear");
        quorum_views_report(&all, 3, views[i].missing, &request);
        tap_is(got, views[i].wanted, views[i].name, "");
        lock_views_free(&all);
    }
}

int main(void)
{
    test_all(QUORUM_TAKE, "take");
    test_all(QUORUM_KEEP, "keep");
    test_all(QUORUM_RETURN, "return");
    test_all(QUORUM_FREE, "free");
    test_all(QUORUM_READ, "read");
    test_ages();
    test_longer_lease();
    test_twins();
    test_fences();
    test_reasons();
    test_views();
    return tap_done();
}
