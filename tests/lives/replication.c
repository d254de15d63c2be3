#include "lives/replication.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lives/faults.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/sentinels.h"
#include "lives/server.h"
#include "memory_records.h"

/* How many lives have one with replicas, of those with one server. */
#define REPLICAS_EVERY 5
/* How many records a unit writes at most. */
#define CHANGES 16

struct replication replication;

/* A replica's, by its number. */
static struct link {
    int master; /* -1: it is one itself */
    bool up;
    unsigned epoch; /* a parcel of another one does not arrive */
    unsigned long applied, acknowledged;
    int64_t last; /* the latest arrival: what is sent keeps its order */
} links[SERVERS];
static unsigned long written[SERVERS]; /* by each, as a master: how many units */
static char *changes[CHANGES];         /* of the unit under way */
static size_t change_count;
/* The latest failover. */
static struct move {
    struct failover plan;
    int old;
    unsigned left; /* so much of it is still to come; 0: it is over */
} move;

void replication_choose(void)
{
    replication = (struct replication){.servers = 0};
    move = (struct move){.left = 0};
    if (one_in(REPLICAS_EVERY) && server_count == 1)
        replication.servers = 2 + one_in(2);
    replication.lag = chance_below(circumstances.calm ? MS : CHOOSE(1, 20, 300, 3000) * MS);
    replication.clocks_differ = one_in(3);
    replication.grace = one_in(2) && (replication.servers || (one_in(8) && server_count == 1));
    if (replication.servers && !one_in(3)) {
        replication.rule = REPLICAS_COUNT + (enum replicas)chance_below(3);
        replication.number = 1 + (unsigned)chance_below(replication.servers - 1);
    }
    for (int i = 0; i < SERVERS; i++) {
        links[i] = (struct link){.master = i ? 0 : -1, .up = i > 0};
        written[i] = 0;
    }
}

bool replication_is_master(int number)
{
    return !replication.servers || (number < replication.servers && links[number].master < 0);
}

bool replication_covers(void)
{
    switch (replication.rule) {
    case REPLICAS_NONE: return false;
    case REPLICAS_COUNT: return (int)replication.number == replication.servers - 1;
    default: /* of those that there are, which a new agent counts anew */
        return !replication.thinned && !replication.moved && !move.plan.returns;
    }
}

/* -- from a master to its replicas ------------------------------------------------------------- */

/* The records that a unit has written; none: all that there are when it arrives. */
struct parcel {
    int to;
    unsigned epoch;
    unsigned long number;
    size_t count;
    struct memory_kind records[CHANGES];
};

static void parcel_free(struct parcel *parcel)
{
    for (size_t i = 0; i < parcel->count; i++) {
        free(parcel->records[i].name);
        free(parcel->records[i].text);
    }
    free(parcel);
}

static void check_waits(int master);

static void arrive_acknowledged(void *arg)
{
    struct parcel *parcel = arg;
    struct link *link = &links[parcel->to];

    if (link->epoch == parcel->epoch && link->up) {
        link->acknowledged = parcel->number;
        check_waits(link->master);
    }
    parcel_free(parcel);
}

static int64_t choose_lag(void)
{
    return 10 * US + chance_below(one_in(4) ? replication.lag : replication.lag / 10 + 1);
}

static void arrive(void *arg)
{
    struct parcel *parcel = arg;
    struct link *link = &links[parcel->to];

    if (link->epoch != parcel->epoch || !link->up) {
        parcel_free(parcel);
        return;
    }
    if (world.now < server_frozen_until(parcel->to)) {
        world_at(server_frozen_until(parcel->to), arrive, parcel);
        return;
    }
    if (parcel->count == 0) {
        server_copy(link->master, parcel->to);
        parcel->number = written[link->master];
    }
    for (size_t i = 0; i < parcel->count; i++)
        server_take(parcel->to, &parcel->records[i]);
    link->applied = parcel->number;
    world_at(world.now + choose_lag() / 2, arrive_acknowledged, parcel);
}

static void send_parcel(int to, struct parcel *parcel)
{
    struct link *link = &links[to];
    int64_t at = world.now + choose_lag();

    parcel->to = to;
    parcel->epoch = link->epoch;
    parcel->number = written[link->master];
    link->last = at > link->last ? at : link->last;
    world_at(link->last, arrive, parcel);
}

static bool is_linked(int to, int master)
{
    return to < replication.servers && links[to].master == master && links[to].up;
}

void replication_note(const char *name)
{
    if (!replication.servers)
        return;
    if (change_count == CHANGES)
        abort();
    changes[change_count++] = strdup(name);
}

static struct parcel *parcel_of_changes(int from)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    const struct memory_records *records = server_records(from);

    for (size_t c = 0; c < change_count; c++)
        for (size_t i = 0; i < records->count; i++)
            if (strcmp(records->all[i].name, changes[c]) == 0)
                parcel->records[parcel->count++] =
                    (struct memory_kind){strdup(records->all[i].name), strdup(records->all[i].text),
                                         records->all[i].version};
    return parcel;
}

void replication_commit(int number, struct connection *writer)
{
    written[number]++;
    if (sentinels_here.used && number != replication.master && writer && !writer->by_admin &&
        writer->run)
        life_on_left(writer->run);
    if (writer)
        writer->written = written[number];
    for (int to = 0; to < replication.servers && change_count > 0; to++)
        if (is_linked(to, number))
            send_parcel(to, parcel_of_changes(number));
    while (change_count > 0)
        free(changes[--change_count]);
}

int replication_count(int master)
{
    int count = 0;

    for (int to = 0; to < replication.servers; to++)
        count += is_linked(to, master);
    return count;
}

/* -- WAIT -------------------------------------------------------------------------------------- */

static unsigned count_acknowledged(const struct connection *connection)
{
    unsigned count = 0;

    for (int to = 0; to < replication.servers; to++)
        count += is_linked(to, connection->server) && links[to].acknowledged >= connection->written;
    return count;
}

static void check_wait(struct connection *connection)
{
    unsigned count = count_acknowledged(connection);

    if (connection->waits && world.now >= server_frozen_until(connection->server) &&
        (count >= connection->wanted || world.now >= connection->waits_until))
        server_unblock(connection, count);
}

static void on_wait_over(void *connection)
{
    check_wait(connection);
}

static int waited_for;

static void check_wait_there(struct connection *connection)
{
    if (connection->server == waited_for)
        check_wait(connection);
}

static void check_waits(int master)
{
    waited_for = master;
    network_each(check_wait_there);
}

void replication_wait(struct connection *connection, unsigned count, int64_t ns)
{
    connection->waits = true;
    connection->wanted = count;
    connection->waits_until = world.now + ns;
    world_at(world.now, on_wait_over, connection);
    world_at(connection->waits_until, on_wait_over, connection);
}

void replication_on_thaw(int number)
{
    check_waits(number);
}

/* -- links ------------------------------------------------------------------------------------- */

static void link_down(int to)
{
    links[to].up = false;
    links[to].epoch++;
}

static void send_all_of(int to)
{
    send_parcel(to, calloc(1, sizeof(struct parcel)));
}

static void link_up(void *arg)
{
    int to = (int)((struct link *)arg - links);

    if (links[to].master < 0 || links[to].up)
        return;
    if (!server_is_up(to) || !server_is_up(links[to].master)) {
        world_at(world.now + 100 * MS, link_up, arg);
        return;
    }
    links[to].up = true;
    links[to].epoch++;
    links[to].acknowledged = 0;
    send_all_of(to);
}

static void follow(int to, int master)
{
    link_down(to);
    links[to].master = master;
    link_up(&links[to]);
}

static void note_loss(const char *owner, int64_t deadline, bool lacks);

void replication_on_restart(int number, int64_t until)
{
    /* A former master: what was granted there since is lost. */
    if (replication.servers && number != replication.master && links[number].master < 0)
        server_compare(number, replication.master, note_loss);
    for (int to = 0; to < replication.servers; to++) {
        if (links[to].master < 0 || (to != number && links[to].master != number))
            continue;
        replication.thinned |= !move.left;
        link_down(to);
        world_at(until + chance_below(SEC), link_up, &links[to]);
    }
}

void replication_on_flush(int number)
{
    for (int to = 0; to < replication.servers; to++)
        if (is_linked(to, number))
            send_all_of(to);
}

/* -- failover ---------------------------------------------------------------------------------- */

struct failover replication_choose_failover(int64_t lease)
{
    struct failover failover;

    failover.to = (int)chance_below(replication.servers ? replication.servers - 1 : 1);
    failover.lives = one_in(2);
    failover.returns = !failover.lives && one_in(2);
    failover.promoted = chance_below(CHOOSE(1, 500, 5000) * MS);
    failover.named = chance_below(CHOOSE(1, 500, 5000) * MS);
    failover.followed = chance_below(CHOOSE(1, 500, 2000) * MS);
    failover.demoted = chance_below(CHOOSE(1, 500, 2000) * MS) + (one_in(3) ? lease + 10 * SEC : 0);
    return failover;
}

/* A new master lacks the lock of that owner, or has it for a shorter time. */
static void note_loss(const char *owner, int64_t deadline, bool lacks)
{
    bool kept = replication_covers() && !circumstances.forgot && !circumstances.clock_set &&
                !replication.clocks_differ && !replication.split;
    struct span span = {world.now, deadline};

    trace("the new master %s of %s", lacks ? "lacks the lock" : "has an earlier lease", owner);
    if (kept && lacks)
        life_on_unreplicated(owner);
    if (kept || replication.grace)
        life_on_thinned(owner, span);
    else
        life_on_forgotten(owner, span);
}

static void demote(void *arg)
{
    (void)arg;
    trace("server %d becomes a replica of %d", move.old, replication.master);
    server_compare(move.old, replication.master, note_loss);
    server_demote(move.old, replication.master);
    follow(move.old, replication.master);
    move.left--;
}

static void name_it(void *arg)
{
    (void)arg;
    trace("clients are led to server %d", replication.master);
    naming.server = replication.master;
    sentinels_tell(replication.master);
    move.left--;
}

static void follow_it(void *arg)
{
    (void)arg;
    for (int to = 0; to < replication.servers; to++)
        if (links[to].master == move.old)
            follow(to, replication.master);
    move.left--;
}

/* Whether another owner may be granted the lock beside one at the old master: rlock-stores(7) has a
 * table of it. */
static bool may_split(void)
{
    bool both = replication.grace && replication_covers();

    if (circumstances.clock_set)
        return true;
    if (both)
        return false;
    if (replication.grace)
        return move.plan.lives || move.plan.returns;
    return !replication_covers() || circumstances.forgot || replication.clocks_differ;
}

static void promote(void *arg)
{
    int new = (move.old + 1 + move.plan.to) % replication.servers;

    (void)arg;
    trace("server %d becomes the master", new);
    replication.split |= may_split();
    server_compare(move.old, new, note_loss);
    replication.moved = true;
    circumstances.set_back |= replication.clocks_differ || circumstances.clock_set;
    circumstances.forgot = true;
    link_down(new);
    links[new].master = -1;
    written[new]++;
    server_promote(new, move.old);
    replication.master = new;
    world_at(world.now + move.plan.named, name_it, NULL);
    world_at(world.now + move.plan.followed, follow_it, NULL);
    world_at(world.now + move.plan.demoted, demote, NULL);
}

void replication_fail_over(const struct failover *failover)
{
    if (move.left)
        return;
    move = (struct move){*failover, replication.master, 3};
    trace("the master %d %s", move.old, failover->lives ? "is cut off from its replicas" : "ends");
    for (int to = 0; to < replication.servers; to++)
        if (links[to].master == move.old)
            link_down(to);
    if (!failover->lives)
        server_restart(move.old,
                       failover->promoted +
                           (failover->returns ? failover->demoted / 2 : failover->demoted + SEC));
    world_at(world.now + failover->promoted, promote, NULL);
}
