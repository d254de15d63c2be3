/* Which script each request calls, with which keys, and with which arguments in which order. */
#include "rules/arguments.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#define S(seconds) ((seconds)*NS_PER_SEC)

static const char *const keys[] = {"a", "b"};
static const struct lock_grant grants[] = {{.fence = 41, .slot = 0}, {.fence = 42, .slot = 3}};
static const uint64_t fences[] = {51, 52};

static const struct redis_terms plain;
static const struct redis_terms pausing = {.pauses = "p:!paused"};
static const struct redis_terms gracious = {
    .marker = "p:!epoch", .grace = true, .pauses = "p:!paused"};
/* One that has a marker, but is not asked about it: any server without grace. */
static const struct redis_terms marked = {.marker = "p:!epoch"};
static const struct redis_terms member = {.marker = "p:!quorum", .member = true};

static const struct member_terms nothing;
static const struct member_terms proposed = {.proposal = 77};
static const struct member_terms settled = {.proposal = 77, .fences = fences};

/* The call as "SCRIPT KEY… flags: ARGUMENT|ARGUMENT|…". */
static void print(const struct redis_call *call, char *out, size_t size)
{
    FILE *to = fmemopen(out, size, "w");

    fprintf(to, "%s", call->script->name);
    for (size_t i = 0; i < call->key_count; i++)
        fprintf(to, " %s", call->keys[i]);
    fprintf(to, "%s%s", call->ahead ? " ahead" : "", call->whole ? " whole" : "");
    if (call->db)
        fprintf(to, " db=%d", call->db);
    if (call->take)
        fprintf(to, " take=%zu", call->take);
    if (call->node_at)
        fprintf(to, " node@%zu", call->node_at);
    fprintf(to, ": ");
    for (size_t i = 0; i < call->argc; i++)
        fprintf(to, "%s%s", i ? "|" : "", call->argv[i]);
    fclose(to);
}

/* Frees the call. */
static void check(struct redis_call *call, const char *wanted, const char *what)
{
    char got[1000];

    print(call, got, sizeof got);
    if (!tap_ok(strcmp(got, wanted) == 0, "%s", what)) {
        tap_note("got    %s", got);
        tap_note("wanted %s", wanted);
    }
    redis_call_drop(call);
}

/* What is the same in all the requests about locks. */
#define COMPLETE(request)                                                                          \
    do {                                                                                           \
        (request)->keys = keys;                                                                    \
        (request)->key_count = (request)->key_count ? (request)->key_count : 1;                    \
        (request)->owner = "us";                                                                   \
        (request)->lease = (request)->lease ? (request)->lease : S(30);                            \
    } while (0)

/* -- acquire ----------------------------------------------------------------------------------- */

static const struct {
    const char *what;
    const struct redis_terms *terms;
    const struct member_terms *settled;
    bool offers;
    struct acquire_request request;
    const char *wanted;
} acquisitions[] = {
    {"a try",
     &plain,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|"},
    {"of two keys",
     &plain,
     &nothing,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead: us|30000|0|0||0|x|0|1|who|"},
    {"a place in the queue, and a call",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .listen = true},
     "acquire p:{a} ahead: us|30000|7000|0||1|x|0|1|who|"},
    {"a place, and never the lock",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .stand = true},
     "acquire p:{a} ahead: us|30000|-7000|0||0|x|0|1|who|"},
    {"part of a ms is none",
     &plain,
     &nothing,
     false,
     {.who = "who", .lease = 1999999},
     "acquire p:{a} ahead: us|1|0|0||0|x|0|1|who|"},
    {"not nested",
     &plain,
     &nothing,
     false,
     {.who = "who", .no_nesting = true},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|0|who|"},
    {"shared, which has no limit",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_SHARED, .limit = 4},
     "acquire p:{a} ahead: us|30000|0|0||0|s|0|1|who|"},
    {"a semaphore",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_LIMIT, .limit = 4},
     "acquire p:{a} ahead: us|30000|0|0||0|l|4|1|who|"},
    {"a semaphore of the limit that is stored",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_LIMIT},
     "acquire p:{a} ahead: us|30000|0|0||0|l|0|1|who|"},
    {"with a mirror",
     &plain,
     &nothing,
     false,
     {.who = "who", .mirror = "redlock:x"},
     "acquire p:{a} ahead: us|30000|0|0||0|x|redlock:x|1|who|"},
    {"all the notes",
     &plain,
     &nothing,
     false,
     {.who = "who",
      .queue = true,
      .group = "g",
      .replace = true,
      .priority = 9,
      .priority_bound = S(60),
      .take = 1,
      .key_count = 2},
     "acquire p:{a} p:{b} ahead take=1: us|30000|7000|0||0|x|0|1|"
     "who latest=g replace=1 priority=9 bound=60000 take=1/2|"},
    {"the group of the key's name",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .group = ""},
     "acquire p:{a} ahead: us|30000|7000|0||0|x|0|1|who latest=|"},
    {"no notes about a queue without one",
     &plain,
     &nothing,
     false,
     {.who = "who", .group = "g", .priority = 9, .priority_bound = S(60)},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|"},
    {"the usual bound is not told",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .priority_bound = LOCK_PRIORITY_BOUND_NS},
     "acquire p:{a} ahead: us|30000|7000|0||0|x|0|1|who|"},
    {"notes of nobody known",
     &plain,
     &nothing,
     false,
     {.who = "", .replace = true},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|- - - - - replace=1|"},
    {"nobody known",
     &plain,
     &nothing,
     false,
     {.who = ""},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1||"},
    {"where GLOBs may be paused",
     &pausing,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|p:!paused"},
    {"a marker that is not asked about",
     &marked,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|"},
    {"an offer",
     &pausing,
     &nothing,
     true,
     {.who = "who", .queue = true, .listen = true},
     "acquire p:{a} ahead: us|30000|7000|0||1|x|0|1|who|p:!paused|offer||9500"},
    {"unless it is done",
     &plain,
     &nothing,
     false,
     {.who = "who", .unless_done = S(3600)},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who||unless-done|3600000"},
    {"with grace",
     &gracious,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|p:!paused|grace|p:!epoch"},
    {"with grace, unless it is done",
     &gracious,
     &nothing,
     false,
     {.who = "who", .unless_done = S(1)},
     "acquire p:{a} ahead: us|30000|0|0||0|x|0|1|who|p:!paused|grace|p:!epoch|unless-done|1000"},
    {"a member",
     &member,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead node@13: us|30000|0|0||0|x|0|1|who||member|p:!quorum||0"},
    {"a member that is proposed a fence",
     &member,
     &proposed,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead node@13: us|30000|0|0||0|x|0|1|who||member|p:!quorum||77"},
    {"a member that is told the fences",
     &member,
     &settled,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead node@13: us|30000|0|0||0|x|0|1|who||member|p:!quorum||77|51|52"},
};

static void test_acquire(void)
{
    for (size_t i = 0; i < COUNT(acquisitions); i++) {
        struct acquire_request request = acquisitions[i].request;
        struct redis_call call = {.script = NULL};

        COMPLETE(&request);
        redis_call_acquire(&call, acquisitions[i].terms, "p", &request, acquisitions[i].settled,
                           acquisitions[i].offers);
        check(&call, acquisitions[i].wanted, acquisitions[i].what);
    }
}

/* -- renew, release ---------------------------------------------------------------------------- */

static const struct {
    const char *what;
    const struct redis_terms *terms;
    const struct member_terms *settled;
    struct renew_request request;
    const char *wanted;
} renewals[] = {
    {"a renewal", &plain, &nothing, {.key_count = 2}, "renew p:{a} p:{b} ahead: us|30000|0|0"},
    {"strict", &marked, &nothing, {.strict = true}, "renew p:{a} ahead: us|30000|1|0"},
    {"the first one of what was handed over",
     &plain,
     &nothing,
     {.handed = true},
     "renew p:{a} ahead: us|30000|0|0|handed"},
    {"with grace", &gracious, &nothing, {.who = "who"}, "renew p:{a}: us|30000|0|0|grace|p:!epoch"},
    {"with grace, and a claim",
     &gracious,
     &nothing,
     {.who = "who", .mode = LOCK_LIMIT, .limit = 4, .grants = grants, .key_count = 2},
     "renew p:{a} p:{b}: us|30000|0|0|grace|p:!epoch|l|4|who|41|0|42|3"},
    {"a member's",
     &member,
     &proposed,
     {.who = "who"},
     "renew p:{a} ahead node@6: us|30000|0|0|member|p:!quorum|"},
    {"a member's that is told the fences",
     &member,
     &settled,
     {.key_count = 2},
     "renew p:{a} p:{b} ahead node@6: us|30000|0|0|member|p:!quorum||51|52"},
};

static void test_renew(void)
{
    for (size_t i = 0; i < COUNT(renewals); i++) {
        struct renew_request request = renewals[i].request;
        struct redis_call call = {.script = NULL};

        COMPLETE(&request);
        redis_call_renew(&call, renewals[i].terms, "p", &request, renewals[i].settled);
        check(&call, renewals[i].wanted, renewals[i].what);
    }
}

static void test_renew_as_before(void)
{
    struct renew_request request = {.keys = keys, .key_count = 1, .owner = "us"};
    struct redis_call call = {.script = NULL};

    redis_call_renew(&call, &plain, "p", &request, &nothing);
    check(&call, "renew p:{a} ahead: us|0|0|0", "for as long as before");
}

static const struct {
    const char *what;
    const struct redis_terms *terms;
    struct release_request request;
    const char *wanted;
} releases[] = {
    {"a release", &marked, {.key_count = 2}, "release p:{a} p:{b} ahead: us|0|0|0|0|"},
    {"an uncertain one", &plain, {.uncertain = true}, "release p:{a} ahead: us|60000|0|0|0|"},
    {"not at once", &plain, {.at_least = S(5)}, "release p:{a} ahead: us|0|5000|0|0|"},
    {"a strict release", &plain, {.strict = true}, "release p:{a} ahead: us|0|0|0|1|"},
    {"in time, or not at all", &plain, {.in_time = true}, "release p:{a}: us|0|0|0|0|"},
    {"with grace", &gracious, {.strict = false}, "release p:{a} ahead: us|0|0|0|0||p:!epoch|30000"},
    {"a member's", &member, {.strict = false}, "release p:{a} ahead: us|0|0|0|0|"},
    {"it was no run",
     &plain,
     {.end = {.how = LOCK_UNUSED}},
     "release p:{a} ahead: us|0|0|0|0|unused=1"},
    {"it waited in vain",
     &plain,
     {.end = {.how = LOCK_REFUSED}},
     "release p:{a} ahead: us|0|0|0|0|refused=1"},
    {"it expired",
     &plain,
     {.end = {.how = LOCK_EXPIRED}},
     "release p:{a} ahead: us|0|0|0|0|expired=1"},
    {"the command has ended",
     &plain,
     {.end = {.known = true, .status = 3, .ran_ms = 1500}},
     "release p:{a} ahead: us|0|0|0|0|ran=1500 exit=3"},
    {"in less than a ms",
     &plain,
     {.end = {.known = true}},
     "release p:{a} ahead: us|0|0|0|0|ran=1 exit=0"},
    {"its time was up",
     &plain,
     {.end = {.how = LOCK_TIMED_OUT, .known = true, .signal = 15, .ran_ms = 20}},
     "release p:{a} ahead: us|0|0|0|0|timed=1 ran=20 signal=15"},
    {"the lock was lost",
     &plain,
     {.end = {.how = LOCK_LOST, .known = true, .signal = 9, .status = 1, .ran_ms = 20}},
     "release p:{a} ahead: us|0|0|0|0|lost=1 ran=20 signal=9"},
    {"it was taken away",
     &plain,
     {.end = {.how = LOCK_REVOKED, .known = true, .status = 1, .ran_ms = 20}},
     "release p:{a} ahead: us|0|0|0|0|revoked=1 ran=20 exit=1"},
};

static void test_release(void)
{
    for (size_t i = 0; i < COUNT(releases); i++) {
        struct release_request request = releases[i].request;
        struct redis_call call = {.script = NULL};

        COMPLETE(&request);
        redis_call_release(&call, releases[i].terms, "p", &request);
        check(&call, releases[i].wanted, releases[i].what);
    }
}

/* What is filled in when the call is sent, and what gives an acquisition back. */
static void test_places(void)
{
    struct acquire_request request = {.who = "who", .queue = true, .key_count = 2};
    struct renew_request renewal = {.key_count = 2};
    struct release_request release = {.key_count = 2};
    struct redis_call call = {.script = NULL}, back = {.script = NULL};

    COMPLETE(&request);
    COMPLETE(&renewal);
    COMPLETE(&release);
    redis_call_acquire(&call, &plain, "p", &request, &nothing, true);
    call.db = 5;
    redis_call_give_back(&back, &call);
    check(&back, "release p:{a} p:{b} whole db=5: us|0|0|0|0", "an acquisition is given back");
    redis_call_replace(&call, REDIS_ARGUMENT_NOT_AFTER, "LATEST");
    redis_call_replace(&call, REDIS_ARGUMENT_PLACES, "PLACES");
    redis_call_replace(&call, REDIS_ARGUMENT_TOKEN, "TOKEN");
    check(&call,
          "acquire p:{a} p:{b} ahead db=5: "
          "us|30000|7000|LATEST|PLACES|0|x|0|1|who||offer|TOKEN|9500",
          "where acquire.lua has what is filled in");
    redis_call_renew(&call, &member, "p", &renewal, &nothing);
    redis_call_replace(&call, REDIS_ARGUMENT_NOT_AFTER, "LATEST");
    redis_call_replace(&call, call.node_at, "NODE");
    check(&call, "renew p:{a} p:{b} ahead node@6: us|30000|0|LATEST|member|p:!quorum|NODE",
          "where renew.lua has it");
    redis_call_release(&call, &plain, "p", &release);
    redis_call_replace(&call, REDIS_ARGUMENT_NOT_AFTER, "LATEST");
    check(&call, "release p:{a} p:{b} ahead: us|0|0|LATEST|0|", "where release.lua has it");
    tap_ok(!call.script && !call.argc && !call.key_count && !call.node_at && !call.db,
           "a call that is dropped is empty");
}

/* -- force, adjust, latch, init ---------------------------------------------------------------- */

static void test_force(void)
{
    static const char *const owners[] = {"one", "other"};
    static const struct {
        const char *what;
        struct force_request request;
        const char *wanted;
    } rows[] = {
        {"force", {.by = "", .why = ""}, "force p:{a}: 0|now|"},
        {"force, two owners",
         {.by = "", .why = "", .owners = owners, .owner_count = 2},
         "force p:{a}: 0|now||one|other"},
        {"force, and the queue", {.by = "", .why = "", .purge = true}, "force p:{a}: 1|now|"},
        {"ask",
         {.how = FORCE_ASK, .by = "me@x pid 1", .why = "a b"},
         "force p:{a}: 0|ask|by=me@x%20pid%201 why=a%20b"},
        {"ask again",
         {.how = FORCE_ASK_AGAIN, .by = "me", .why = ""},
         "force p:{a}: 0|again|by=me"},
        {"asked over",
         {.how = FORCE_ASKED_OVER, .by = "", .why = "x", .owners = owners, .owner_count = 1},
         "force p:{a}: 0|over|why=x|one"},
        {"a mirror", {.mirror = "redlock:x"}, "unmirror p:{a}: redlock:x|"},
        {"a mirror with its token",
         {.mirror = "redlock:x", .owners = owners, .owner_count = 1, .purge = true},
         "unmirror p:{a}: redlock:x|one"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct force_request request = rows[i].request;
        struct redis_call call = {.script = NULL};

        request.key = "a";
        redis_call_force(&call, "p", &request);
        check(&call, rows[i].wanted, rows[i].what);
    }
}

static void test_adjust(void)
{
    static const struct {
        const char *what;
        const struct redis_terms *terms;
        struct adjust_request request;
        const char *wanted;
    } rows[] = {
        {"a limit",
         &pausing,
         {.key = "a", .what = ADJUST_LIMIT, .limit = 3},
         "adjust p:{a}: limit|3"},
        {"nobody", &plain, {.key = "a", .what = ADJUST_LIMIT}, "adjust p:{a}: limit|0"},
        {"no limit", &pausing, {.key = "a", .what = ADJUST_NO_LIMIT}, "adjust p:{a}: limit|"},
        {"a pause",
         &pausing,
         {.key = "a", .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "adjust p:{a}: pause|p:!paused|60000|who"},
        {"a pause without GLOBs",
         &plain,
         {.key = "a", .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "adjust p:{a}: pause||60000|who"},
        {"resume", &pausing, {.key = "a", .what = ADJUST_RESUME}, "adjust p:{a}: resume|p:!paused"},
        {"a pause of a GLOB",
         &pausing,
         {.key = "a b*", .glob = true, .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "pauses p:!paused: pause|p:{a b*}|60000|who glob=a%20b*"},
        {"a GLOB is resumed",
         &pausing,
         {.key = "a*", .glob = true, .what = ADJUST_RESUME},
         "pauses p:!paused: resume|p:{a*}"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct redis_call call = {.script = NULL};

        (rows[i].request.glob ? redis_call_pauses : redis_call_adjust)(&call, rows[i].terms, "p",
                                                                       &rows[i].request);
        check(&call, rows[i].wanted, rows[i].what);
    }
}

/* More about their arguments is in test_redis_latch. */
static void test_latch(void)
{
    static const struct {
        const char *what;
        struct latch_request request;
        const char *wanted;
    } rows[] = {
        {"look at a latch", {.verb = LATCH_LOOK}, "latch p:{a} ahead: latch|look"},
        {"list", {.verb = LATCH_LIST}, "latch p:{a} ahead: latch|list"},
        {"set",
         {.verb = LATCH_SET, .word = "w", .number = 3, .ttl = S(60)},
         "latch p:{a} ahead: latch|set|w|3|60000"},
        {"count",
         {.verb = LATCH_COUNT, .id = "i", .number = 2},
         "latch p:{a} ahead: latch|count|d:i|2|"},
        {"count without an id",
         {.verb = LATCH_COUNT, .id = "i", .unnamed = true, .word = "w", .number = 1},
         "latch p:{a} ahead: latch|count|r:i|1|w"},
        {"delete", {.verb = LATCH_DELETE}, "latch p:{a}: latch|delete"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct latch_request request = rows[i].request;
        struct redis_call call = {.script = NULL};

        request.key = "a";
        redis_call_latch(&call, "p", &request);
        check(&call, rows[i].wanted, rows[i].what);
    }
}

static void test_mark(void)
{
    struct redis_call call = {.script = NULL};

    redis_call_mark(&call, &gracious, &(struct mark_request){.force = false});
    check(&call, "init: p:!epoch|0", "a server that is new");
    redis_call_mark(&call, &gracious, &(struct mark_request){.force = true});
    check(&call, "init: p:!epoch|1", "any server");
}

int main(void)
{
    test_acquire();
    test_renew();
    test_renew_as_before();
    test_release();
    test_places();
    test_force();
    test_adjust();
    test_latch();
    test_mark();
    return tap_done();
}
