/* Which script each request calls, with which keys, and with which arguments. */
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

/* Each acquisition has it. */
static bool is_own_version(const char *name, const char *value)
{
    return strcmp(name, "version") == 0 && strcmp(value, PACKAGE_VERSION) == 0;
}

/* The call as "SCRIPT KEY… flags: NAME=VALUE|…", without our version. */
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
    if (call->names_server)
        fprintf(to, " server");
    fprintf(to, ": ");
    for (size_t i = 0; i < call->argc; i += 2) {
        if (!is_own_version(call->argv[i], call->argv[i + 1]))
            fprintf(to, "%s%s=%s", i ? "|" : "", call->argv[i], call->argv[i + 1]);
    }
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

/* The request with the members that all of them share. */
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
     "acquire p:{a} ahead: owner=us|lease=30000|who=who"},
    {"of two keys",
     &plain,
     &nothing,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead: owner=us|lease=30000|who=who"},
    {"a place in the queue, and a call",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .listen = true},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|place_ttl=7000|far_ttl=120000|count=1"},
    {"a place, and never the lock",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .stand = true},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|place_ttl=7000|stand=1"},
    {"part of a ms is none",
     &plain,
     &nothing,
     false,
     {.who = "who", .lease = 1999999},
     "acquire p:{a} ahead: owner=us|lease=1|who=who"},
    {"not nested",
     &plain,
     &nothing,
     false,
     {.who = "who", .no_nesting = true},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|no_nesting=1"},
    {"shared, which has no limit",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_SHARED, .limit = 4},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|mode=s"},
    {"a semaphore",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_LIMIT, .limit = 4},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|mode=l|limit=4"},
    {"a semaphore of the limit that is stored",
     &plain,
     &nothing,
     false,
     {.who = "who", .mode = LOCK_LIMIT},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|mode=l"},
    {"with a mirror",
     &plain,
     &nothing,
     false,
     {.who = "who", .mirror = "redlock:x"},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|mirror=redlock:x"},
    {"all the options of a place",
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
     "acquire p:{a} p:{b} ahead take=1: "
     "owner=us|lease=30000|who=who|place_ttl=7000|latest=g|priority=9|bound=60000|replace=1|take=1/"
     "2"},
    {"the group of the key's name",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .group = ""},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|place_ttl=7000|latest="},
    {"no options of a place without one",
     &plain,
     &nothing,
     false,
     {.who = "who", .group = "g", .priority = 9, .priority_bound = S(60)},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who"},
    {"the usual bound is not told",
     &plain,
     &nothing,
     false,
     {.who = "who", .queue = true, .priority_bound = LOCK_PRIORITY_BOUND_NS},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|place_ttl=7000"},
    {"options of an unknown client",
     &plain,
     &nothing,
     false,
     {.who = "", .replace = true},
     "acquire p:{a} ahead: owner=us|lease=30000|replace=1"},
    {"an unknown client",
     &plain,
     &nothing,
     false,
     {.who = ""},
     "acquire p:{a} ahead: owner=us|lease=30000"},
    {"where GLOBs may be paused",
     &pausing,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|pauses=p:!paused"},
    {"a marker that is not asked about",
     &marked,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who"},
    {"an offer",
     &pausing,
     &nothing,
     true,
     {.who = "who", .queue = true, .listen = true},
     "acquire p:{a} ahead: "
     "owner=us|lease=30000|who=who|place_ttl=7000|far_ttl=120000|count=1|pauses=p:!paused|offer_ms="
     "9500"},
    {"unless it is done",
     &plain,
     &nothing,
     false,
     {.who = "who", .unless_done = S(3600)},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|unless_done=3600000"},
    {"with grace",
     &gracious,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead: owner=us|lease=30000|who=who|pauses=p:!paused|epoch=p:!epoch"},
    {"with grace, unless it is done",
     &gracious,
     &nothing,
     false,
     {.who = "who", .unless_done = S(1)},
     "acquire p:{a} ahead: "
     "owner=us|lease=30000|who=who|unless_done=1000|pauses=p:!paused|epoch=p:!epoch"},
    {"a member",
     &member,
     &nothing,
     false,
     {.who = "who"},
     "acquire p:{a} ahead server: owner=us|lease=30000|who=who|member=p:!quorum"},
    {"a member that is proposed a fence",
     &member,
     &proposed,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead server: owner=us|lease=30000|who=who|member=p:!quorum|proposal=77"},
    {"a member that is told the fences",
     &member,
     &settled,
     false,
     {.who = "who", .key_count = 2},
     "acquire p:{a} p:{b} ahead server: owner=us|lease=30000|who=who|member=p:!quorum|fences=51 "
     "52|proposal=77"},
};

static void test_acquire(void)
{
    for (size_t i = 0; i < COUNT(acquisitions); i++) {
        struct acquire_request request = acquisitions[i].request;
        struct redis_call call = {.script = NULL};

        COMPLETE(&request);
        redis_call_acquire(&call, acquisitions[i].terms, "p", &request, acquisitions[i].settled,
                           acquisitions[i].offers);
        const char *version = redis_call_get(&call, "version");
        if (!version || strcmp(version, PACKAGE_VERSION) != 0)
            redis_call_set(&call, "version", "missing");
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
    {"a renewal",
     &plain,
     &nothing,
     {.key_count = 2},
     "renew p:{a} p:{b} ahead: owner=us|lease=30000"},
    {"strict",
     &marked,
     &nothing,
     {.strict = true},
     "renew p:{a} ahead: owner=us|lease=30000|strict=1"},
    {"the first one of what was handed over",
     &plain,
     &nothing,
     {.handed = true},
     "renew p:{a} ahead: owner=us|lease=30000|handed=1"},
    {"with grace",
     &gracious,
     &nothing,
     {.who = "who"},
     "renew p:{a}: owner=us|lease=30000|epoch=p:!epoch"},
    {"with grace, and a claim",
     &gracious,
     &nothing,
     {.who = "who", .mode = LOCK_LIMIT, .limit = 4, .grants = grants, .key_count = 2},
     "renew p:{a} p:{b}: owner=us|lease=30000|epoch=p:!epoch|mode=l|limit=4|who=who|fences=41 "
     "42|slots=0 3"},
    {"a member's",
     &member,
     &proposed,
     {.who = "who"},
     "renew p:{a} ahead server: owner=us|lease=30000|member=p:!quorum"},
    {"a member's that is told the fences",
     &member,
     &settled,
     {.key_count = 2},
     "renew p:{a} p:{b} ahead server: owner=us|lease=30000|member=p:!quorum|fences=51 52"},
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
    check(&call, "renew p:{a} ahead: owner=us", "for as long as before");
}

static const struct {
    const char *what;
    const struct redis_terms *terms;
    struct release_request request;
    const char *wanted;
} releases[] = {
    {"a release", &marked, {.key_count = 2}, "release p:{a} p:{b} ahead: owner=us"},
    {"an uncertain one", &plain, {.uncertain = true}, "release p:{a} ahead: owner=us|bar=60000"},
    {"not at once", &plain, {.at_least = S(5)}, "release p:{a} ahead: owner=us|at_least=5000"},
    {"a strict release", &plain, {.strict = true}, "release p:{a} ahead: owner=us|strict=1"},
    {"in time, or not at all", &plain, {.in_time = true}, "release p:{a}: owner=us"},
    {"with grace",
     &gracious,
     {.strict = false},
     "release p:{a} ahead: owner=us|epoch=p:!epoch|lease=30000"},
    {"a member's", &member, {.strict = false}, "release p:{a} ahead: owner=us"},
    {"it had no run",
     &plain,
     {.end = {.how = LOCK_UNUSED}},
     "release p:{a} ahead: owner=us|notes=unused=1"},
    {"it waited without success",
     &plain,
     {.end = {.how = LOCK_REFUSED}},
     "release p:{a} ahead: owner=us|notes=refused=1"},
    {"it expired",
     &plain,
     {.end = {.how = LOCK_EXPIRED}},
     "release p:{a} ahead: owner=us|notes=expired=1"},
    {"the command has ended",
     &plain,
     {.end = {.known = true, .status = 3, .ran_ms = 1500}},
     "release p:{a} ahead: owner=us|notes=ran=1500 exit=3"},
    {"in less than a ms",
     &plain,
     {.end = {.known = true}},
     "release p:{a} ahead: owner=us|notes=ran=1 exit=0"},
    {"its time was up",
     &plain,
     {.end = {.how = LOCK_TIMED_OUT, .known = true, .signal = 15, .ran_ms = 20}},
     "release p:{a} ahead: owner=us|notes=timed=1 ran=20 signal=15"},
    {"the lock was lost",
     &plain,
     {.end = {.how = LOCK_LOST, .known = true, .signal = 9, .status = 1, .ran_ms = 20}},
     "release p:{a} ahead: owner=us|notes=lost=1 ran=20 signal=9"},
    {"it was taken away",
     &plain,
     {.end = {.how = LOCK_REVOKED, .known = true, .status = 1, .ran_ms = 20}},
     "release p:{a} ahead: owner=us|notes=revoked=1 ran=20 exit=1"},
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

/* Arguments that are filled in when the call is sent, and the release of an acquisition. */
static void test_places(void)
{
    struct acquire_request request = {.who = "who", .queue = true, .key_count = 2};
    struct redis_call call = {.script = NULL}, back = {.script = NULL};

    COMPLETE(&request);
    redis_call_acquire(&call, &plain, "p", &request, &nothing, true);
    call.db = 5;
    redis_call_give_back(&back, &call);
    check(&back, "release p:{a} p:{b} whole db=5: owner=us", "an acquisition is released");
    redis_call_set(&call, "not_after", "LATEST");
    redis_call_set(&call, "places", "PLACES");
    redis_call_set(&call, "offer", "TOKEN");
    redis_call_set(&call, "offer", "OTHER");
    redis_call_set(&call, "places", NULL);
    redis_call_set(&call, "lease", NULL);
    check(&call,
          "acquire p:{a} p:{b} ahead db=5: "
          "owner=us|offer=OTHER|who=who|place_ttl=7000|offer_ms=9500|not_after=LATEST",
          "arguments that are filled in, once more, and taken out");
    redis_call_set(&call, "one", NULL);
    tap_ok(!redis_call_get(&call, "one"), "an argument that is not there");
    tap_ok(!call.script && !call.argc && !call.key_count && !call.names_server && !call.db,
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
        {"force", {.by = "", .why = ""}, "force p:{a}: how=now"},
        {"force, two owners",
         {.by = "", .why = "", .owners = owners, .owner_count = 2},
         "force p:{a}: how=now|owners=one other"},
        {"force, and the queue",
         {.by = "", .why = "", .purge = true},
         "force p:{a}: purge=1|how=now"},
        {"ask",
         {.how = FORCE_ASK, .by = "me@x pid 1", .why = "a b"},
         "force p:{a}: how=ask|notes=by=me@x%20pid%201 why=a%20b"},
        {"ask again",
         {.how = FORCE_ASK_AGAIN, .by = "me", .why = ""},
         "force p:{a}: how=again|notes=by=me"},
        {"asked over",
         {.how = FORCE_ASKED_OVER, .by = "", .why = "x", .owners = owners, .owner_count = 1},
         "force p:{a}: how=over|notes=why=x|owners=one"},
        {"a mirror", {.mirror = "redlock:x"}, "unmirror p:{a}: mirror=redlock:x"},
        {"a mirror with its token",
         {.mirror = "redlock:x", .owners = owners, .owner_count = 1, .purge = true},
         "unmirror p:{a}: mirror=redlock:x|token=one"},
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
         "adjust p:{a}: what=limit|limit=3"},
        {"nobody", &plain, {.key = "a", .what = ADJUST_LIMIT}, "adjust p:{a}: what=limit|limit=0"},
        {"no limit", &pausing, {.key = "a", .what = ADJUST_NO_LIMIT}, "adjust p:{a}: what=limit"},
        {"a pause",
         &pausing,
         {.key = "a", .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "adjust p:{a}: what=pause|pauses=p:!paused|ms=60000|who=who"},
        {"a pause without GLOBs",
         &plain,
         {.key = "a", .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "adjust p:{a}: what=pause|ms=60000|who=who"},
        {"resume",
         &pausing,
         {.key = "a", .what = ADJUST_RESUME},
         "adjust p:{a}: what=resume|pauses=p:!paused"},
        {"a pause of a GLOB",
         &pausing,
         {.key = "a b*", .glob = true, .what = ADJUST_PAUSE, .duration = S(60), .who = "who"},
         "pauses p:!paused: what=pause|glob=p:{a b*}|ms=60000|who=who glob=a%20b*"},
        {"a GLOB is resumed",
         &pausing,
         {.key = "a*", .glob = true, .what = ADJUST_RESUME},
         "pauses p:!paused: what=resume|glob=p:{a*}"},
        {"a minimum version",
         &pausing,
         {.key = "*", .glob = true, .what = ADJUST_MINIMUM, .version = "7.8.9"},
         "pauses p:!paused: what=minimum|version=7.8.9"},
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
        {"look at a latch", {.verb = LATCH_LOOK}, "latch p:{a} ahead: what=look"},
        {"list", {.verb = LATCH_LIST}, "latch p:{a} ahead: what=list"},
        {"set",
         {.verb = LATCH_SET, .word = "w", .number = 3, .ttl = S(60)},
         "latch p:{a} ahead: what=set|number=3|word=w|ttl=60000"},
        {"count",
         {.verb = LATCH_COUNT, .id = "i", .number = 2},
         "latch p:{a} ahead: what=count|number=2|field=d:i"},
        {"count without an id",
         {.verb = LATCH_COUNT, .id = "i", .unnamed = true, .word = "w", .number = 1},
         "latch p:{a} ahead: what=count|number=1|word=w|field=r:i"},
        {"delete", {.verb = LATCH_DELETE}, "latch p:{a}: what=delete"},
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
    check(&call, "init: epoch=p:!epoch", "a server that is new");
    redis_call_mark(&call, &gracious, &(struct mark_request){.force = true});
    check(&call, "init: epoch=p:!epoch|force=1", "any server");
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
