/* Which script each request calls, with which keys, and with which arguments. */
#include "rules/arguments.h"

#include "tap.h"

#define S(seconds) ((seconds)*NS_PER_SEC)

static const char *const keys[] = {"a", "b"};
static const struct lock_grant grants[] = {{.fence = 41, .slot = 0}, {.fence = 42, .slot = 3}};
static const uint64_t fences[] = {51, 52};

static const struct redis_terms plain;
static const struct redis_terms hosted = {.has_host = true};
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
    for (size_t i = 0; i < call->mirror_count; i++)
        fprintf(to, " %s", call->mirrors[i]);
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

#define OR(given, usual) ((given) ? (given) : (usual))

/* A call that is wanted of a request. */
struct row {
    const char *what, *wanted;
    const struct redis_terms *terms;    /* NULL: plain */
    const struct member_terms *settled; /* NULL: nothing */
    bool offers;
    struct acquire_request acquire; /* of "who"; or the lock that is renewed or released */
    union {
        struct renew_request renew;
        struct release_request release;
        struct force_request force;
        struct adjust_request adjust;
        struct latch_request latch;
        struct mark_request mark;
    };
};

/* Fills in the call with what the row says. */
typedef void fill(struct redis_call *call, const struct row *row, const struct redis_terms *terms);

static void test(const struct row *rows, size_t count, fill *make)
{
    for (const struct row *row = rows; row < rows + count; row++) {
        struct redis_call call = {.script = NULL};

        make(&call, row, OR(row->terms, &plain));
        check(&call, row->wanted, row->what);
    }
}

/* Fills in what all locks have in common. */
static void complete(struct acquire_request *lock)
{
    lock->keys = keys;
    lock->key_count = OR(lock->key_count, 1);
    lock->owner = "us";
    lock->lease = OR(lock->lease, S(30));
}

#define TRY     "acquire p:{a} ahead: owner=us|lease=30000|who=who"
#define PLACE   TRY "|place_ttl=7000"
#define RENEW   "renew p:{a} ahead: owner=us|lease=30000"
#define RELEASE "release p:{a} ahead: owner=us"

/* -- acquire ----------------------------------------------------------------------------------- */

static const struct row acquisitions[] = {
    ROW("a try", TRY),
    ROW("of two keys", "acquire p:{a} p:{b} ahead: owner=us|lease=30000|who=who",
        .acquire.key_count = 2),
    ROW("a place in the queue, and a call", PLACE "|far_ttl=120000|count=1", .acquire.queue = true,
        .acquire.listen = true, .acquire.waited = S(1)),
    ROW("one of a crowd that may be served at once", PLACE "|count=1", .acquire.queue = true,
        .acquire.listen = true, .acquire.waited = S(1) - 1),
    ROW("a crowd before a database", PLACE "|far_ttl=120000|count=1", .terms = &hosted,
        .acquire.queue = true, .acquire.listen = true),
    ROW("a place, and never the lock", PLACE "|queue_only=1", .acquire.queue = true,
        .acquire.queue_only = true),
    ROW("part of a ms is none", "acquire p:{a} ahead: owner=us|lease=1|who=who",
        .acquire.lease = 1999999),
    ROW("not nested", TRY "|no_nesting=1", .acquire.no_nesting = true),
    ROW("shared, which has no limit", TRY "|mode=s", .acquire.mode = LOCK_SHARED,
        .acquire.limit = 4),
    ROW("a semaphore", TRY "|mode=l|limit=4", .acquire.mode = LOCK_LIMIT, .acquire.limit = 4),
    ROW("a semaphore of the limit that is stored", TRY "|mode=l", .acquire.mode = LOCK_LIMIT),
    ROW("with a mirror",
        "acquire p:{a} x:y ahead: owner=us|lease=30000|who=who|mirror=string:x:y|mirrors=1",
        .acquire.mirror = "string:x:y"),
    ROW("with a row of ShedLock's table",
        "acquire p:{a} \1shedlock:x ahead: "
        "owner=us|lease=30000|who=who|mirror=shedlock:x|mirrors=1",
        .acquire.mirror = "shedlock:x"),
    ROW("all the options of a place",
        "acquire p:{a} p:{b} ahead take=1: "
        "owner=us|lease=30000|who=who|place_ttl=7000|priority=9|latest=g|bound=60000|replace=1|"
        "take=1/2",
        .acquire.queue = true, .acquire.group = "g", .acquire.replace = true, .acquire.priority = 9,
        .acquire.priority_bound = S(60), .acquire.take = 1, .acquire.key_count = 2),
    ROW("the group of the key's name", PLACE "|latest=", .acquire.queue = true,
        .acquire.group = ""),
    ROW("no options of a place without one, but the priority", TRY "|priority=9",
        .acquire.group = "g", .acquire.priority = 9, .acquire.priority_bound = S(60)),
    ROW("the usual bound is not told", PLACE, .acquire.queue = true,
        .acquire.priority_bound = LOCK_PRIORITY_BOUND_NS),
    ROW("options of an unknown client", "acquire p:{a} ahead: owner=us|lease=30000|replace=1",
        .acquire.who = "", .acquire.replace = true),
    ROW("an unknown client", "acquire p:{a} ahead: owner=us|lease=30000", .acquire.who = ""),
    ROW("where GLOBs may be paused", TRY "|pauses=p:!paused", .terms = &pausing),
    ROW("a marker that is not asked about", TRY, .terms = &marked),
    ROW("an offer", PLACE "|far_ttl=120000|count=1|pauses=p:!paused|accept_ms=9500",
        .terms = &pausing, .offers = true, .acquire.queue = true, .acquire.listen = true,
        .acquire.waited = S(1)),
    ROW("unless it is done", TRY "|unless_done=3600000", .acquire.unless_done = S(3600)),
    ROW("with grace", TRY "|pauses=p:!paused|epoch=p:!epoch", .terms = &gracious),
    ROW("with grace, unless it is done", TRY "|unless_done=1000|pauses=p:!paused|epoch=p:!epoch",
        .terms = &gracious, .acquire.unless_done = S(1)),
    ROW("a member", "acquire p:{a} ahead server: owner=us|lease=30000|who=who|member=p:!quorum",
        .terms = &member),
    ROW("a member that is proposed a fence",
        "acquire p:{a} p:{b} ahead server: "
        "owner=us|lease=30000|who=who|member=p:!quorum|proposal=77",
        .terms = &member, .settled = &proposed, .acquire.key_count = 2),
    ROW("a member that is told the fences",
        "acquire p:{a} p:{b} ahead server: owner=us|lease=30000|who=who|member=p:!quorum|fences=51 "
        "52|proposal=77",
        .terms = &member, .settled = &settled, .acquire.key_count = 2),
};

static void acquire(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct acquire_request request = row->acquire;

    complete(&request);
    request.who = OR(request.who, "who");
    redis_call_acquire(call, terms, "p", &request, OR(row->settled, &nothing), row->offers);
    const char *version = redis_call_get(call, "version");
    if (!version || strcmp(version, PACKAGE_VERSION) != 0)
        redis_call_set(call, "version", "missing");
}

/* -- renew, release ---------------------------------------------------------------------------- */

static const struct row renewals[] = {
    ROW("a renewal", "renew p:{a} p:{b} ahead: owner=us|lease=30000", .acquire.key_count = 2),
    ROW("strict", RENEW "|strict=1", .terms = &marked, .renew.strict = true),
    ROW("the first one of what was handed over", RENEW "|handed=1", .renew.handed = true),
    ROW("with grace", "renew p:{a}: owner=us|lease=30000|epoch=p:!epoch", .terms = &gracious,
        .acquire.who = "who"),
    ROW("with grace, and a claim",
        "renew p:{a} p:{b}: owner=us|lease=30000|epoch=p:!epoch|mode=l|limit=4|who=who|fences=41 "
        "42|slots=0 3",
        .terms = &gracious, .acquire.who = "who", .acquire.mode = LOCK_LIMIT, .acquire.limit = 4,
        .renew.grants = grants, .acquire.key_count = 2),
    ROW("a member's", "renew p:{a} ahead server: owner=us|lease=30000|member=p:!quorum",
        .terms = &member, .settled = &proposed, .acquire.who = "who"),
    ROW("a member's that is told the fences",
        "renew p:{a} p:{b} ahead server: owner=us|lease=30000|member=p:!quorum|fences=51 52",
        .terms = &member, .settled = &settled, .acquire.key_count = 2),
};

static void renew(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct acquire_request lock = row->acquire;
    struct renew_request request = row->renew;

    complete(&lock);
    request.lock = &lock;
    redis_call_renew(call, terms, "p", &request, OR(row->settled, &nothing));
}

/* A renewal without a duration sends none: the lease stays as long as before. */
static void test_unchanged_lease(void)
{
    static const struct acquire_request lock = {.keys = keys, .key_count = 1, .owner = "us"};
    static const struct renew_request as_before = {.lock = &lock};
    struct redis_call call = {.script = NULL};

    redis_call_renew(&call, &plain, "p", &as_before, &nothing);
    check(&call, "renew p:{a} ahead: owner=us", "for as long as before");
}

static const struct row releases[] = {
    ROW("a release", "release p:{a} p:{b} ahead: owner=us", .terms = &marked,
        .acquire.key_count = 2),
    ROW("an uncertain one", RELEASE "|bar=60000", .release.uncertain = true),
    ROW("not at once", RELEASE "|at_least=5000", .release.at_least = S(5)),
    ROW("a strict release", RELEASE "|strict=1", .release.strict = true),
    ROW("in time, or not at all", "release p:{a}: owner=us", .release.in_time = true),
    ROW("with grace", RELEASE "|epoch=p:!epoch|lease=30000", .terms = &gracious),
    ROW("a member's", RELEASE, .terms = &member),
    ROW("it had no run", RELEASE "|notes=unused=1", .release.end.how = LOCK_UNUSED),
    ROW("it waited without success", RELEASE "|notes=refused=1", .release.end.how = LOCK_REFUSED),
    ROW("it expired", RELEASE "|notes=expired=1", .release.end.how = LOCK_EXPIRED),
    ROW("the command has ended", RELEASE "|notes=ran=1500 exit=3", .release.end.known = true,
        .release.end.status = 3, .release.end.ran_ms = 1500),
    ROW("in less than a ms", RELEASE "|notes=ran=1 exit=0", .release.end.known = true),
    ROW("its time was up", RELEASE "|notes=timed=1 ran=20 signal=15",
        .release.end.how = LOCK_TIMED_OUT, .release.end.known = true, .release.end.signal = 15,
        .release.end.ran_ms = 20),
    ROW("the lock was lost", RELEASE "|notes=lost=1 ran=20 signal=9", .release.end.how = LOCK_LOST,
        .release.end.known = true, .release.end.signal = 9, .release.end.status = 1,
        .release.end.ran_ms = 20),
    ROW("it was taken away", RELEASE "|notes=revoked=1 ran=20 exit=1",
        .release.end.how = LOCK_REVOKED, .release.end.known = true, .release.end.status = 1,
        .release.end.ran_ms = 20),
};

static void release(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct acquire_request lock = row->acquire;
    struct release_request request = row->release;

    complete(&lock);
    request.lock = &lock;
    redis_call_release(call, terms, "p", &request);
}

/* Arguments that are filled in when the call is sent, and the release of an acquisition. */
static void test_places(void)
{
    struct acquire_request request = {.who = "who", .queue = true, .key_count = 2};
    struct redis_call call = {.script = NULL}, back = {.script = NULL};

    complete(&request);
    redis_call_acquire(&call, &plain, "p", &request, &nothing, true);
    call.db = 5;
    redis_call_give_back(&back, &call);
    check(&back, "release p:{a} p:{b} whole db=5: owner=us", "an acquisition is released");
    redis_call_set(&call, "not_after", "LATEST");
    redis_call_set(&call, "places", "PLACES");
    redis_call_set(&call, "accept_by_message", "TOKEN");
    redis_call_set(&call, "accept_by_message", "OTHER");
    redis_call_set(&call, "places", NULL);
    redis_call_set(&call, "lease", NULL);
    check(&call,
          "acquire p:{a} p:{b} ahead db=5: "
          "owner=us|accept_by_message=OTHER|who=who|place_ttl=7000|accept_ms=9500|not_after=LATEST",
          "arguments that are filled in, once more, and taken out");
    redis_call_set(&call, "one", NULL);
    tap_ok(!redis_call_get(&call, "one"), "an argument that is not there");
    tap_ok(!call.script && !call.argc && !call.key_count && !call.names_server && !call.db,
           "a call that is dropped is empty");
}

/* -- force, adjust, latch, init ---------------------------------------------------------------- */

static const char *const owners[] = {"one", "other"};
static const struct row forces[] = {
    ROW("force", "force p:{a}: how=now"),
    ROW("force, two owners", "force p:{a}: how=now|owners=one other", .force.owners = owners,
        .force.owner_count = 2),
    ROW("force, and the queue", "force p:{a}: purge=1|how=now", .force.purge = true),
    ROW("ask", "force p:{a}: how=ask|notes=by=me@x%20pid%201 why=a%20b", .force.how = FORCE_ASK,
        .force.by = "me@x pid 1", .force.why = "a b"),
    ROW("ask again", "force p:{a}: how=again|notes=by=me", .force.how = FORCE_ASK_AGAIN,
        .force.by = "me"),
    ROW("asked over", "force p:{a}: how=over|notes=why=x|owners=one", .force.how = FORCE_ASKED_OVER,
        .force.why = "x", .force.owners = owners, .force.owner_count = 1),
    ROW("a server of a quorum", "force p:{a}: how=now|bar=60000", .terms = &member,
        .force.lease = S(60)),
    ROW("a server of a quorum that only asks", "force p:{a}: how=ask", .terms = &member,
        .force.how = FORCE_ASK, .force.lease = S(60)),
    ROW("a server of a quorum, of those that were asked", "force p:{a}: how=over|bar=60000",
        .terms = &member, .force.how = FORCE_ASKED_OVER, .force.lease = S(60)),
    ROW("any other server", "force p:{a}: how=now", .force.lease = S(60)),
    ROW("a mirror", "unmirror p:{a} x: mirror=redlock:x|mirrors=1", .force.mirror = "redlock:x"),
    ROW("a mirror with its token", "unmirror p:{a} x: mirror=redlock:x|mirrors=1|token=one",
        .force.mirror = "redlock:x", .force.owners = owners, .force.owner_count = 1,
        .force.purge = true),
};

static void force(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct force_request request = row->force;

    request.key = "a";
    request.by = OR(request.by, "");
    request.why = OR(request.why, "");
    redis_call_force(call, terms, "p", &request);
}

static const struct row adjustments[] = {
    ROW("a limit", "adjust p:{a}: what=limit|limit=3", .terms = &pausing,
        .adjust.what = ADJUST_LIMIT, .adjust.limit = 3),
    ROW("a limit of 0", "adjust p:{a}: what=limit|limit=0", .adjust.what = ADJUST_LIMIT),
    ROW("no limit", "adjust p:{a}: what=limit", .terms = &pausing, .adjust.what = ADJUST_NO_LIMIT),
    ROW("a pause", "adjust p:{a}: what=pause|pauses=p:!paused|ms=60000|who=who", .terms = &pausing,
        .adjust.what = ADJUST_PAUSE, .adjust.duration = S(60), .adjust.who = "who"),
    ROW("a pause without GLOBs", "adjust p:{a}: what=pause|ms=60000|who=who",
        .adjust.what = ADJUST_PAUSE, .adjust.duration = S(60), .adjust.who = "who"),
    ROW("resume", "adjust p:{a}: what=resume|pauses=p:!paused", .terms = &pausing,
        .adjust.what = ADJUST_RESUME),
    ROW("a pause of a GLOB",
        "pauses p:!paused: what=pause|glob=p:{a b*}|ms=60000|who=who glob=a%20b*",
        .terms = &pausing, .adjust.key = "a b*", .adjust.glob = true, .adjust.what = ADJUST_PAUSE,
        .adjust.duration = S(60), .adjust.who = "who"),
    ROW("a GLOB is resumed", "pauses p:!paused: what=resume|glob=p:{a*}", .terms = &pausing,
        .adjust.key = "a*", .adjust.glob = true, .adjust.what = ADJUST_RESUME),
    ROW("a minimum version", "pauses p:!paused: what=minimum|version=7.8.9", .terms = &pausing,
        .adjust.key = "*", .adjust.glob = true, .adjust.what = ADJUST_MINIMUM,
        .adjust.version = "7.8.9"),
};

static void adjust(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct adjust_request request = row->adjust;

    request.key = OR(request.key, "a");
    redis_call_adjust(call, terms, "p", &request);
}

static const struct row latches[] = {
    ROW("look at a latch", "latch p:{a} ahead: what=look", .latch.verb = LATCH_LOOK),
    ROW("list", "latch p:{a} ahead: what=list", .latch.verb = LATCH_LIST),
    ROW("set", "latch p:{a} ahead: what=set|number=3|word=w|ttl=60000", .latch.verb = LATCH_SET,
        .latch.word = "w", .latch.number = 3, .latch.ttl = S(60)),
    ROW("count", "latch p:{a} ahead: what=count|number=2|field=d:i", .latch.verb = LATCH_COUNT,
        .latch.id = "i", .latch.number = 2),
    ROW("count without an id", "latch p:{a} ahead: what=count|number=1|word=w|field=r:i",
        .latch.verb = LATCH_COUNT, .latch.id = "i", .latch.unnamed = true, .latch.word = "w",
        .latch.number = 1),
    ROW("delete", "latch p:{a}: what=delete", .latch.verb = LATCH_DELETE),
};

static void latch(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    struct latch_request request = row->latch;

    (void)terms;
    request.key = "a";
    redis_call_latch(call, "p", &request);
}

static const struct row marks[] = {
    ROW("a server that is new", "init: epoch=p:!epoch", .terms = &gracious),
    ROW("any server", "init: epoch=p:!epoch|force=1", .terms = &gracious, .mark.force = true),
};

static void mark(struct redis_call *call, const struct row *row, const struct redis_terms *terms)
{
    redis_call_mark(call, terms, &row->mark);
}

int main(void)
{
    test(acquisitions, COUNT(acquisitions), acquire);
    test(renewals, COUNT(renewals), renew);
    test_unchanged_lease();
    test(releases, COUNT(releases), release);
    test_places();
    test(forces, COUNT(forces), force);
    test(adjustments, COUNT(adjustments), adjust);
    test(latches, COUNT(latches), latch);
    test(marks, COUNT(marks), mark);
    return tap_done();
}
