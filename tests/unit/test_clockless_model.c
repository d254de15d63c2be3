/* Clients whose clocks are minutes apart hold, wait for, pause and lose one lock, and count down a
 * latch, in a store that can only compare and set. The scripts, the commands and records of a host,
 * and host/clockless are the real ones; time, the store and the clients are the test's.
 *
 * Clocks differ by up to ten minutes and run up to 0.4 % too fast or too slow; the Dates of the
 * store's servers are up to 0.9 s wrong; other clients write between a read and its write; clients
 * and hosts are killed, answers are lost, and a write may be done long after its client has died,
 * or once more. A host may count on from a Date that it was told before, and do
 * a call once with a record as it knows it. The store deletes what has expired.
 *
 * The judge goes by true time. It knows what clients were told, and when they asked: each relies on
 * a lease from before it asked, for 99 % of it by its own clock. No two may hold the lock that
 * exclude each other; no client passes one that keeps its place; pauses, bars, latches and
 * --at-least last as long as they must; and what a dead client holds becomes free.
 *
 * Arguments: the first seed; how many calls of scripts; only which kind of life, from 1; one more
 * argument traces them. */
#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "host/clockless.h"
#include "host/script.h"
#include "rules/scripts.h"

#include "chance.h"
#include "tap.h"

#define MS    INT64_C(1000)
#define SEC   INT64_C(1000000)
#define START (1700000000 * SEC)
/* Two of the store's servers differ by as much as they may: twice what each may be wrong. */
#define WRONG  (900 * MS)
#define MARGIN (2 * WRONG)

#define CLIENTS   7
#define LEASE_MS  8000
#define PLACE_MS  7000
#define HANDED_MS 9500
#define BAR_MS    20000
#define LATCH_MS  20000
#define SLOTS     2
#define POLL_US   (2 * SEC)
#define CALLS     2000 /* of one life */
/* For how long a host counts on from a Date. */
#define DATED (60 * SEC)
/* By how much the time between two Dates is less than the true one: wrong clocks, cut twice, and
 * counted on from, within 1 %, by clocks that are wrong themselves. */
#define DATES_OFF (4 * SEC + 3 * DATED / 100)

static unsigned seed;
static int64_t now; /* true, us */
static char fault[300];
static uint64_t calls, attempts, arrivals;

static bool one_in(unsigned n)
{
    return chance(&seed, n) == 0;
}

/* The first violation of a life counts. */
__attribute__((format(printf, 1, 2))) static void broken(const char *format, ...)
{
    va_list values;

    if (*fault)
        return;
    int size = snprintf(fault, sizeof fault, "%.3f s: ", (double)(now - START) / SEC);
    va_start(values, format);
    vsnprintf(fault + size, sizeof fault - (size_t)size, format, values);
    va_end(values);
}

/* One life can be traced. */
static bool traced;

__attribute__((format(printf, 2, 3))) static void trace(const char *who, const char *format, ...)
{
    va_list values;

    if (!traced)
        return;
    printf("# %9.3f %-7s ", (double)(now - START) / SEC, who);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
}

/* -- kinds of lives ---------------------------------------------------------------------------- */

static const struct kind {
    const char *name, *modes;
    bool dates;     /* the store tells its time */
    bool strangers; /* each call is that of a new host, and no client waits */
    bool impatient; /* no client waits for as long as a lease lasts */
    int idle_s;     /* for so long a lock may be free, and not be given to anyone: by chance,
                        several that it is given to die one after the other */
} kinds[] = {
    {"exclusive", "xxx", true, false, false, 90},
    {"exclusive, without Dates", "xxx", false, false, false, 90},
    {"readers and writers", "xss", true, false, false, 90},
    {"readers and writers, without Dates", "xss", false, false, false, 90},
    {"slots", "lll", true, false, false, 90},
    {"nobody has seen the dead one live", "xxx", true, true, false, 90},
    {"nobody watches for a lease", "xxx", false, false, true, 180},
};
static const struct kind *kind;

/* -- the store --------------------------------------------------------------------------------- */

enum { LOCK, LATCH, KEYS };
static const char *const names[KEYS] = {"rlock:{k}", "rlock:{l}"};

static struct {
    char *text; /* NULL: none */
    int64_t version;
} store[KEYS];
static int64_t revision;

/* Writes that are done later, or never. */
struct put {
    int key;
    int64_t version;
    char *text;
    char owner[24];
    bool grants, places; /* the owner has the lock by it, or a place */
    bool deletes;        /* the latch */
    int64_t loaded;
};

static struct put late[8], twins[8];

static bool put(const struct put *put)
{
    if (store[put->key].version != put->version)
        return false;
    free(store[put->key].text);
    store[put->key].text = mem_strdup(put->text);
    store[put->key].version = ++revision;
    return true;
}

/* Keeps it in the place of another one. */
static struct put *keep_put(struct put *of_8, const struct put *put)
{
    struct put *slot = &of_8[chance(&seed, 8)];

    free(slot->text);
    *slot = *put;
    slot->text = mem_strdup(put->text);
    return slot;
}

/* -- clients ----------------------------------------------------------------------------------- */

struct call {
    const struct script *script; /* NULL: none is under way */
    bool is_run;                 /* the write is next */
    bool is_guessed;             /* with a record as it was some time ago */
    int key;
    const char *words[24];
    char numbers[8][24];
    size_t count, number_count;
    int64_t sent, asked, loaded;
    struct clockless_reading reading;
    struct unit unit;
    struct put put;
    char word[16], places[60];
};

struct client {
    int number;
    char owner[24], places[60], mode[2];
    int64_t lease_ms, rate; /* per million that its clock is too fast */
    int64_t offset;         /* of its host's clock */
    struct clockless known; /* by its host */
    struct clockless_reading date;
    struct {
        int key;
        char *text;
        int64_t version;
    } recent; /* a record as it was some time ago */
    bool waits;
    enum { IDLE, WAITING, HOLDING } state;
    int64_t born, until; /* it relies on the lock until then */
    int64_t called;      /* when it called last; 0: it is called */
    /* The state of it in the record. */
    bool is_in;
    int64_t granted, place_until;
    int64_t came, arrived; /* its turn is not before, and not behind that of who came then */
    struct {
        char token[24];
        int64_t sent;
    } offers[4];
    int64_t at_least_ms, bar_ms; /* of the release under way */
    struct call call;
};

static struct client clients[CLIENTS];

/* Locks and bars of clients that are gone. */
struct ghost {
    char owner[24], mode[2];
    int64_t until;
};

static struct ghost ghosts[16], barred[8];
static int64_t paused_until, latch_set, latch_until, latch_over, held_at, longest_idle;
static bool latch_deleted; /* at latch_set */

static void note_ghost(struct ghost *all, size_t count, const struct client *client, int64_t until)
{
    struct ghost *soonest = all;

    for (size_t i = 0; i < count; i++)
        soonest = all[i].until < soonest->until ? &all[i] : soonest;
    *soonest = (struct ghost){.until = until};
    strcpy(soonest->owner, client->owner);
    strcpy(soonest->mode, client->mode);
}

static int64_t clock_of(const struct client *client)
{
    return now + (now - START) * client->rate / 1000000 + client->offset;
}

/* How long a client relies on a lease: 99 % of it, by its own clock. */
static int64_t trust(const struct client *client, int64_t ms)
{
    return (ms * 990 - 2 * MS) * 1000000 / (1000000 + client->rate);
}

static void end_call(struct client *client)
{
    free(client->call.put.text);
    unit_end(&client->call.unit);
    client->call = (struct call){.script = NULL};
}

static void note_recent(struct client *client, int key, const char *text)
{
    free(client->recent.text);
    client->recent.key = key;
    client->recent.text = text ? mem_strdup(text) : NULL;
    client->recent.version = store[key].version;
}

/* The client's host is started anew: it knows nothing, and its clock begins anew. */
static void renew_host(struct client *client)
{
    static const int offsets[] = {-300, 0, 300};

    trace(client->owner, "has a new host");
    clockless_end(&client->known);
    client->date = (struct clockless_reading){0};
    note_recent(client, LOCK, NULL);
    client->known.margin_us = kind->dates ? MARGIN : CLOCKLESS_NEVER;
    client->offset =
        offsets[chance(&seed, 3)] * SEC + chance(&seed, 1000) * MS + chance(&seed, 999);
}

static void renew_client(struct client *client)
{
    end_call(client);
    snprintf(client->owner, sizeof client->owner, "n%dx%" PRIu64, client->number, ++arrivals);
    *client->places = '\0';
    client->mode[0] = kind->modes[chance(&seed, 3)];
    client->lease_ms = kind->impatient || one_in(3) ? 3 * LEASE_MS : LEASE_MS;
    client->waits = kind->impatient || (!kind->strangers && !one_in(5));
    client->state = IDLE;
    client->is_in = false;
    client->born = now;
    client->until = client->called = client->came = client->arrived = client->place_until = 0;
    client->at_least_ms = client->bar_ms = 0;
    if (kind->impatient)
        renew_host(client);
}

/* The client dies; its command continues until it must end. */
static void kill_client(struct client *client)
{
    trace(client->owner, "dies");
    if (client->state == HOLDING && client->until > now)
        note_ghost(ghosts, COUNT(ghosts), client, client->until);
    renew_client(client);
}

/* -- the judge --------------------------------------------------------------------------------- */

static bool excludes(const struct client *client, const char *mode)
{
    return *client->mode == 'x' || *mode == 'x';
}

static void judge_beside(const struct client *client, const char *owner, const char *mode,
                         int64_t until, int *beside)
{
    if (until <= now)
        return;
    *beside += 1;
    if (excludes(client, mode) || *beside >= (*client->mode == 'l' ? SLOTS : INT32_MAX))
        broken("%s has the lock (%s) beside %s (%s), for %" PRId64 " ms more", client->owner,
               client->mode, owner, mode, (until - now) / MS);
}

static void judge_holder(const struct client *client)
{
    int beside = 0;

    if (client->until <= now)
        return;
    for (const struct client *other = clients; other < clients + CLIENTS; other++)
        if (other != client && other->state == HOLDING)
            judge_beside(client, other->owner, other->mode, other->until, &beside);
    for (size_t i = 0; i < COUNT(ghosts); i++)
        judge_beside(client, ghosts[i].owner, ghosts[i].mode, ghosts[i].until, &beside);
}

/* A new grant that was decided at "loaded". */
static void judge_grant(struct client *client, int64_t loaded)
{
    if (client->is_in)
        return;
    client->is_in = true;
    client->granted = loaded;
    if (loaded < paused_until)
        broken("%s is let in, %" PRId64 " ms before the end of a pause", client->owner,
               (paused_until - loaded) / MS);
    for (const struct client *other = clients; other < clients + CLIENTS; other++)
        if (other != client && strcmp(kind->modes, "xxx") == 0 && !other->is_in && other->arrived &&
            other->place_until > loaded && (!client->came || other->arrived < client->came))
            broken("%s passes %s, whose place is kept for %" PRId64 " ms more", client->owner,
                   other->owner, (other->place_until - loaded) / MS);
}

static void note_arrival(struct client *client)
{
    client->arrived = (int64_t)++arrivals;
    client->came = client->came ? client->came : client->arrived;
}

static void judge_barred(const struct client *client, int64_t loaded)
{
    for (size_t i = 0; i < COUNT(barred); i++)
        if (barred[i].until > loaded && strcmp(barred[i].owner, client->owner) == 0)
            broken("%s comes back, and is barred for %" PRId64 " ms more", client->owner,
                   (barred[i].until - loaded) / MS);
}

/* Whether a client holds it, or none may, by true time. */
static bool is_in_use(void)
{
    bool in_use = paused_until > now;

    for (size_t i = 0; i < CLIENTS; i++)
        in_use |= clients[i].state == HOLDING && clients[i].until > now;
    for (size_t i = 0; i < COUNT(ghosts); i++)
        in_use |= ghosts[i].until > now;
    return in_use;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void hand_over(struct client *client, const char *token, int64_t loaded)
{
    judge_grant(client, loaded);
    for (size_t i = 0; i < COUNT(client->offers); i++) {
        size_t size = strlen(client->offers[i].token);
        if (size == 0 || strncmp(token, client->offers[i].token, size) != 0 || token[size] != ' ')
            continue;
        int64_t until = client->offers[i].sent + trust(client, HANDED_MS);
        trace(client->owner, "is handed the lock");
        client->state = HOLDING;
        client->until = until > client->until ? until : client->until;
        judge_holder(client);
    }
}

static void deliver(const struct call *call)
{
    for (size_t i = 0; i < call->unit.message_count; i++) {
        const struct unit_message *message = &call->unit.messages[i];
        const char *owner = strrchr(message->channel.at, ':') + 1;
        for (struct client *client = clients; client < clients + CLIENTS; client++) {
            if (strcmp(client->owner, owner) != 0 || call->key != LOCK)
                continue;
            if (strcmp(message->text.at, "1") == 0)
                client->called = one_in(10) ? client->called : 0;
            else if (client->state == WAITING && !one_in(10))
                hand_over(client, message->text.at, call->loaded);
            else
                judge_grant(client, call->loaded);
        }
    }
}

/* -- calls ------------------------------------------------------------------------------------- */

static void add_text(struct call *call, const char *name, const char *text)
{
    call->words[call->count++] = name;
    call->words[call->count++] = text;
}

/* 0 is not given. */
static void add_number(struct call *call, const char *name, int64_t number)
{
    char *text = call->numbers[call->number_count];

    if (!number)
        return;
    call->number_count++;
    snprintf(text, sizeof call->numbers[0], "%" PRId64, number);
    add_text(call, name, text);
}

/* Half of the clients do not number their requests: what they write may read as before. */
static void add_attempt(struct client *client, uint64_t attempt)
{
    add_number(&client->call, "attempt", client->number % 2 ? (int64_t)attempt : 0);
}

static struct call *begin_call(struct client *client, const struct script *script, int key)
{
    if (kind->strangers)
        renew_host(client);
    client->call = (struct call){.script = script, .key = key, .sent = now, .asked = now};
    return &client->call;
}

static void begin_acquire(struct client *client, uint64_t attempt)
{
    struct call *call = begin_call(client, &script_acquire, LOCK);

    client->called = now;
    add_text(call, "owner", client->owner);
    add_number(call, "lease", client->lease_ms);
    add_text(call, "mode", client->mode);
    add_number(call, "limit", *client->mode == 'l' ? SLOTS : 0);
    add_text(call, "who", "w - - - -");
    add_attempt(client, attempt);
    if (!client->waits)
        return;
    add_number(call, "place_ttl", PLACE_MS);
    add_text(call, "count", "1");
    if (*client->places)
        add_text(call, "places", client->places);
    size_t offer = attempt % COUNT(client->offers);
    snprintf(client->offers[offer].token, sizeof client->offers[0].token, "tok%" PRIu64, attempt);
    client->offers[offer].sent = now;
    add_text(call, "offer", client->offers[offer].token);
    add_number(call, "offer_ms", HANDED_MS);
}

static void begin_release(struct client *client, const char *notes)
{
    struct call *call = begin_call(client, &script_release, LOCK);

    client->at_least_ms = client->state == HOLDING && one_in(6) ? 12000 : 0;
    client->state = IDLE; /* it relies on nothing any more */
    client->until = 0;
    client->bar_ms = one_in(8) ? BAR_MS : 0;
    add_text(call, "owner", client->owner);
    add_text(call, "notes", notes);
    add_attempt(client, ++attempts);
    add_number(call, "at_least", client->at_least_ms);
    add_number(call, "bar", client->bar_ms);
}

static void begin_renew(struct client *client)
{
    struct call *call = begin_call(client, &script_renew, LOCK);

    add_text(call, "owner", client->owner);
    add_number(call, "lease", client->lease_ms);
    add_attempt(client, ++attempts);
}

static void begin_pause(struct client *client)
{
    struct call *call = begin_call(client, &script_adjust, LOCK);

    add_text(call, "what", "pause");
    add_number(call, "ms", LEASE_MS);
    add_text(call, "who", "- - - - -");
}

static void begin_latch(struct client *client)
{
    struct call *call = begin_call(client, &script_latch, LATCH);
    const char *const verbs[] = {"look", "count", "set", "delete"};
    const char *what = verbs[chance(&seed, 4)];

    add_text(call, "what", what);
    add_number(call, "number", strcmp(what, "count") == 0 ? 1 : 1000000);
    add_number(call, "ttl", LATCH_MS);
    add_number(call, "word", strcmp(what, "set") == 0 ? (int64_t)++attempts : 0);
    if (strcmp(what, "count") == 0)
        add_text(call, "field", client->owner);
}

/* An acquisition comes late whose owner has released, and must not come back. */
static void begin_stray(struct client *client)
{
    const struct ghost *ghost = &barred[chance(&seed, COUNT(barred))];

    if (ghost->until < now)
        return;
    kill_client(client);
    strcpy(client->owner, ghost->owner);
    strcpy(client->mode, ghost->mode);
    client->waits = false;
    begin_acquire(client, 1);
}

/* The word of the reply, and the places. */
static void read_reply(struct call *call)
{
    struct strbuf text = {0};
    void *found = NULL;
    redisReader *reader = redisReaderCreate();

    script_reply(&text);
    redisReaderFeed(reader, text.text, text.size);
    redisReaderGetReply(reader, &found);
    const redisReply *reply = found;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 1) {
        snprintf(call->word, sizeof call->word, "%s", reply->element[0]->str);
        if (reply->elements > 2 && reply->element[2]->type == REDIS_REPLY_STRING)
            snprintf(call->places, sizeof call->places, "%s", reply->element[2]->str);
        if (strcmp(call->word, "CLOSED") == 0)
            snprintf(call->places, sizeof call->places, "%s", reply->element[3]->str);
    } else {
        broken("a reply: %s", text.text);
    }
    freeReplyObject(found);
    redisReaderFree(reader);
    strbuf_free(&text);
}

static void run_call(struct client *client)
{
    struct call *call = &client->call;
    struct slice key = slice_of(names[call->key]), words[COUNT(call->words)];

    for (size_t i = 0; i < call->count; i++)
        words[i] = slice_of(call->words[i]);
    const struct script_call run = {.hex = call->script->sha1,
                                    .keys = &key,
                                    .key_count = 1,
                                    .arguments = words,
                                    .argument_count = call->count};
    if (!script_is_known(run.hex) || script_run(&run, &call->unit) != SCRIPT_DONE)
        broken("%s cannot be run", call->script->name);
    read_reply(call);
}

/* The Date was made at some time since it was asked for. */
static struct clockless_reading read_date(struct client *client)
{
    const struct call *call = &client->call;
    int64_t told = one_in(2) ? call->asked : now, passed = now - call->asked;
    int64_t read = clock_of(client), error = ((int)chance(&seed, 3) - 1) * WRONG;

    if (!client->date.read_us || client->date.read_us + DATED < read || one_in(3))
        client->date =
            (struct clockless_reading){read - passed - passed * client->rate / 1000000, read,
                                       kind->dates ? (told + error) / SEC * SEC : 0};
    return clockless_later(&client->date, read);
}

/* Reads the record, and runs the script. */
static void load(struct client *client)
{
    struct call *call = &client->call;
    int64_t read = clock_of(client), version = store[call->key].version;
    const char *text = store[call->key].text;

    /* Another client tells it of a write. */
    if (one_in(8))
        note_recent(client, call->key, text);
    call->is_guessed =
        client->recent.text && client->recent.key == call->key && !call->is_guessed && !one_in(3);
    char *guessed = call->is_guessed ? client->recent.text : NULL;
    if (guessed) {
        text = guessed;
        version = client->recent.version;
        client->recent.text = NULL;
    }
    calls++;
    call->loaded = now;
    call->reading = read_date(client);
    unit_add(&call->unit, slice_of(names[call->key]), UNIT_WRITES);
    unit_restart(&call->unit);
    call->unit.now_us = read;
    struct unit_key *key = &call->unit.keys[0];
    if (text && !clockless_read(&client->known, key, text, strlen(text), &call->reading))
        broken("a record cannot be read");
    run_call(client);
    free(call->put.text);
    call->put =
        (struct put){call->key, version, clockless_print(&client->known, key, &call->reading), ""};
    call->is_run = true;
    free(guessed);
}

static void judge_latch(const struct call *call)
{
    bool there = strcmp(call->word, "ABSENT") != 0;
    bool is_set = strcmp(call->words[1], "set") == 0 && strcmp(call->word, "LATCH") == 0;
    int64_t trip = call->loaded - call->asked;

    if (call->loaded < latch_set)
        return; /* it only looked, before that */
    if (latch_deleted && there && !is_set)
        broken("a latch is there that was deleted");
    if (is_set || !there ? call->loaded < latch_until
                         : kind->dates && call->loaded - trip > latch_over)
        broken("a latch is %s", is_set ? "set anew" : there ? "still there" : "gone");
    if (strcmp(call->words[1], "delete") == 0 && there) {
        latch_deleted = true;
        latch_set = now;
        latch_until = 0;
        latch_over = INT64_MAX;
    } else if (is_set) {
        latch_deleted = false;
        latch_set = now;
        latch_until = call->loaded + LATCH_MS * 990;
        latch_over = call->loaded + LATCH_MS * 1010 + MARGIN + DATES_OFF + trip;
    }
}

/* The call is done: notes the state of the record. */
static void note_done(struct client *client)
{
    struct call *call = &client->call;
    bool placed = *call->places != '\0';

    trace(client->owner, "%s %s, asked at %.3f, read at %.3f: %s", call->script->name,
          call->words[1], (double)(call->sent - START) / SEC, (double)(call->loaded - START) / SEC,
          call->word);
    if (call->script == &script_release) {
        client->is_in = false;
        client->place_until = 0;
        if (client->bar_ms)
            note_ghost(barred, COUNT(barred), client, call->loaded + client->bar_ms * 990);
        if (client->at_least_ms && strcmp(call->word, "RELEASED") == 0)
            note_ghost(ghosts, COUNT(ghosts), client, client->granted + client->at_least_ms * 990);
    }
    deliver(call);
    if (call->script == &script_acquire) {
        bool granted = strcmp(call->word, "GRANTED") == 0;
        if (granted || placed)
            judge_barred(client, call->loaded);
        if (granted)
            judge_grant(client, call->loaded);
        /* A client that was not told of its place may not come back to it. */
        bool is_lost = client->place_until < call->loaded && !*client->places;
        if (placed && (!client->came || is_lost))
            note_arrival(client);
        if (placed)
            client->place_until = call->sent + PLACE_MS * 990;
    } else if (call->script == &script_adjust) {
        paused_until = call->loaded + LEASE_MS * 990;
    } else if (call->script == &script_latch) {
        judge_latch(call);
    }
}

static void answer(struct client *client)
{
    const struct call *call = &client->call;
    const char *word = call->word;

    if (call->script == &script_acquire && strcmp(word, "GRANTED") == 0) {
        int64_t until = call->sent + trust(client, client->lease_ms);
        client->state = HOLDING;
        client->until = until > client->until ? until : client->until;
        judge_holder(client);
    } else if (call->script == &script_acquire && *call->places) {
        client->state = client->state == HOLDING ? HOLDING : WAITING;
        strcpy(client->places, call->places);
    } else if (call->script == &script_renew && strcmp(word, "RENEWED") == 0) {
        client->until = call->sent + trust(client, client->lease_ms);
        judge_holder(client);
    } else if (call->script == &script_renew && client->until > call->loaded) {
        broken("%s, whose lease has %" PRId64 " ms left, is told %s", client->owner,
               (client->until - call->loaded) / MS, word);
    }
    if (call->script == &script_release || call->script == &script_renew ||
        call->script == &script_acquire) {
        if (client->state == IDLE || call->script == &script_release)
            renew_client(client);
    }
    end_call(client);
}

/* The answer does not come. Returns whether the write is done. */
static bool lose_answer(struct client *client)
{
    unsigned fate = chance(&seed, 4);

    if (fate == 0) {
        struct put *slot = keep_put(late, &client->call.put);
        strcpy(slot->owner, client->owner);
        slot->grants = strcmp(client->call.word, "GRANTED") == 0;
        slot->places = *client->call.places;
        slot->deletes = strcmp(client->call.words[1], "delete") == 0;
        slot->loaded = client->call.loaded;
    }
    return fate > 1 && put(&client->call.put);
}

/* The client continues with a new host, or has died. */
static void go_on(struct client *client)
{
    if (client->call.script == &script_release)
        renew_client(client);
    end_call(client);
    renew_host(client);
    client->called = 0;
    if (one_in(3))
        kill_client(client);
}

static void commit(struct client *client)
{
    struct call *call = &client->call;
    bool writes = call->unit.keys[0].record.changed;

    if (call->is_guessed && !writes) {
        call->is_run = false;
        call->asked = now;
        return;
    }
    if (one_in(40)) {
        if (!writes || lose_answer(client))
            note_done(client);
        go_on(client);
        return;
    }
    if (writes && !put(&call->put)) {
        call->is_run = false;
        call->asked = now;
        return;
    }
    if (writes && !call->put.version)
        keep_put(twins, &call->put);
    if (writes) {
        clockless_wrote(&client->known, &call->unit.keys[0], call->put.text, &call->reading);
        note_recent(client, call->key, call->put.text);
    }
    note_done(client);
    answer(client);
}

/* -- a life ------------------------------------------------------------------------------------ */

static void act_holding(struct client *client)
{
    unsigned what = chance(&seed, 100);

    if (client->until <= now)
        renew_client(client); /* it has stopped by itself */
    else if (what < 4)
        kill_client(client);
    else if (what < 35)
        begin_release(client, "ran=1 exit=0");
    else
        begin_renew(client);
}

static void act_waiting(struct client *client)
{
    unsigned what = chance(&seed, 100);

    if (kind->impatient && now - client->born > 3 * SEC)
        begin_release(client, "refused=1");
    else if (what == 0)
        kill_client(client);
    else if (what < 3)
        begin_release(client, "refused=1");
    else if (now - client->called > POLL_US * 6 / 10 || one_in(5))
        begin_acquire(client, ++attempts);
}

static void act(struct client *client)
{
    unsigned what = chance(&seed, 400);

    if (what == 0)
        renew_host(client);
    else if (what == 1 && !kind->strangers && !kind->impatient)
        begin_pause(client);
    else if (what < 24)
        begin_latch(client);
    else if (what < 26 && client->state == IDLE)
        begin_stray(client);
    else if (client->state == HOLDING)
        act_holding(client);
    else if (client->state == WAITING)
        act_waiting(client);
    else
        begin_acquire(client, ++attempts);
}

static void advance(struct client *client)
{
    if (client->call.is_run)
        commit(client);
    else
        load(client);
}

/* A write that was late is done, if nothing else was written meanwhile. */
static void do_late(void)
{
    struct put *one = &late[chance(&seed, COUNT(late))];

    if (!one->text || !one_in(4))
        return;
    bool done = put(one);
    for (struct client *client = clients; done && client < clients + CLIENTS; client++) {
        if (strcmp(client->owner, one->owner) != 0)
            continue;
        if (one->grants)
            judge_grant(client, one->loaded);
        if (one->places && !client->came)
            note_arrival(client);
    }
    if (done && one->key == LATCH) {
        latch_over = INT64_MAX; /* it may be a new one */
        latch_until = one->deletes ? 0 : latch_until;
        latch_deleted = false;
    }
    free(one->text);
    one->text = NULL;
}

/* A write that has made a record is tried once more. No client may notice. */
static void do_twin(void)
{
    struct put *one = &twins[chance(&seed, COUNT(twins))];

    if (one->text && put(one))
        trace("a twin", "makes key %d anew", one->key);
}

/* As etcd.c does it. */
static void purge(void)
{
    const struct client *client = &clients[chance(&seed, CLIENTS)];
    int key = (int)chance(&seed, KEYS);
    int64_t error = ((int)chance(&seed, 3) - 1) * WRONG, read = clock_of(client);
    const struct clockless_reading reading = {read, read,
                                              kind->dates ? (now + error) / SEC * SEC : 0};
    const char *text = store[key].text;

    if (!text || !clockless_has_expired(MARGIN, text, strlen(text), &reading))
        return;
    trace("purge", "of key %d", key);
    free(store[key].text);
    store[key].text = NULL;
    store[key].version = 0;
}

static void step(void)
{
    static const int passes[] = {0, 1, 5, 50, 200, 500, 900}, quick[] = {0, 0, 1, 2, 5, 20, 100};
    struct client *client = &clients[chance(&seed, CLIENTS)];
    bool busy = client->call.script;

    now += (busy ? quick : passes)[chance(&seed, 7)] * MS + chance(&seed, 1000);
    do_late();
    do_twin();
    if (one_in(10))
        purge();
    if (!busy)
        act(client);
    /* Most calls are done at once. */
    bool at_once = !one_in(3);
    for (int i = 0; client->call.script && (i == 0 || at_once); i++) {
        now += quick[chance(&seed, 7)] * MS;
        if (i > 0 && one_in(100))
            kill_client(client);
        else
            advance(client);
    }
    held_at = is_in_use() ? now : held_at;
    longest_idle = now - held_at > longest_idle ? now - held_at : longest_idle;
    if (longest_idle > kind->idle_s * SEC)
        broken("nobody gets the lock, which is free since %.3f s", (double)(held_at - START) / SEC);
}

static void begin_life(void)
{
    now = held_at = START;
    paused_until = latch_set = latch_until = longest_idle = revision = 0;
    latch_deleted = false;
    latch_over = INT64_MAX;
    arrivals = attempts = 0;
    *fault = '\0';
    memset(ghosts, 0, sizeof ghosts);
    memset(barred, 0, sizeof barred);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.number = i, .rate = ((int)chance(&seed, 3) - 1) * 4000};
        renew_host(&clients[i]);
        renew_client(&clients[i]);
    }
}

static void end_life(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        end_call(&clients[i]);
        clockless_end(&clients[i].known);
        free(clients[i].recent.text);
    }
    for (size_t i = 0; i < COUNT(late); i++) {
        free(late[i].text);
        free(twins[i].text);
        late[i].text = twins[i].text = NULL;
    }
    for (int i = 0; i < KEYS; i++) {
        free(store[i].text);
        store[i].text = NULL;
        store[i].version = 0;
    }
}

/* Returns whether nothing was wrong. */
static bool live(unsigned number)
{
    uint64_t end = calls + CALLS;

    seed = number;
    begin_life();
    while (calls < end && !*fault)
        step();
    end_life();
    return !*fault;
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 10) : 28000;
    bool good;

    size_t only = argc > 3 ? (size_t)atoi(argv[3]) : 0;
    traced = argc > 4;
    scripts_begin(NULL);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        uint64_t end = calls + (only ? most : most / COUNT(kinds));
        int64_t idle = 0;
        unsigned lives = 0;
        if (only && only != i + 1)
            continue;
        kind = &kinds[i];
        for (good = true; good && calls < end; lives++) {
            good = live(first + lives);
            idle = longest_idle > idle ? longest_idle : idle;
        }
        if (!tap_ok(good, "%s: %u lives, free for %.1f s at most", kind->name, lives,
                    (double)idle / SEC))
            tap_note("seed %u: %s", first + lives - 1, fault);
        fflush(stdout);
    }
    scripts_end();
    return tap_done();
}
