/* A lock server, and stores that take one key each. */
#include "sim_keys.h"

#include <stdlib.h>
#include <string.h>

#define PLACE_NS (7 * NS_PER_SEC)

/* -- the server ------------------------------------------------------------------------------ */

void sim_server_begin(struct sim_server *server, unsigned seed)
{
    static const char *const names[SIM_KEYS] = {"a", "b", "c", "d"};

    *server = (struct sim_server){.loop = loop_new(), .seed = seed, .has_queue = true};
    for (size_t i = 0; i < SIM_KEYS; i++)
        server->keys[i].name = names[i];
}

void sim_server_end(struct sim_server *server)
{
    loop_free(server->loop);
}

struct sim_key *sim_find_key(struct sim_server *server, const char *name)
{
    for (size_t i = 0; i < SIM_KEYS; i++) {
        if (strcmp(server->keys[i].name, name) == 0)
            return &server->keys[i];
    }
    abort();
}

static void remove_place(struct sim_key *key, size_t place)
{
    key->waiting--;
    for (; place < key->waiting; place++)
        key->queue[place] = key->queue[place + 1];
}

/* Those that were not heard of for too long are gone. */
static size_t place_of(const struct sim_server *server, struct sim_key *key, const char *owner)
{
    size_t place = 0;

    for (size_t i = 0; i < key->waiting;) {
        if (moment_reached(key->queue[i].until, loop_now(server->loop)))
            remove_place(key, i);
        else
            i++;
    }
    while (place < key->waiting && key->queue[place].owner != owner)
        place++;
    return place;
}

bool sim_is_queued(struct sim_server *server, const char *name, const char *owner)
{
    struct sim_key *key = sim_find_key(server, name);

    return place_of(server, key, owner) < key->waiting;
}

size_t sim_count_held(struct sim_server *server, const char *const *names, const char *owner)
{
    size_t held = 0;

    for (; *names; names++)
        held += sim_find_key(server, *names)->holder == owner;
    return held;
}

static bool leave_queue(const struct sim_server *server, struct sim_key *key, const char *owner)
{
    size_t place = place_of(server, key, owner);

    if (place == key->waiting)
        return false;
    remove_place(key, place);
    return true;
}

static bool leave(const struct sim_server *server, struct sim_key *key, const char *owner)
{
    bool held = key->holder == owner;

    if (held)
        key->holder = NULL;
    return leave_queue(server, key, owner) || held;
}

static void acquire_key(const struct sim_server *server, struct sim_key *key, const char *owner,
                        const struct acquire_request *request, struct answer *answer)
{
    struct moment now = loop_now(server->loop);
    size_t place = place_of(server, key, owner);
    bool first = key->waiting == 0 || place == 0;
    bool stand = request->stand && server->has_queue;

    if (key->holder == owner || (!stand && !key->holder && first)) {
        leave_queue(server, key, owner);
        key->holder = owner;
        *answer = (struct answer){.verdict = VERDICT_GRANTED, .grants = {{.fence = 1}}};
        return;
    }
    if (server->has_queue && (request->queue || stand) && place == key->waiting)
        key->queue[key->waiting++] = (struct sim_place){.owner = owner, .since = now};
    if (place < key->waiting)
        key->queue[place].until = moment_plus(now, PLACE_NS);
    *answer = (struct answer){
        .verdict = VERDICT_REFUSED,
        .cause = CAUSE_HELD,
        .holders = key->holder != NULL,
        .position = (int64_t)place + server->has_queue,
        .first.age_ms = key->waiting > 0 ? moment_until(key->queue[0].since, now) / NS_PER_MS : 0};
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
    struct acquire_request request;
    struct sim_key *key;
    store_done *done;
    void *arg;
    struct sim_key *listens_to; /* NULL: nothing */
};

static struct sim_link *of(struct store *base)
{
    return (struct sim_link *)base;
}

/* The first waiter is woken, if it listens and is not asking already. Where there is no
 * queue, all are that listen. */
static void call_first(struct sim_server *server, const struct sim_key *key)
{
    if (key->holder || (server->has_queue && key->waiting == 0))
        return;
    for (size_t i = 0; i < SIM_LINKS; i++) {
        struct sim_link *link = server->links[i];
        if (link && link->listens_to == key && !link->busy &&
            (!server->has_queue || link->owner == key->queue[0].owner))
            store_poke(&link->base);
    }
}

static bool is_dead(const struct sim_link *link)
{
    return link->server->dead && strcmp(link->key->name, link->server->dead) == 0;
}

static void obey(struct loop_timer *timer)
{
    static const struct answer mute = {
        .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true};
    static const struct answer away = {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE};
    struct sim_link *link = timer->owner;
    struct sim_server *server = link->server;
    struct sim_key *key = link->key;
    struct answer answer = {.verdict = VERDICT_GRANTED, .grants = {{.fence = 1}}};
    bool changed = false;

    link->busy = false;
    if (is_dead(link)) {
        link->done(link->arg, &away);
        return;
    }
    if (link->verb == VERB_ACQUIRE) {
        acquire_key(server, key, link->owner, &link->request, &answer);
        bool listens = link->request.listen && answer.verdict == VERDICT_REFUSED;
        link->listens_to = listens ? key : NULL;
    } else if (link->verb == VERB_RENEW ? key->holder != link->owner
                                        : !(changed = leave(server, key, link->owner))) {
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    }
    link->done(link->arg, chance(&server->seed, 100) < server->silent ? &mute : &answer);
    if (changed)
        call_first(server, key);
}

static struct sim_key *key_of(struct sim_server *server, const char *const *keys, size_t count)
{
    if (count != 1)
        server->fault = "the store was asked about several keys at once";
    return sim_find_key(server, keys[0]);
}

static void start(struct store *base, const struct operation *operation)
{
    struct sim_link *link = of(base);
    struct moment now = loop_now(link->server->loop);

    if (link->busy)
        link->server->fault = "the store was asked while it was busy";
    link->busy = true;
    link->verb = operation->verb;
    link->request = operation_lock(operation);
    link->key = key_of(link->server, link->request.keys, link->request.key_count);
    link->done = operation->done;
    link->arg = operation->arg;
    int64_t trip = (1 + chance(&link->server->seed, 5)) * NS_PER_MS;
    loop_arm(link->server->loop, &link->timer,
             is_dead(link) ? moment_max(now, operation->until) : moment_plus(now, trip));
}

static bool release_nowait(struct store *base, const struct release_request *request)
{
    struct sim_link *link = of(base);
    struct sim_key *key = key_of(link->server, request->keys, request->key_count);

    loop_disarm(link->server->loop, &link->timer);
    link->busy = false;
    leave(link->server, key, link->owner);
    call_first(link->server, key);
    return true;
}

static void close_link(struct store *base)
{
    struct sim_link *link = of(base);

    loop_disarm(link->server->loop, &link->timer);
    link->server->links[link->number] = NULL;
    free(link);
}

struct store *sim_connect(struct sim_server *server, const char *owner)
{
    static const struct store_ops ops = {close_link, start, release_nowait};
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

void sim_expire(struct sim_server *server, const char *owner)
{
    for (size_t i = 0; i < SIM_KEYS; i++)
        leave(server, &server->keys[i], owner);
    for (size_t i = 0; i < SIM_LINKS; i++) {
        if (server->links[i] && server->links[i]->owner == owner)
            store_lose(&server->links[i]->base, "expired");
    }
    for (size_t i = 0; i < SIM_KEYS; i++)
        call_first(server, &server->keys[i]);
}
