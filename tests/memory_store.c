/* memory:///PATH, a store for tests that does as little as a store may. It grants shorter leases
 * than were asked for, has sessions that end without notice, no queue, no latches, no readers, no
 * semaphores, and takes one key at a time.
 *
 * Its server is the file PATH, which everybody locks with flock(2) to read and write it; as long as
 * there is no such file the store is out of reach. A line of it is one of
 *     allows MS           no lease is longer
 *     fence NUMBER        the last one that was issued
 *     lock NAME OWNER FENCE SINCE END LEASE WHO...
 * SINCE is in ms since 1970, END in ns of CLOCK_BOOTTIME, LEASE in ns. A test that takes a "lock"
 * line away ends the session that it belongs to; so does who closes the store. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "lock/key.h"
#include "lock/owner.h"
#include "net/loop.h"
#include "store/diagnosis.h"
#include "store/views.h"
#include "store/quorum/store_kind.h"
#include "store/redis/store.h"
#include "store/url_parts.h"

#define ENTRIES_MAX 32
#define NAME_SIZE   600
#define WHO_SIZE    1200
#define LOOK_NS     (20 * NS_PER_MS)

struct entry {
    char name[NAME_SIZE], owner[OWNER_SIZE], who[WHO_SIZE];
    uint64_t fence;
    int64_t since_ms;
    struct moment end;
    int64_t lease;
};

/* The file while it is locked. */
struct server {
    FILE *file;
    int64_t allows_ms;
    uint64_t fence;
    struct entry entries[ENTRIES_MAX];
    size_t count;
};

struct memory_store {
    struct store base;
    struct loop *loop;
    char *path, *prefix;

    /* The operation under way is done when the loop turns. */
    struct loop_timer turn;
    struct lock_grant grants[LOCK_KEYS_MAX]; /* that the answer points to */
    struct lock_party holder;

    /* Looked for from time to time. */
    struct loop_timer look;
    char listens_to[NAME_SIZE]; /* the lock whose end it waits for; "": none */
    char held[NAME_SIZE];       /* "": nothing */
    char held_by[OWNER_SIZE];
};

static struct memory_store *of(struct store *base)
{
    return (struct memory_store *)(void *)base;
}

/* -- the server -------------------------------------------------------------------------------- */

static void read_line(struct server *server, const char *line)
{
    struct entry *entry = &server->entries[server->count];
    int end = 0;

    sscanf(line, "allows %" SCNd64, &server->allows_ms);
    sscanf(line, "fence %" SCNu64, &server->fence);
    if (server->count == ENTRIES_MAX ||
        sscanf(line, "lock %599s %591s %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n",
               entry->name, entry->owner, &entry->fence, &entry->since_ms, &entry->end.ns,
               &entry->lease, &end) != 6)
        return;
    snprintf(entry->who, sizeof entry->who, "%.*s", (int)strcspn(line + end, "\n"), line + end);
    server->count += !moment_reached(entry->end, moment_now());
}

/* False with a message if there is no server. */
static bool server_open(struct server *server, const char *path, char *fault, size_t size)
{
    char *line = NULL;
    size_t room = 0;

    *server = (struct server){.file = fopen(path, "r+e")};
    if (!server->file || flock(fileno(server->file), LOCK_EX) != 0) {
        snprintf(fault, size, "%s", strerror(errno));
        if (server->file)
            fclose(server->file);
        return false;
    }
    while (getline(&line, &room, server->file) >= 0)
        read_line(server, line);
    free(line);
    return true;
}

static void server_write(struct server *server)
{
    rewind(server->file);
    if (ftruncate(fileno(server->file), 0) != 0)
        abort();
    fprintf(server->file, "allows %" PRId64 "\nfence %" PRIu64 "\n", server->allows_ms,
            server->fence);
    for (size_t i = 0; i < server->count; i++) {
        const struct entry *entry = &server->entries[i];
        fprintf(server->file, "lock %s %s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %s\n",
                entry->name, entry->owner, entry->fence, entry->since_ms, entry->end.ns,
                entry->lease, entry->who);
    }
}

static struct entry *server_find(struct server *server, const char *name)
{
    for (size_t i = 0; i < server->count; i++)
        if (strcmp(server->entries[i].name, name) == 0)
            return &server->entries[i];
    return NULL;
}

static void server_drop(struct server *server, struct entry *entry)
{
    *entry = server->entries[--server->count];
    server_write(server);
}

static struct lock_party party_of(const struct entry *entry)
{
    struct lock_party party = {.mode = LOCK_EXCLUSIVE,
                               .count = 1,
                               .since_ms = entry->since_ms,
                               .age_ms = clock_wall() / NS_PER_MS - entry->since_ms,
                               .left_ms = moment_until(moment_now(), entry->end) / NS_PER_MS,
                               .fence = entry->fence};

    snprintf(party.owner, sizeof party.owner, "%s", entry->owner);
    identity_parse(entry->who, strlen(entry->who), &party.who);
    return party;
}

/* -- what happens without being asked ---------------------------------------------------------- */

static char *name_of(const struct memory_store *store, const char *key, char out[NAME_SIZE])
{
    char *name = key_in_store(store->prefix, key);

    snprintf(out, NAME_SIZE, "%s", name);
    free(name);
    return out;
}

static void look_later(struct memory_store *store)
{
    if (*store->listens_to || *store->held)
        loop_arm(store->loop, &store->look, moment_plus(moment_now(), LOOK_NS));
}

/* The session is over if its lock is no longer there; a server that is away says nothing. */
static void look(struct loop_timer *timer)
{
    struct memory_store *store = timer->owner;
    struct server server;
    char fault[100];
    bool lost = false, free_now = false;

    if (server_open(&server, store->path, fault, sizeof fault)) {
        const struct entry *held = server_find(&server, store->held);
        lost = *store->held && (!held || strcmp(held->owner, store->held_by) != 0);
        free_now = *store->listens_to && !server_find(&server, store->listens_to);
        fclose(server.file);
    }
    if (lost)
        *store->held = '\0';
    if (free_now)
        *store->listens_to = '\0';
    look_later(store);
    if (lost || free_now)
        store_changed(&store->base);
}

/* -- operations -------------------------------------------------------------------------------- */

static void refuse(struct answer *answer, enum cause cause, const char *text)
{
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
    snprintf(answer->text, sizeof answer->text, "%s", text);
}

/* The session of this process is what the lock belongs to. */
static void take_session(struct memory_store *store, const struct entry *entry)
{
    snprintf(store->held, sizeof store->held, "%s", entry->name);
    snprintf(store->held_by, sizeof store->held_by, "%s", entry->owner);
}

static void grant(struct memory_store *store, struct server *server, struct entry *entry,
                  struct answer *answer)
{
    int64_t allowed = server->allows_ms * NS_PER_MS;
    int64_t lease = entry->lease < allowed ? entry->lease : allowed;

    entry->end = moment_plus(moment_now(), lease);
    server_write(server);
    answer->granted.lease = lease;
    store->grants[0] = (struct lock_grant){.fence = entry->fence};
    answer->granted.grants = store->grants;
}

static void do_acquire(struct memory_store *store, struct server *server, struct answer *answer)
{
    const struct acquire_request *request = store->base.operation.acquire;
    char name[NAME_SIZE];
    struct entry *entry = server_find(server, name_of(store, request->keys[0], name));

    *store->listens_to = '\0';
    if (!entry && server->count == ENTRIES_MAX) {
        answer_fail(answer, CAUSE_UNFIT, "it has no room for more locks");
        return;
    }
    if (!entry) {
        entry = &server->entries[server->count++];
        *entry = (struct entry){.fence = ++server->fence,
                                .since_ms = clock_wall() / NS_PER_MS,
                                .lease = request->lease};
        strcpy(entry->name, name);
        snprintf(entry->owner, sizeof entry->owner, "%s", request->owner);
        snprintf(entry->who, sizeof entry->who, "%s", request->who);
    } else if (owner_nests_in(request->owner, entry->owner)) {
        refuse(answer, CAUSE_MISFIT, "an ancestor holds it, and memory:// has no nesting");
        return;
    } else if (strcmp(entry->owner, request->owner) != 0) {
        refuse(answer, CAUSE_HELD, "");
        answer->refused.holders = 1;
        store->holder = party_of(entry);
        answer->refused.holder = &store->holder;
        answer->refused.left_ms = store->holder.left_ms;
        if (request->listen)
            strcpy(store->listens_to, name);
        return;
    }
    grant(store, server, entry, answer);
    take_session(store, entry);
}

/* The caller's own entry; NULL, and said so, if it has none. */
static struct entry *find_own(struct memory_store *store, struct server *server, const char *key,
                              const char *owner, struct answer *answer)
{
    char name[NAME_SIZE];
    struct entry *entry = server_find(server, name_of(store, key, name));

    if (entry && strcmp(entry->owner, owner) == 0)
        return entry;
    refuse(answer, CAUSE_NOT_HOLDER, "not held");
    *store->held = '\0';
    return NULL;
}

/* rlock renew leaves the session to the process that has it; a new agent takes it over. */
static void do_renew(struct memory_store *store, struct server *server, struct answer *answer)
{
    const struct renew_request *request = store->base.operation.renew;
    const struct acquire_request *lock = request->lock;
    struct entry *entry = find_own(store, server, lock->keys[0], lock->owner, answer);

    if (!entry)
        return;
    if (lock->lease)
        entry->lease = lock->lease;
    grant(store, server, entry, answer);
    if (request->grants)
        take_session(store, entry);
}

static void do_release(struct memory_store *store, struct server *server,
                       const struct acquire_request *lock, struct answer *answer)
{
    struct entry *entry = find_own(store, server, lock->keys[0], lock->owner, answer);

    *store->listens_to = '\0';
    *store->held = '\0';
    if (entry)
        server_drop(server, entry);
}

static void do_force(struct memory_store *store, struct server *server, struct answer *answer)
{
    const struct force_request *request = store->base.operation.force;
    char name[NAME_SIZE];
    struct entry *entry = server_find(server, name_of(store, request->key, name));

    if (!entry || request->owner_count != 1 || strcmp(entry->owner, request->owners[0]) != 0)
        refuse(answer, CAUSE_CHANGED, "its holders are others by now");
    else
        server_drop(server, entry);
}

/* -- surveys ----------------------------------------------------------------------------------- */

static void report_held(struct memory_store *store, const struct server *server)
{
    const struct survey_request *request = store->base.operation.survey;

    for (size_t i = 0; i < server->count; i++) {
        const struct lock_party holder = party_of(&server->entries[i]);
        char *key = key_from_store(store->prefix, server->entries[i].name);
        const struct lock_view view = {
            .key = key, .fence = holder.fence, .holders = &holder, .holder_count = 1};
        if (key && survey_wants(request, key))
            request->each(request->each_arg, &view);
        free(key);
    }
}

static void report_free(struct memory_store *store, struct server *server)
{
    const struct survey_request *request = store->base.operation.survey;

    for (size_t i = 0; i < request->pattern_count; i++) {
        char name[NAME_SIZE], *key = key_from_pattern(request->patterns[i]);
        const struct lock_view view = {.key = key};
        if (!key_is_glob(request->patterns[i]) && !server_find(server, name_of(store, key, name)))
            request->each(request->each_arg, &view);
        free(key);
    }
}

/* -- the store --------------------------------------------------------------------------------- */

static void perform(struct memory_store *store, struct server *server, struct answer *answer)
{
    const struct operation *operation = &store->base.operation;

    switch (operation->verb) {
    case VERB_ACQUIRE: do_acquire(store, server, answer); break;
    case VERB_RENEW: do_renew(store, server, answer); break;
    case VERB_RELEASE: do_release(store, server, operation->release->lock, answer); break;
    case VERB_FORCE: do_force(store, server, answer); break;
    case VERB_SURVEY:
        report_held(store, server);
        report_free(store, server);
        break;
    default: break;
    }
}

static void turn(struct loop_timer *timer)
{
    struct memory_store *store = timer->owner;
    struct answer answer = {.verdict = VERDICT_GRANTED};
    struct server server;
    char fault[100];

    if (server_open(&server, store->path, fault, sizeof fault)) {
        perform(store, &server, &answer);
        fclose(server.file);
    } else {
        answer_fail(&answer, CAUSE_UNREACHABLE, "cannot reach memory://%s: %s", store->path, fault);
    }
    look_later(store);
    store->base.operation.done(store->base.operation.arg, &answer);
}

static void memory_start(struct store *base, const struct operation *operation)
{
    struct memory_store *store = of(base);

    (void)operation;
    loop_arm(store->loop, &store->turn, loop_now(store->loop));
}

static enum release_sent memory_release_nowait(struct store *base,
                                               const struct release_request *request)
{
    struct memory_store *store = of(base);
    struct answer answer = {0};
    struct server server;
    char fault[100];

    loop_disarm(store->loop, &store->turn);
    if (!server_open(&server, store->path, fault, sizeof fault))
        return RELEASE_UNSENT;
    do_release(store, &server, request->lock, &answer);
    fclose(server.file);
    return RELEASE_SENT;
}

/* Ends the session. */
static void memory_close(struct store *base)
{
    struct memory_store *store = of(base);
    struct server server;
    char fault[100];

    if (*store->held && server_open(&server, store->path, fault, sizeof fault)) {
        struct entry *entry = server_find(&server, store->held);
        if (entry && strcmp(entry->owner, store->held_by) == 0)
            server_drop(&server, entry);
        fclose(server.file);
    }
    loop_disarm(store->loop, &store->turn);
    loop_disarm(store->loop, &store->look);
    free(store->path);
    free(store->prefix);
    free(store);
}

static struct store *memory_open(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    static const struct store_ops ops = {memory_close, memory_start, memory_release_nowait};
    struct memory_store *store = mem_zeroed(sizeof *store);

    (void)fault;
    (void)size;
    store->base.ops = &ops;
    store->loop = loop;
    store->path = mem_strdup(address->urls->path);
    store->prefix = address->prefix ? mem_strdup(address->prefix) : NULL;
    store->turn = (struct loop_timer){.fire = turn, .owner = store};
    store->look = (struct loop_timer){.fire = look, .owner = store};
    return &store->base;
}

/* -- its kind ---------------------------------------------------------------------------------- */

static const char *parse(struct url *url, char *rest)
{
    char *query = NULL;
    const char *fault = url_take_path(url, rest, &query);

    return !fault && query ? "has a query" : fault;
}

static void print(const struct url *url, char *out, size_t size)
{
    url_append_encoded(url->path, "?#", out, size);
}

static bool check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                  size_t size)
{
    struct checked_server *one = checkup_add(checkup, plan->address->urls);
    struct server server;

    (void)fault;
    (void)size;
    one->reached = server_open(&server, plan->address->urls->path, one->said, sizeof one->said);
    if (!one->reached) {
        diagnosis_add(&one->diagnosis, "reach", LEVEL_UNFIT, "", "%s", one->said);
        return true;
    }
    snprintf(one->figures.software, sizeof one->figures.software, "memory");
    diagnosis_add(&one->diagnosis, "lease",
                  plan->lease > server.allows_ms * NS_PER_MS ? LEVEL_NOTE : LEVEL_FINE, "",
                  "it grants %" PRId64 " ms at most", server.allows_ms);
    fclose(server.file);
    return true;
}

static const struct store_kind memory_kind = {.scheme = "memory",
                                              .name = "memory://",
                                              .abilities = STORE_FORCE,
                                              .no_password = true,
                                              .parse = parse,
                                              .print = print,
                                              .open = memory_open,
                                              .check = check};

/* In place of src/store/stores.c. */
const struct store_kind *const stores[] = {&redis_kind, &unix_kind, &memory_kind, NULL};
const struct store_kind *const store_of_several = &quorum_kind;
