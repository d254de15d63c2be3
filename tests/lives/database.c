#include "lives/database.h"

#include "lives/faults.h"
#include "lives/replication.h"
#include "lives/server.h"
#include "memory_records.h"

/* How many lives have one. */
#define DATABASES_EVERY 8

struct database database_here;

/* A unit whose COMMIT has arrived at the server, and whose client has gone; its locks keep all
 * others out until then. */
static struct unit under_way;

void database_drop(void)
{
    unit_end(&under_way);
}

static enum host_outcome cut(struct host_fault *fault, bool maybe_done)
{
    *fault = (struct host_fault){.why = {.error = one_in(2) ? WIRE_UNREACHABLE : WIRE_ENDED,
                                         .maybe_done = maybe_done,
                                         .said = "the connection broke"},
                                 .broken = true};
    return HOST_FAILED;
}

static bool is_cut(void)
{
    return chance_below(1000) < database_here.cuts_of_1000;
}

/* Nothing is locked, or the server rolls it back. */
static enum host_outcome load(struct unit *unit, struct host_fault *fault)
{
    if (is_cut()) {
        trace("CUT: before anything is done");
        return cut(fault, false);
    }
    return memory_records_store.load(unit, fault);
}

static void commit_late(void *unused)
{
    (void)unused;
    if (under_way.count == 0)
        return;
    trace("a unit is done late");
    database_here.commits_late = true;
    server_commit(&under_way);
    database_here.commits_late = false;
    unit_end(&under_way);
}

static enum host_outcome commit(struct unit *unit, struct host_fault *fault)
{
    if (!is_cut())
        return memory_records_store.commit(unit, fault);
    switch (chance_below(server_serves_admin() ? 2 : 3)) {
    case 0: trace("CUT: a unit is not done"); break;
    case 1:
        trace("CUT: a unit is done");
        memory_records_store.commit(unit, fault);
        break;
    default: {
        int64_t late = 1 + chance_below(database_here.late);
        trace("CUT: a unit is done %.3f s later", (double)late / 1e9);
        database_drop();
        under_way = *unit;
        *unit = (struct unit){.now_us = 0};
        world_at(world.now + late, commit_late, NULL);
        server_freeze(0, late);
    }
    }
    return cut(fault, true);
}

static void abandon(void)
{
}

static bool list(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                 struct host_fault *fault)
{
    return memory_records_store.list(prefix, each, arg, fault);
}

static bool make(const char *user, struct host_fault *fault)
{
    return memory_records_store.make(user, fault);
}

const struct host_store database_store = {
    .load = load, .commit = commit, .abandon = abandon, .list = list, .make = make};

/* "The server ends a transaction in which the client stands still for 2 s": src/host/README.md. */
void database_choose(void)
{
    database_drop();
    database_here = (struct database){.cuts_of_1000 = 0};
    if (!one_in(DATABASES_EVERY) || server_count > 1 || replication.servers || circumstances.calm)
        return;
    database_here.cuts_of_1000 = 1 + (unsigned)chance_below(CHOOSE(20, 200));
    database_here.late = CHOOSE(20, 500, 2000) * MS;
    circumstances.network_bad = true;
}
