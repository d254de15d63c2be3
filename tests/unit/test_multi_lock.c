/* Locks over several keys, over simulated stores that take one key each: owners that want keys
 * which others want too. Whatever answers are late or missing, an owner that was told it has a lock
 * has all keys, one that was refused has none, and each gets its turn. */
#include "store/cluster/multi_lock.h"

#include "chance.h"
#include "fake_loop.h"
#include "keepers.h"
#include "store/store.h"
#include "tap.h"

/* -- the server and connections to it --------------------------------------------------------- */

/* A lock server that is simulated, for stores above those that take one key at a time, and
 * connections to it, which are such stores. An answer takes up to 5 ms. */
#define SIM_KEYS   4 /* their names are "a" to "d" */
#define SIM_OWNERS 5
#define SIM_LINKS  (8 * SIM_OWNERS) /* connections at a time */
#define LATE_MS    50               /* by which a request whose process has died may be late */

/* One key: its holder, and its waiters in the order of arrival. Owners are told
 * apart by their address. */
struct sim_key {
    const char *name;
    const char *holder; /* NULL: none */
    const char *queue[SIM_OWNERS];
    size_t waiting;
    unsigned released[SIM_OWNERS]; /* by that owner: the number of its latest release */
    unsigned barred[SIM_OWNERS];   /* its requests up to that number */
};

struct sim_server {
    struct loop *loop;
    unsigned seed;
    bool has_queue;
    unsigned silent; /* of 100 answers, so many are lost */
    unsigned dying;  /* of 100 acquisitions, so many have their process die soon */
    unsigned sent;   /* requests */
    struct sim_key keys[SIM_KEYS];
    struct sim_link *links[SIM_LINKS];
    const char *fault; /* NULL: none */
};

/* With queues, and all is answered. */
static void sim_server_begin(struct sim_server *server, unsigned seed)
{
    static const char *const names[SIM_KEYS] = {"a", "b", "c", "d"};

    *server = (struct sim_server){.loop = loop_new(), .seed = seed, .has_queue = true};
    for (size_t i = 0; i < SIM_KEYS; i++)
        server->keys[i].name = names[i];
}

static struct sim_key *sim_find_key(struct sim_server *server, const char *name)
{
    for (size_t i = 0; i < SIM_KEYS; i++) {
        if (strcmp(server->keys[i].name, name) == 0)
            return &server->keys[i];
    }
    abort();
}

static size_t place_of(const struct sim_key *key, const char *owner)
{
    size_t place = 0;

    while (place < key->waiting && key->queue[place] != owner)
        place++;
    return place;
}

static bool leave_queue(struct sim_key *key, const char *owner)
{
    size_t place = place_of(key, owner);

    if (place == key->waiting)
        return false;
    key->waiting--;
    for (; place < key->waiting; place++)
        key->queue[place] = key->queue[place + 1];
    return true;
}

static bool leave(struct sim_key *key, const char *owner)
{
    bool held = key->holder == owner;

    if (held)
        key->holder = NULL;
    return leave_queue(key, owner) || held;
}

static const struct lock_grant fence_1[LOCK_KEYS_MAX] = {{.fence = 1}};

static void acquire_key(const struct sim_server *server, struct sim_key *key, const char *owner,
                        const struct acquire_request *request, struct answer *answer)
{
    size_t place = place_of(key, owner);
    bool first = key->waiting == 0 || place == 0;
    bool queue_only = request->queue_only && server->has_queue;

    if (key->holder == owner || (!queue_only && !key->holder && first)) {
        leave_queue(key, owner);
        key->holder = owner;
        *answer = (struct answer){.verdict = VERDICT_GRANTED, .granted.grants = fence_1};
        return;
    }
    if (server->has_queue && (request->queue || queue_only) && place == key->waiting)
        key->queue[key->waiting++] = owner;
    *answer = (struct answer){.verdict = VERDICT_REFUSED,
                              .cause = CAUSE_HELD,
                              .refused.holders = key->holder != NULL,
                              .refused.position = (int64_t)place + server->has_queue};
}

/* -- a store that takes one key -------------------------------------------------------------- */

struct sim_link {
    struct store base;
    struct sim_server *server;
    size_t number;
    const char *owner;
    struct loop_timer timer;
    bool busy;
    enum store_verb verb;
    unsigned sent; /* the number of the request */
    bool uncertain;
    struct acquire_request request;
    struct sim_key *key;
    store_done *done;
    void *arg;
    struct sim_key *listens_to; /* NULL: nothing */
};

/* The first waiter is woken, if it listens and is not asking already. Where there is no
 * queue, all are that listen. */
static void call_first(struct sim_server *server, const struct sim_key *key)
{
    if (key->holder || (server->has_queue && key->waiting == 0))
        return;
    for (size_t i = 0; i < SIM_LINKS; i++) {
        struct sim_link *link = server->links[i];
        if (link && link->listens_to == key && !link->busy &&
            (!server->has_queue || link->owner == key->queue[0]))
            store_changed(&link->base);
    }
}

/* Owners are named "o0", "o1" ... */
static size_t number_of(const char *owner)
{
    return (size_t)(owner[1] - '0');
}

static bool release(const struct sim_link *link)
{
    size_t owner = number_of(link->owner);

    link->key->released[owner] = link->sent;
    if (link->uncertain)
        link->key->barred[owner] = link->sent;
    return leave(link->key, link->owner);
}

static void drop_link(struct sim_link *link)
{
    loop_disarm(link->server->loop, &link->timer);
    link->server->links[link->number] = NULL;
    free(link);
}

/* A request whose process has died arrives at last. The next process asks for the lock or releases
 * it. If it has done so before, no process would know of a grant. */
static void arrive_late(struct loop_timer *timer)
{
    struct sim_link *link = timer->owner;
    struct sim_key *key = link->key;
    size_t owner = number_of(link->owner);
    bool is_free = !key->holder && key->waiting == 0;

    if (is_free && key->released[owner] > link->sent && key->barred[owner] < link->sent)
        link->server->fault = "a dead process's request is granted after the release";
    drop_link(link);
}

static void obey(struct loop_timer *timer)
{
    static const struct answer mute = {
        .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true};
    struct sim_link *link = timer->owner;
    struct sim_server *at = link->server;
    struct sim_key *key = link->key;
    struct answer answer = {.verdict = VERDICT_GRANTED, .granted.grants = fence_1};
    bool changed = false;

    link->busy = false;
    if (link->verb == VERB_ACQUIRE) {
        acquire_key(at, key, link->owner, &link->request, &answer);
        bool listens = link->request.listen && answer.verdict == VERDICT_REFUSED;
        link->listens_to = listens ? key : NULL;
    } else if (link->verb == VERB_RENEW ? key->holder != link->owner : !(changed = release(link))) {
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    }
    link->done(link->arg, chance(&at->seed, 100) < at->silent ? &mute : &answer);
    if (changed)
        call_first(at, key);
}

static void start(struct store *base, const struct operation *operation)
{
    struct sim_link *link = (struct sim_link *)base;

    if (link->busy)
        link->server->fault = "the store was asked while it was busy";
    link->busy = true;
    link->verb = operation->verb;
    link->sent = ++link->server->sent;
    link->uncertain = link->verb == VERB_RELEASE && operation->release->uncertain;
    link->request = *operation_lock(operation);
    if (link->request.key_count != 1)
        link->server->fault = "the store was asked about several keys at once";
    link->key = sim_find_key(link->server, link->request.keys[0]);
    link->done = operation->done;
    link->arg = operation->arg;
    int64_t trip = (1 + chance(&link->server->seed, 5)) * NS_PER_MS;
    loop_arm(link->server->loop, &link->timer, moment_plus(loop_now(link->server->loop), trip));
}

static void close_link(struct store *base)
{
    struct sim_link *link = (struct sim_link *)base;

    if (link->busy && link->verb == VERB_ACQUIRE) {
        int64_t late = chance(&link->server->seed, LATE_MS) * NS_PER_MS;
        link->timer.fire = arrive_late;
        loop_arm(link->server->loop, &link->timer, moment_plus(link->timer.due, late));
        link->listens_to = NULL;
        return;
    }
    drop_link(link);
}

/* A connection. owner: borrowed. */
static struct store *sim_connect(struct sim_server *server, const char *owner)
{
    static const struct store_ops ops = {close_link, start, NULL};
    struct sim_link *link = calloc(1, sizeof *link);

    if (!link)
        abort();
    *link = (struct sim_link){.base = {.ops = &ops}, .server = server, .owner = owner};
    link->timer = (struct loop_timer){.fire = obey, .owner = link};
    while (server->links[link->number])
        link->number++;
    server->links[link->number] = link;
    return &link->base;
}

/* -- one who takes locks, again and again ------------------------------------------------------ */

#define OWNERS     4
#define LEASE_NS   (30 * NS_PER_SEC)
#define TIMEOUT    NS_PER_SEC /* for one operation */
#define HOLD_NS    (20 * NS_PER_MS)
#define SEEDS      200
#define TURNS_MOST 200000

static struct sim_server server;

struct taker {
    const char *keys[SIM_KEYS + 1]; /* up to NULL */
    char owner[8];
    struct store *store;
    struct acquire_request acquire;
    struct release_request release;
    struct loop_timer timer, death;
    enum { TRYING, HOLDING, RELEASING } state;
    bool busy;
    bool replaced;       /* its process has died, and the next one has had no answer yet */
    struct moment doubt; /* requests of that one may be executed until then */
    unsigned turns;      /* how often it had the lock */
};

static struct acquire_request request_of(const struct taker *taker)
{
    struct acquire_request request = {.keys = taker->keys,
                                      .owner = taker->owner,
                                      .mode = LOCK_EXCLUSIVE,
                                      .lease = LEASE_NS,
                                      .who = "",
                                      .queue = true,
                                      .listen = true};

    while (taker->keys[request.key_count])
        request.key_count++;
    return request;
}

/* How many of its keys it holds. */
static size_t count_held(const struct taker *taker)
{
    size_t held = 0;

    for (size_t i = 0; taker->keys[i]; i++)
        held += sim_find_key(&server, taker->keys[i])->holder == taker->owner;
    return held;
}

/* Places may be left at keys up to the one that is waited for, and not beyond. */
static void check_refusal(const struct taker *taker, const struct answer *answer)
{
    const char *waits = taker->keys[answer->refused.key];

    if (count_held(taker) > 0)
        server.fault = "refused, and holds a key";
    for (size_t i = 0; taker->keys[i]; i++) {
        const struct sim_key *key = sim_find_key(&server, taker->keys[i]);
        if (place_of(key, taker->owner) < key->waiting && strcmp(key->name, waits) > 0)
            server.fault = "in the queue of a key beyond the one that it waits for";
    }
}

static void go_on(struct taker *taker, int64_t ns)
{
    loop_arm(server.loop, &taker->timer, moment_plus(loop_now(server.loop), ns));
}

static void taken(void *arg, const struct answer *answer)
{
    struct taker *taker = arg;

    taker->busy = false;
    taker->replaced &= answer->verdict == VERDICT_UNKNOWN;
    if (answer->verdict == VERDICT_GRANTED) {
        if (count_held(taker) != request_of(taker).key_count)
            server.fault = "granted, and does not hold all keys";
        taker->state = HOLDING;
        taker->turns++;
        go_on(taker, HOLD_NS);
        return;
    }
    if (answer->verdict == VERDICT_REFUSED)
        check_refusal(taker, answer);
    go_on(taker, 200 * NS_PER_MS);
}

static void returned(void *arg, const struct answer *answer)
{
    struct taker *taker = arg;

    taker->busy = false;
    if (answer->verdict != VERDICT_UNKNOWN) {
        if (count_held(taker) > 0)
            server.fault = "released, and holds a key";
        taker->state = TRYING;
    }
    go_on(taker, 0);
}

static bool is_in_doubt(const struct taker *taker)
{
    return !moment_reached(taker->doubt, loop_now(server.loop));
}

static void act(struct loop_timer *timer)
{
    struct taker *taker = timer->owner;
    struct operation operation = {.until = moment_plus(loop_now(server.loop), TIMEOUT),
                                  .arg = taker};

    if (taker->busy)
        return;
    taker->busy = true;
    if (taker->state == TRYING) {
        taker->acquire = request_of(taker);
        taker->acquire.from_dead_agent = taker->replaced;
        taker->acquire.uncertain = is_in_doubt(taker);
        if (server.dying && chance(&server.seed, 100) < server.dying)
            loop_arm(server.loop, &taker->death,
                     moment_plus(loop_now(server.loop), chance(&server.seed, 15) * NS_PER_MS));
        operation.verb = VERB_ACQUIRE;
        operation.acquire = &taker->acquire;
        operation.done = taken;
        store_start(taker->store, &operation);
        return;
    }
    if (taker->state == HOLDING && count_held(taker) != request_of(taker).key_count)
        server.fault = "lost a key that was not taken from it";
    taker->state = RELEASING;
    taker->release =
        (struct release_request){.lock = &taker->acquire, .uncertain = is_in_doubt(taker)};
    operation.verb = VERB_RELEASE;
    operation.release = &taker->release;
    operation.done = returned;
    store_start(taker->store, &operation);
}

static void poked(void *arg)
{
    struct taker *taker = arg;

    if (taker->state == TRYING && !taker->busy)
        go_on(taker, 0);
}

static void connect_taker(struct taker *taker)
{
    static const struct store_events events = {.poked = poked};

    taker->store = multi_lock_open(server.loop, sim_connect(&server, taker->owner));
    store_on_event(taker->store, &events, taker);
}

/* The taker's process dies while it asks for the lock, and the next one continues. */
static void die(struct loop_timer *timer)
{
    struct taker *taker = timer->owner;

    if (taker->state != TRYING || !taker->busy)
        return;
    store_close(taker->store);
    connect_taker(taker);
    taker->busy = false;
    taker->replaced = true;
    taker->doubt = moment_plus(loop_now(server.loop), (LATE_MS + 10) * NS_PER_MS);
    go_on(taker, 0);
}

/* -- runs -------------------------------------------------------------------------------------- */

struct run {
    const char *name;
    const char *keys[OWNERS][SIM_KEYS + 1];
    unsigned turns_least; /* that each gets before another gets more than ... */
    unsigned turns_most;
    bool has_queue;
    unsigned silent; /* of 100 answers */
    unsigned dying;  /* of 100 acquisitions */
};

static struct taker takers[OWNERS];

static void begin(const struct run *run, unsigned seed)
{
    sim_server_begin(&server, seed);
    server.has_queue = run->has_queue;
    server.silent = run->silent;
    server.dying = run->dying;
    for (size_t i = 0; i < OWNERS; i++) {
        struct taker *taker = &takers[i];
        *taker = (struct taker){0};
        if (!run->keys[i][0])
            continue;
        memcpy(taker->keys, run->keys[i], sizeof taker->keys);
        snprintf(taker->owner, sizeof taker->owner, "o%zu", i);
        connect_taker(taker);
        taker->timer = (struct loop_timer){.fire = act, .owner = taker};
        taker->death = (struct loop_timer){.fire = die, .owner = taker};
        go_on(taker, chance(&server.seed, 10) * NS_PER_MS);
    }
}

static void end(void)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (!takers[i].store)
            continue;
        loop_disarm(server.loop, &takers[i].timer);
        loop_disarm(server.loop, &takers[i].death);
        store_close(takers[i].store);
    }
    for (size_t i = 0; i < SIM_LINKS; i++) {
        if (server.links[i])
            drop_link(server.links[i]);
    }
    loop_free(server.loop);
}

static bool is_over(const struct run *run)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (takers[i].store && takers[i].turns < run->turns_least)
            return false;
    }
    return true;
}

/* The first fault; NULL: none. */
static const char *find_fault(const struct run *run)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (takers[i].turns > run->turns_most)
            return "an owner waits while another one has the lock again and again";
    }
    return server.fault;
}

static const char *play(const struct run *run, unsigned seed)
{
    const char *fault = NULL;
    unsigned turns = 0;

    begin(run, seed);
    while (!fault && !is_over(run)) {
        if (!fake_turn(server.loop) || ++turns == TURNS_MOST)
            fault = "it does not end";
        else
            fault = find_fault(run);
    }
    end();
    return fault;
}

static const struct run runs[] = {
    ROW("owners that want the same keys in other orders",
        {{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}, {"b", "a"}}, 10, 200,
        .has_queue = true),
    ROW("one that wants two keys, each of which is always wanted by others",
        {{"a"}, {"b"}, {"a", "b"}, {"c", "b"}}, 10, 200, .has_queue = true),
    ROW("answers are lost", {{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}, {"b", "a"}}, 10,
        400, .has_queue = true, .silent = 5),
    ROW("their processes die", {{"a"}, {"a", "b", "c"}, {"c", "a"}, {"c", "b"}}, 10, 400,
        .has_queue = true, .dying = 30),
    ROW("a store without queues", {{"a", "b"}, {"b", "a"}, {"c", "a"}}, 3, 1000),
};

/* A store may grant less than it was asked for, and count from before. */
static const struct lock_grant fences[][LOCK_KEYS_MAX] = {
    {{.fence = 11}}, {{.fence = 12}}, {{.fence = 13}}};
static struct answer grants[SIM_KEYS];
static size_t granted;

static void grant(struct store *base, const struct operation *operation)
{
    (void)base;
    operation->done(operation->arg, &grants[granted++]);
}

static void keep_answer(void *arg, const struct answer *answer)
{
    answer_keep(arg, answer);
}

/* Several keys have the shortest of their leases, from the earliest of their moments, when
 * acquired and when renewed. */
static void test_lease(void)
{
    static const struct store_ops ops = {.close = close_nothing, .start = grant};
    struct loop *loop = loop_new();
    struct moment now = loop_now(loop), before = moment_plus(now, -2 * NS_PER_SEC);
    struct taker taker = {.keys = {"c", "a", "b"}, .owner = "o"};
    struct acquire_request request = request_of(&taker);
    struct renew_request renew = {.lock = &request};
    struct store single = {.ops = &ops};
    struct store *store = multi_lock_open(loop, &single);
    struct kept_answer kept = {.answer.verdict = VERDICT_UNKNOWN};
    const struct answer *answer = &kept.answer;

    for (int renewal = 0; renewal < 2; renewal++) {
        const char *what = renewal ? "renewed" : "acquired";
        granted = 0;
        grants[0] = (struct answer){.granted.lease = 9 * NS_PER_SEC, .granted.grants = fences[0]};
        grants[1] = (struct answer){.granted.from = before, .granted.grants = fences[1]};
        grants[2] = (struct answer){.granted.from = moment_plus(now, 1),
                                    .granted.lease = 7 * NS_PER_SEC,
                                    .granted.grants = fences[2]};
        struct operation operation = {.verb = VERB_ACQUIRE,
                                      .acquire = &request,
                                      .until = moment_plus(now, TIMEOUT),
                                      .done = keep_answer,
                                      .arg = &kept};
        if (renewal) {
            operation.verb = VERB_RENEW;
            operation.renew = &renew;
        }
        store_start(store, &operation);
        tap_ok(answer->verdict == VERDICT_GRANTED && answer->granted.grants[0].fence == 13 &&
                   answer->granted.grants[1].fence == 11 && answer->granted.grants[2].fence == 12,
               "%s: each key has its fence", what);
        tap_ok(answer->granted.from.ns == before.ns, "%s: counts from the earliest", what);
        tap_ok(answer->granted.lease == 7 * NS_PER_SEC, "%s: for the shortest of all leases", what);
    }
    store_close(store);
    loop_free(loop);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(runs); i++) {
        const char *fault = NULL;
        unsigned seed = 0;
        while (!fault && seed < SEEDS)
            fault = play(&runs[i], ++seed);
        if (!tap_ok(!fault, "%s", runs[i].name))
            tap_note("seed %u: %s", seed, fault);
    }
    test_lease();
    return tap_done();
}
