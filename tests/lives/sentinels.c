#include "lives/sentinels.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "host/resp.h"
#include "lives/replication.h"

struct sentinels_here sentinels_here;

void sentinels_choose(void)
{
    sentinels_here = (struct sentinels_here){.used = replication.servers && one_in(2)};
    sentinels_here.stale = chance_below(CHOOSE(1, 1000, 30000) * MS);
    sentinels_here.away = one_in(4) ? (int)chance_below(SENTINELS) : -1;
}

/* The first one is stale. */
static void correct(void *arg)
{
    (void)arg;
    sentinels_here.master[0] = replication.master;
}

void sentinels_tell(int master)
{
    for (int i = 1; i < SENTINELS; i++)
        sentinels_here.master[i] = master;
    /* Two of three are most: not before the stale one, where another is away. */
    sentinels_here.told = world.now + (sentinels_here.away > 0 ? sentinels_here.stale : 0);
    world_at(world.now + sentinels_here.stale, correct, NULL);
}

bool sentinel_is_up(int number)
{
    return number < SENTINEL_FIRST + SENTINELS && number - SENTINEL_FIRST != sentinels_here.away;
}

/* -- answers ----------------------------------------------------------------------------------- */

static void print_address(struct strbuf *out, int number, const char *port)
{
    char host[20];

    snprintf(host, sizeof host, "10.0.0.%d", number + 1);
    resp_bulk(out, slice_of(host));
    resp_bulk(out, slice_of(port));
}

static void print_id(struct strbuf *out, int which)
{
    char id[48];

    snprintf(id, sizeof id, "%040d", which + 1);
    resp_bulk(out, slice_of(id));
}

static void tell_others(struct strbuf *out, int which)
{
    resp_array(out, SENTINELS - 1);
    for (int i = 0; i < SENTINELS; i++) {
        char host[20];
        if (i == which)
            continue;
        snprintf(host, sizeof host, "10.0.0.%d", SENTINEL_FIRST + i + 1);
        resp_array(out, 6);
        resp_bulk(out, slice_of("ip"));
        resp_bulk(out, slice_of(host));
        resp_bulk(out, slice_of("port"));
        resp_bulk(out, slice_of("26379"));
        resp_bulk(out, slice_of("runid"));
        print_id(out, i);
    }
}

static void answer(int which, const struct slice *words, size_t count, struct strbuf *out)
{
    struct slice what = count > 1 ? words[1] : slice_of("");

    if (slice_is(what, "get-master-addr-by-name")) {
        resp_array(out, 2);
        print_address(out, sentinels_here.master[which], "6379");
    } else if (slice_is(what, "sentinels")) {
        tell_others(out, which);
    } else {
        print_id(out, which);
    }
}

void sentinel_read_from(struct connection *connection)
{
    int which = connection->server - SENTINEL_FIRST;
    const struct slice *words;
    struct strbuf out = {0};
    size_t count;
    char bytes[4096];
    ssize_t got;

    if (!connection->asks)
        connection->asks = calloc(1, sizeof *connection->asks);
    while ((got = network_take(connection, bytes, sizeof bytes)) > 0) {
        resp_feed(connection->asks, bytes, (size_t)got);
        while (resp_next(connection->asks, &words, &count) == RESP_COMMAND)
            answer(which, words, count, &out);
    }
    if (out.size > 0)
        network_answer(connection, out.text, out.size);
    strbuf_free(&out);
    if (got == 0)
        network_hang_up(connection);
}

void sentinel_forget(struct connection *connection)
{
    if (connection->asks)
        resp_in_free(connection->asks);
    free(connection->asks);
}
