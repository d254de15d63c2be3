/* Records in etcd. A unit is read by one transaction ("txn") and written by another, on condition
 * that none of its keys has changed meanwhile (mod_revision): nothing is locked, and a request that
 * arrives twice, or late, does nothing. Its refusal tells the records that there are. Leases count
 * as clockless.h says.
 *
 * A lock has further keys beside its record. Its bells, of which there are 16: the messages of a
 * unit are put there, and those who wait watch them. And its line, places in which hosts wait for
 * their turn to write. */
#include <inttypes.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/mem.h"
#include "host/clockless.h"
#include "host/etcd_doctor.h"
#include "host/etcd_gateway.h"
#include "host/http.h"
#include "host/own_clock.h"
#include "host/protobuf.h"
#include "host/recent.h"

/* By how much the clocks of the members may differ, unless the URL says so, us. */
#define MARGIN_US (10 * US_PER_S)
/* How soon a holder listens that may be asked to release the lock, and a stream that has broken is
 * begun anew: most commands are over by then. */
#define PATIENCE_NS NS_PER_SEC
#define BELL        "!bell" /* a hexadecimal digit follows */
#define LINE        "!line" /* the places in it follow */
/* So many operations, and so many conditions, a transaction may have: etcd's --max-txn-ops, where
 * it is not set. */
#define OPERATIONS_MAX 128
/* The revision of an empty etcd. */
#define FIRST_REVISION 1

static struct {
    struct clockless known;
    struct own_clock clock;
    struct clockless_reading date; /* the latest time that a member told */
    struct clockless_reading reading;
    int64_t revision;          /* of that reading */
    int64_t heard;             /* messages up to that revision have been heard */
    bool refusal_told;         /* the refusal of the latest commit told what is recent */
    bool recent_shared;        /* another host was told what is recent, too */
    struct slice watched;      /* the request of the stream */
    int64_t watched_from;      /* and from which revision on */
    struct moment listen_from; /* when a patient client listens; 0: it has not done anything */
    struct moment stream_from; /* when a stream may begin */
    char *lease;               /* of this host's place in a line; NULL: it stands in none */
    char *place;               /* that place, a key; NULL, too */
} etcd = {.known = {.margin_us = MARGIN_US}};

/* -- the line ---------------------------------------------------------------------------------- */

/* Hosts that ask for a lock, and lost to another unit, or see others in the line, line up by etcd's
 * own lock and lease: many that come at once would keep each other and the holder from their
 * writes. The line only sets the pace. A unit that passes it does no harm, as its conditions
 * decide. */

/* How long a host stands in it at most, so that its turn ends before rlock gives the request up. */
#define LINE_MS 2500
/* The request of a lease: its place ends with it, 3 s after a host that has died in its turn. */
#define LINE_TTL "{\"TTL\":\"3\"}"

/* Ends this host's turn or place in the line, if it has one, by ending its lease. If that fails,
 * the lease ends by itself (LINE_TTL). */
static void leave_line(void)
{
    struct host_fault fault;

    if (!etcd.lease)
        return;
    char *body = strbuf_print("{\"ID\":\"%s\"}", etcd.lease);
    http_limit(LINE_MS);
    json_decref(gateway_ask_once("/v3/lease/revoke", body, HTTP_WRITES, &fault));
    http_limit(0);
    free(body);
    free(etcd.lease);
    free(etcd.place);
    etcd.lease = etcd.place = NULL;
}

/* Takes a place in the lock's line, and waits for its turn, for LINE_MS at most. Returns whether
 * the turn has come: if not, the place is given up. */
static bool line_up(struct slice lock)
{
    struct host_fault fault;
    struct strbuf body = {0};
    /* A lease whose grant is not heard does no harm: so it may be asked for again, as a read is. */
    json_t *grant = gateway_ask("/v3/lease/grant", LINE_TTL, HTTP_READS, &fault), *turn = NULL;
    const char *lease = json_string_value(json_object_get(grant, "ID"));

    if (lease) {
        etcd.lease = mem_strdup(lease);
        strbuf_puts(&body, "{\"name\":");
        gateway_add_name(&body, lock, LINE);
        strbuf_printf(&body, ",\"lease\":\"%s\"}", lease);
        http_limit(LINE_MS);
        turn = gateway_ask_once("/v3/lock/lock", body.text, HTTP_WRITES, &fault);
        http_limit(0);
    }
    size_t size;
    if (turn)
        etcd.place = gateway_bytes(turn, "key", &size);
    else
        leave_line();
    strbuf_free(&body);
    json_decref(grant);
    json_decref(turn);
    return etcd.place;
}

/* -- what time it is --------------------------------------------------------------------------- */

/* A time that a member has told is counted on from for so long. Its gateway tells one, gRPC does
 * not. */
#define DATE_US (60 * US_PER_S)

/* Notes the time of a member's host that the latest reply has told. asked_us: when the reply was
 * asked for, by this process's clock. */
static void note_date(int64_t asked_us)
{
    etcd.date = (struct clockless_reading){asked_us, own_clock_now(&etcd.clock), http_date_us()};
}

/* Asks a member for the time of its host, if that was told too long ago. A failure changes nothing:
 * the former one is counted on from. */
static void ask_date(void)
{
    struct host_fault fault;
    int64_t asked_us = own_clock_now(&etcd.clock);

    if (asked_us - etcd.date.read_us <= DATE_US)
        return;
    json_t *status = gateway_status(&fault);
    if (status)
        note_date(asked_us);
    json_decref(status);
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Fields of etcd's messages, as its rpc.proto and kv.proto number them. */
enum { HEADER = 1, REVISION = 3 };                 /* of an answer, and of that */
enum { COMPARE = 1, SUCCESS = 2, FAILURE = 3 };    /* of a transaction */
enum { TARGET = 2, OF_KEY = 3, MOD_REVISION = 6 }; /* of a comparison */
enum { RANGE = 1, PUT = 2, DELETE = 3 };           /* of an operation, and its response */
enum { KEY = 1, VALUE = 2, START_REVISION = 3 };   /* of ranges, puts, and what is watched */
enum { RANGE_END = 2, COUNT_ONLY = 9 };            /* of ranges */
enum { SUCCEEDED = 2, RESPONSES = 3 };             /* of a transaction's answer */
enum { KVS = 2, COUNT = 4 };                       /* of the response to a range */
enum { KV_MOD_REVISION = 3, KV_VALUE = 5 };        /* of a key */
enum { CREATE_REQUEST = 1 };                       /* of what a stream asks */
enum { CREATED = 3, CANCELED = 4, COMPACT_REVISION = 5, EVENTS = 11 }; /* of its messages */
enum { EVENT_KV = 2 };                                                 /* of an event */
#define TARGET_MOD 2

/* Adds an operation to a transaction, and frees it. branch: SUCCESS, or FAILURE of its conditions.
 * kind: RANGE, PUT or DELETE. */
static void add_operation(struct strbuf *txn, unsigned branch, unsigned kind,
                          struct strbuf *operation)
{
    protobuf_wrap(operation, kind);
    protobuf_add_bytes(txn, branch, (struct slice){operation->text, operation->size});
    strbuf_free(operation);
}

/* Adds a read of the record of that name to a transaction. branch: SUCCESS, or FAILURE of its
 * conditions. */
static void add_range(struct strbuf *txn, unsigned branch, struct slice name)
{
    struct strbuf range = {0};
    char *key = gateway_key(name, "");

    protobuf_add_bytes(&range, KEY, slice_of(key));
    add_operation(txn, branch, RANGE, &range);
    free(key);
}

/* Adds the put of a key, NAME and what is behind it, to what a transaction does on success. */
static void add_put(struct strbuf *txn, struct slice name, const char *behind, struct slice value)
{
    struct strbuf put = {0};
    char *key = gateway_key(name, behind);

    protobuf_add_bytes(&put, KEY, slice_of(key));
    protobuf_add_bytes(&put, VALUE, value);
    add_operation(txn, SUCCESS, PUT, &put);
    free(key);
}

/* Adds the question how many places the line for that lock has. */
static void add_count_of_line(struct strbuf *txn, struct slice lock)
{
    struct strbuf range = {0};
    /* All keys that begin with LINE "/": '0' is the byte after '/', and the end is not included. */
    char *from = gateway_key(lock, LINE "/"), *end = gateway_key(lock, LINE "0");

    protobuf_add_bytes(&range, KEY, slice_of(from));
    protobuf_add_bytes(&range, RANGE_END, slice_of(end));
    protobuf_add_number(&range, COUNT_ONLY, 1);
    add_operation(txn, SUCCESS, RANGE, &range);
    free(from);
    free(end);
}

/* The key that the response to a range of one key has found, a message KeyValue; empty: none. */
static struct slice row_of(struct slice response)
{
    return protobuf_find(protobuf_find(response, RANGE).bytes, KVS).bytes;
}

/* Reads the record of the key from the key's value in etcd, "text", at that version; 0: there is no
 * such key. Returns false if the value is not a record of rlock's. */
static bool take_record(struct unit_key *key, struct slice text, int64_t version)
{
    key->record.version = version;
    return version == 0 || clockless_read(&etcd.known, key, text.at, text.size, &etcd.reading);
}

/* Notes that the unit's records are those of now: in the unit, by this process's clock; and, in
 * etcd.reading, what that is by the clock of a member, as far as one has told its date. */
static void date_unit(struct unit *unit)
{
    unit->now_us = own_clock_now(&etcd.clock);
    etcd.reading = clockless_later(&etcd.date, unit->now_us);
}

/* Loads the unit from the records that this process has written or was told last, without asking
 * etcd, and forgets these. Returns false if it does not know all of them, or they have probably
 * changed: nothing is loaded. */
static bool load_recent(struct unit *unit)
{
    /* Where another waiter was told the record, too, one that asks does so at once; any other unit,
     * such as the release behind a command, would find it changed. */
    bool known = recent_has(unit) && (unit->asks || !etcd.recent_shared);

    date_unit(unit); /* if the unit is committed, the records are those of now */
    for (size_t i = 0; known && i < unit->count; i++) {
        const struct recent *key = recent_find(unit->keys[i].name);
        known = take_record(&unit->keys[i], key->text, key->version);
    }
    if (!known)
        unit_restart(unit); /* some may be there already */
    recent_forget();
    /* A refusal tells the records as well as a reading does: these are not a guess. */
    unit->guessed = known && !etcd.refusal_told;
    etcd.refusal_told = etcd.recent_shared = false;
    return known;
}

/* Sends the transaction "txn", and frees its text. True: *answer is valid until the next request.
 * False, with the fault: it failed. */
static bool transact(struct strbuf *txn, enum http_effect effect, struct slice *answer,
                     struct host_fault *fault)
{
    bool done = gateway_call("/etcdserverpb.KV/Txn", (struct slice){txn->text, txn->size}, effect,
                             answer, fault);

    strbuf_free(txn);
    return done;
}

/* Takes the unit's records from the answer to a transaction of read_unit(), whose responses are in
 * the order of its operations: one for each key, and then, if "in_line" is not NULL, how many
 * places the line for the first key has. Returns HOST_FAILED with the fault if a key is missing or
 * is not a record. */
static enum host_outcome take_records(struct unit *unit, struct slice answer, int64_t *in_line,
                                      struct host_fault *fault)
{
    struct protobuf_field response;
    bool sound = true;
    size_t taken = 0;

    while (protobuf_take(&answer, &response)) {
        if (response.number != RESPONSES)
            continue;
        if (taken < unit->count) {
            struct slice row = row_of(response.bytes);
            struct slice text = protobuf_find(row, KV_VALUE).bytes;
            int64_t version = protobuf_find(row, KV_MOD_REVISION).value;

            sound &= take_record(&unit->keys[taken++], text, version);
        } else if (in_line) {
            *in_line = protobuf_find(protobuf_find(response.bytes, RANGE).bytes, COUNT).value;
        }
    }
    if (taken == unit->count && sound)
        return HOST_DONE;
    if (taken < unit->count)
        host_fail(fault, WIRE_STRANGER, "its answer lacks a key");
    else
        host_fail(fault, WIRE_DRIVER, "a key of rlock's holds other data");
    return HOST_FAILED;
}

/* Reads the records of all keys of the unit from etcd, in one transaction, so that they are of one
 * moment. *in_line: takes how many places the line for its first key has; NULL: do not ask. */
static enum host_outcome read_unit(struct unit *unit, int64_t *in_line, struct host_fault *fault)
{
    struct strbuf txn = {0};
    struct slice answer;

    for (size_t i = 0; i < unit->count; i++)
        add_range(&txn, SUCCESS, unit->keys[i].name);
    if (in_line)
        add_count_of_line(&txn, unit->keys[0].name);
    if (!transact(&txn, HTTP_READS, &answer, fault))
        return HOST_FAILED;
    date_unit(unit);
    etcd.revision = protobuf_find(protobuf_find(answer, HEADER).bytes, REVISION).value;
    if (!etcd.heard) /* no client here waits for what was told before the first unit */
        etcd.heard = etcd.revision;
    return take_records(unit, answer, in_line, fault);
}

/* Loads the records of a unit, from etcd only if they are not known already. Where the unit asks
 * for a lock, and others stand in the line of its first key to write that, this process lines up
 * first, and then reads what they have written. */
static enum host_outcome load_unit(struct unit *unit, struct host_fault *fault)
{
    int64_t in_line = 0;

    unit->now_us = own_clock_now(&etcd.clock);
    if (unit->count == 0)
        return HOST_DONE;
    ask_date();
    if (load_recent(unit))
        return HOST_DONE;
    bool may_line_up = unit->asks && !etcd.lease; /* it stands in no line yet */
    enum host_outcome outcome = read_unit(unit, may_line_up ? &in_line : NULL, fault);
    if (outcome != HOST_DONE || in_line == 0)
        return outcome;
    line_up(unit->keys[0].name); /* if its turn has not come, it has waited long enough */
    unit_restart(unit);
    return read_unit(unit, NULL, fault);
}

/* -- messages ---------------------------------------------------------------------------------- */

/* The name of the lock that a channel is about: KEY of KEY:OWNER. */
static struct slice lock_of(struct slice channel)
{
    size_t size = channel.size;

    while (size > 0 && channel.at[size - 1] != ':')
        size--;
    return (struct slice){channel.at, size > 0 ? size - 1 : channel.size};
}

/* The number of a channel's bell, from 0: of so many that a message to one waiter wakes few others,
 * and of so few that a message to all is a few keys. */
static unsigned number_of_bell(struct slice channel)
{
    return hash_add(HASH_START, channel.at, channel.size) % 16;
}

/* Returns what the name of the channel's bell has behind the lock's, such as "!bell7"; the next
 * call overwrites it. */
static const char *bell_of(struct slice channel)
{
    static char bell[] = BELL "0";

    bell[strlen(BELL)] = "0123456789abcdef"[number_of_bell(channel)];
    return bell;
}

/* Whether both channels have the same bell of the same lock. */
static bool share_bell(struct slice channel, struct slice other)
{
    return number_of_bell(channel) == number_of_bell(other) &&
           slice_equal(lock_of(channel), lock_of(other));
}

/* Adds a put of the bell of that channel to a transaction, with all messages of the unit for it, as
 * etcd takes one put for each key: lines "CHANNEL TEXT". Where the unit tells only one message, an
 * empty line and the lock's record follow; two empty lines and the record where it tells two, as
 * the record is shared; neither where it tells more, for the record's size. texts: the records that
 * the unit writes; NULL for a key that it does not. */
static void add_bell(struct strbuf *txn, const struct unit *unit, char *const *texts,
                     struct slice of_channel)
{
    struct strbuf value = {0};
    struct slice lock = lock_of(of_channel);

    for (size_t i = 0; i < unit->message_count; i++) {
        const struct unit_message *message = &unit->messages[i];
        if (!share_bell(message->channel, of_channel))
            continue;
        char *channel = record_print_name(message->channel);
        char *text = record_print_name(message->text);
        strbuf_printf(&value, "%s %s\n", channel, text);
        free(channel);
        free(text);
    }
    const char *empty_lines = unit->message_count == 1 ? "\n" : "\n\n";
    for (size_t i = 0; i < unit->count && unit->message_count <= 2; i++)
        if (texts[i] && slice_equal(unit->keys[i].name, lock))
            strbuf_printf(&value, "%s%s", empty_lines, texts[i]);
    add_put(txn, lock, bell_of(of_channel), (struct slice){value.text, value.size});
    strbuf_free(&value);
}

/* Adds puts of the bells of the unit's messages from number "from" on, at most "room" puts. Returns
 * the number of the first message that is left. */
static size_t add_bells(struct strbuf *txn, const struct unit *unit, char *const *texts,
                        size_t from, size_t room)
{
    for (; from < unit->message_count; from++) {
        struct slice channel = unit->messages[from].channel;
        size_t first = 0; /* message of this bell */
        while (!share_bell(unit->messages[first].channel, channel))
            first++;
        if (first < from)
            continue; /* it was put with that one */
        if (room-- == 0)
            break;
        add_bell(txn, unit, texts, channel);
    }
    return from;
}

/* Tells clients the messages of a bell that was put, lines "CHANNEL TEXT", and notes the lock's
 * record that may stand behind an empty line, as what is recent. Behind two empty lines it was told
 * to another host, too. event: a message Event of etcd. */
static void take_event(struct slice event)
{
    struct slice row = protobuf_find(event, EVENT_KV).bytes;
    struct slice value = protobuf_find(row, KV_VALUE).bytes;
    struct strbuf text ENDED_BY(strbuf_free) = {0}, name ENDED_BY(strbuf_free) = {0};
    int64_t version = protobuf_find(row, KV_MOD_REVISION).value;

    if (version <= etcd.heard) /* as of a stream that has begun with an earlier revision */
        return;
    strbuf_add(&text, value.at, value.size);
    char *rest = text.text, *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        char *channel = strsep(&line, " ");
        size_t length = strlen(channel), told = line ? strlen(line) : 0;
        if (!line || !record_read_name(channel, &length) || !record_read_name(line, &told))
            continue;
        struct slice lock = lock_of((struct slice){channel, length});
        strbuf_cut(&name, 0);
        strbuf_add(&name, lock.at, lock.size);
        host_tell((struct slice){channel, length}, (struct slice){line, told});
    }
    recent_forget();
    etcd.recent_shared = rest && *rest == '\n';
    if (etcd.recent_shared)
        rest++;
    if (line && rest && *rest && name.size > 0)
        recent_note((struct slice){name.text, name.size}, slice_of(rest), version);
}

/* Ends the stream of messages. The next one begins in a while, with the next member. */
static void leave_stream(void)
{
    http_stream_end();
    http_choose(http_server() + 1);
    etcd.stream_from = moment_plus(moment_now(), PATIENCE_NS);
}

/* Takes one message of the stream, a WatchResponse of etcd, and notes up to which revision the
 * messages of bells have been heard. */
static void take_message(struct slice message)
{
    int64_t revision = protobuf_find(protobuf_find(message, HEADER).bytes, REVISION).value;
    int64_t compacted = protobuf_find(message, COMPACT_REVISION).value;
    bool canceled = protobuf_find(message, CANCELED).value, tells = false;
    bool is_earlier = protobuf_find(message, CREATED).value && revision < etcd.watched_from - 1;
    struct protobuf_field field;

    while (protobuf_take(&message, &field)) {
        if (field.number != EVENTS)
            continue;
        take_event(field.bytes);
        tells = true;
    }
    if (tells && revision > etcd.heard)
        etcd.heard = revision;
    /* An event that was compacted away is not heard: a waiter asks now and then. */
    if (compacted > etcd.heard)
        etcd.heard = compacted;
    /* The member was restored from a snapshot, or is behind: all that it has told is heard, as some
     * of that may have been told since. Some is heard twice. */
    if (is_earlier)
        etcd.heard = FIRST_REVISION;
    if (canceled || is_earlier)
        leave_stream();
}

/* The body of a stream that watches each bell that a client listens to, from that revision on: one
 * request for each. The caller frees. */
static struct strbuf watch_request(int64_t from)
{
    struct strbuf body = {0};

    for (size_t i = 0; i < host_channels.count; i++) {
        struct slice channel = host_channels.at[i].name;
        struct strbuf create = {0};
        size_t first = 0; /* channel with this bell */
        while (!share_bell(host_channels.at[first].name, channel))
            first++;
        if (first < i)
            continue; /* it is asked for already */
        char *key = gateway_key(lock_of(channel), bell_of(channel));
        protobuf_add_bytes(&create, KEY, slice_of(key));
        protobuf_add_number(&create, START_REVISION, from);
        protobuf_wrap(&create, CREATE_REQUEST);
        http_add_message(&body, (struct slice){create.text, create.size});
        strbuf_free(&create);
        free(key);
    }
    return body;
}

/* Begins a stream, if one is needed for the channels that are listened to, and returns the
 * descriptor to wait for; -1: none. *ms: read_stream() must be called by then; -1: any time. It is
 * called when there is nothing to answer. */
static int stream_fd(enum host_ears ears, int *ms)
{
    struct strbuf wanted ENDED_BY(strbuf_free) = watch_request(0);
    struct slice request = {wanted.text, wanted.size};
    struct moment from = etcd.stream_from;

    leave_line(); /* not before the answer was sent, which starts a command */
    if (ears == HOST_PATIENT && from.ns < etcd.listen_from.ns)
        from = etcd.listen_from;
    /* A stream stays as long as the same locks are listened to, or none: a waiter that asks leaves
     * its channel for a moment. */
    if (ears != HOST_NO_LISTENER &&
        !(http_stream_is_open() && slice_equal(request, etcd.watched))) {
        if (!moment_reached(from, moment_now())) {
            *ms = (int)(moment_until(moment_now(), from) / NS_PER_MS) + 1;
            return -1;
        }
        etcd.watched_from = etcd.heard + 1;
        struct strbuf body = watch_request(etcd.watched_from);
        http_stream_begin("/etcdserverpb.Watch/Watch", (struct slice){body.text, body.size});
        strbuf_free(&body);
        slice_free(&etcd.watched);
        etcd.watched = slice_duplicate(request);
    }
    return http_stream_fd(ms);
}

/* Takes what has come by the stream. Returns true, also where the stream broke: the next one begins
 * where this one ended, so nothing is missed. */
static bool read_stream(void)
{
    if (!http_stream_read(take_message))
        leave_stream();
    return true;
}

/* -- what is over ------------------------------------------------------------------------------ */

/* How many keys a purge looks at: etcd takes 128 conditions and changes in one request. */
#define PURGED_KEYS 60
/* One commit of so many purges. A run commits two units or more, so this keeps up with locks that
 * are used once. */
#define PURGE_EVERY 64

/* Whether a key of etcd may go: a record that has expired, or a bell, as all who watch have heard
 * it by now. row: a KeyValue, as JSON. */
static bool is_over(const json_t *row, const struct clockless_reading *reading)
{
    size_t length, size, end = strlen(BELL "0");
    char *name = gateway_name(row, &length), *text = gateway_bytes(row, "value", &size);
    bool is_bell = length >= end && memcmp(name + length - end, BELL, strlen(BELL)) == 0;
    bool over = is_bell || clockless_has_expired(etcd.known.margin_us, text, size, reading);

    free(name);
    free(text);
    return over;
}

/* Deletes what is over of the keys that were not written for longest, of those with the same
 * --prefix as that lock, unless it has been written meanwhile. A failure is not reported: the next
 * purge does what this one fails to do. */
static void purge_expired(struct slice lock)
{
    /* "body" is the read, and then the transaction: its conditions, while "deletes" gathers what it
     * does, which comes behind them. */
    struct strbuf body = {0}, deletes = {0};
    struct clockless_reading reading = {.asked_us = own_clock_now(&etcd.clock)};
    /* The names of all these locks begin with "PREFIX:" of PREFIX:{KEY}. */
    const char *brace = memchr(lock.at, '{', lock.size);
    struct slice start = {lock.at, brace ? (size_t)(brace - lock.at) : lock.size};
    struct host_fault fault;
    json_t *row;
    size_t i;

    strbuf_printf(&body, "{\"sort_order\":\"ASCEND\",\"sort_target\":\"MOD\",\"limit\":\"%d\",",
                  PURGED_KEYS);
    gateway_add_range(&body, start);
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, HTTP_READS, &fault);
    reading.read_us = own_clock_now(&etcd.clock);
    reading.date_us = reply ? http_date_us() : 0;
    strbuf_cut(&body, 0);
    json_array_foreach(json_object_get(reply, "kvs"), i, row)
    {
        const char *key = json_string_value(json_object_get(row, "key"));
        if (!key || !is_over(row, &reading))
            continue;
        strbuf_printf(
            &body, "%s{\"target\":\"MOD\",\"mod_revision\":\"%" PRId64 "\",\"key\":\"%s\"}",
            deletes.size ? "," : "{\"compare\":[", gateway_number(row, "mod_revision"), key);
        strbuf_printf(&deletes, "%s{\"request_delete_range\":{\"key\":\"%s\"}}",
                      deletes.size ? "," : "],\"success\":[", key);
    }
    json_decref(reply);
    if (deletes.size) {
        strbuf_printf(&body, "%s]}", deletes.text);
        json_decref(gateway_ask("/v3/kv/txn", body.text, HTTP_WRITES, &fault));
    }
    strbuf_free(&body);
    strbuf_free(&deletes);
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Adds the condition of a transaction that the key has not changed since it was read. */
static void add_condition(struct strbuf *txn, const struct unit_key *key)
{
    struct strbuf condition = {0};
    char *name = gateway_key(key->name, "");

    protobuf_add_number(&condition, TARGET, TARGET_MOD);
    protobuf_add_bytes(&condition, OF_KEY, slice_of(name));
    protobuf_add_number(&condition, MOD_REVISION, key->record.version);
    protobuf_add_bytes(txn, COMPARE, (struct slice){condition.text, condition.size});
    strbuf_free(&condition);
    free(name);
}

/* Returns the transaction that writes a unit, if nothing has changed that it read, and otherwise
 * reads its keys; the caller frees. texts: takes the records that it writes, which the caller
 * frees; NULL stays for a key that it does not write. *rung: how many messages it tells; it may
 * lack room for the others. */
static struct strbuf commit_request(const struct unit *unit, char **texts, size_t *rung)
{
    struct strbuf txn = {0};
    size_t room = OPERATIONS_MAX;

    /* A key that was only read must not have changed either. */
    for (size_t i = 0; i < unit->count; i++)
        add_condition(&txn, &unit->keys[i]);
    for (size_t i = 0; i < unit->count; i++) {
        if (!unit->keys[i].record.changed)
            continue;
        texts[i] = clockless_print(&etcd.known, &unit->keys[i], &etcd.reading);
        add_put(&txn, unit->keys[i].name, "", slice_of(texts[i]));
        room--;
    }
    if (etcd.place && room > 0) { /* ends this host's turn: it is the next one's */
        struct strbuf left = {0};
        protobuf_add_bytes(&left, KEY, slice_of(etcd.place));
        add_operation(&txn, SUCCESS, DELETE, &left);
        room--;
    }
    *rung = add_bells(&txn, unit, texts, 0, room);
    for (size_t i = 0; i < unit->count; i++)
        add_range(&txn, FAILURE, unit->keys[i].name);
    return txn;
}

/* Notes that the unit was written at that revision: its records are what is recent, for the next
 * unit. texts: the records that were written; NULL for a key that was not. */
static void note_commit(const struct unit *unit, char *const *texts, int64_t revision)
{
    recent_forget();
    for (size_t i = 0; i < unit->count; i++) {
        const struct unit_key *key = &unit->keys[i];
        if (texts[i]) {
            clockless_wrote(&etcd.known, key, texts[i], &etcd.reading);
            recent_note(key->name, slice_of(texts[i]), revision);
        } else if (!key->record.version) { /* it was not there, and is not there now */
            recent_note(key->name, slice_of(""), 0);
        }
    }
    /* A holder listens only in a while: most commands are over by then. */
    if (!etcd.listen_from.ns)
        etcd.listen_from = moment_plus(moment_now(), PATIENCE_NS);
    /* A client that begins to listen with this unit hears what was told since the unit was read,
     * and nothing that was told before. */
    if (!http_stream_is_open() && moment_reached(etcd.stream_from, moment_now()))
        etcd.heard = etcd.revision > etcd.heard ? etcd.revision : etcd.heard;
}

/* Notes the records in the refusal of a commit as what is recent, for the next attempt. */
static void note_refusal(const struct unit *unit, struct slice answer)
{
    struct protobuf_field field;
    size_t told = 0;

    recent_forget();
    while (told < unit->count && protobuf_take(&answer, &field)) {
        struct slice row = row_of(field.bytes), text = protobuf_find(row, KV_VALUE).bytes;
        if (field.number == RESPONSES)
            recent_note(unit->keys[told++].name, text.size ? text : slice_of(""),
                        protobuf_find(row, KV_MOD_REVISION).value);
    }
    etcd.refusal_told = true;
}

/* Returns the revision at which the refused unit was written all the same, as when a proxy has
 * asked twice: its refusal tells the very records that it was to write. No two units write the
 * same, as a record has the time of each change. 0: another unit was quicker. texts: as of
 * commit_request(). */
static int64_t revision_if_written(const struct unit *unit, char *const *texts, struct slice answer)
{
    struct protobuf_field field;
    int64_t revision = 0;
    size_t told = 0;

    while (told < unit->count && protobuf_take(&answer, &field)) {
        if (field.number != RESPONSES)
            continue;
        struct slice row = row_of(field.bytes), text = protobuf_find(row, KV_VALUE).bytes;
        const char *wanted = texts[told++];
        if (wanted && !slice_equal(text, slice_of(wanted)))
            return 0;
        if (wanted)
            revision = protobuf_find(row, KV_MOD_REVISION).value;
    }
    return revision;
}

/* Tells the messages from number "rung" on, for which the commit had no room. A failure is not
 * reported: a waiter that misses its message asks at its next heartbeat. */
static void ring_rest(const struct unit *unit, char *const *texts, size_t rung)
{
    struct host_fault fault;
    struct slice answer;
    bool told = true;

    while (told && rung < unit->message_count) {
        struct strbuf txn = {0};
        rung = add_bells(&txn, unit, texts, rung, OPERATIONS_MAX);
        told = transact(&txn, HTTP_WRITES, &answer, &fault);
    }
}

/* Writes a unit by one transaction. HOST_AGAIN: another unit was quicker; at once (unit->again) if
 * its records were a guess, with what the refusal told, or if this host has had its turn in the
 * line, where a unit that asks for a lock lines up. */
static enum host_outcome commit_unit(struct unit *unit, struct host_fault *fault)
{
    char *texts[UNIT_KEYS_MAX] = {NULL};
    size_t rung;
    struct strbuf txn = commit_request(unit, texts, &rung);
    struct slice answer;
    bool answered = transact(&txn, HTTP_WRITES, &answer, fault);
    int64_t revision = 0; /* at which it is written; 0: it is not */
    if (answered)
        revision = protobuf_find(answer, SUCCEEDED).value
                       ? protobuf_find(protobuf_find(answer, HEADER).bytes, REVISION).value
                       : revision_if_written(unit, texts, answer);
    bool done = revision > 0;

    if (done) {
        note_commit(unit, texts, revision);
        ring_rest(unit, texts, rung);
        if (unit->count > 0 && random() % PURGE_EVERY == 0)
            purge_expired(unit->keys[0].name);
    } else if (answered && unit->guessed) {
        note_refusal(unit, answer);
        unit->again = true;
    } else if (answered && unit->asks) {
        unit->again = etcd.lease || line_up(unit->keys[0].name);
    }
    for (size_t i = 0; i < unit->count; i++)
        free(texts[i]);
    return done ? HOST_DONE : answered ? HOST_AGAIN : HOST_FAILED;
}

/* -- opening, listing -------------------------------------------------------------------------- */

/* Finds a member that answers, logs in, if there is a user, and begins this process's clock with
 * the member's time, for the sake of times that are shown to hosts whose clocks are wrong. False,
 * with the fault: none will do. */
static bool open_etcd(const struct host_target *target, const char *table, struct host_fault *fault)
{
    int64_t ns, asked_us = own_clock_now(&etcd.clock);

    *fault = (struct host_fault){.broken = false};
    if (*target->margin) /* a duration, or "never" */
        etcd.known.margin_us =
            duration_parse(target->margin, &ns) ? ns / NS_PER_US : CLOCKLESS_NEVER;
    gateway_open(target, table);
    if (*target->user) {
        if (!gateway_log_in(fault))
            return false;
    } else {
        json_t *status = gateway_status(fault);
        if (!status)
            return false;
        json_decref(status);
    }
    own_clock_begin(&etcd.clock, http_date_us());
    note_date(asked_us + etcd.clock.offset_us); /* the clock had no offset yet when it was asked */
    return true;
}

/* Calls "each" for the names of all records that begin with the prefix, also of those that have
 * expired. False, with the fault: etcd could not be asked. */
static bool list_names(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                       struct host_fault *fault)
{
    struct strbuf body = {0};
    json_t *row;
    size_t i;

    strbuf_puts(&body, "{\"keys_only\":true,");
    gateway_add_range(&body, prefix);
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, HTTP_READS, fault);
    json_array_foreach(json_object_get(reply, "kvs"), i, row)
    {
        size_t size;
        char *name = gateway_name(row, &size);
        const char *end = strrchr(name, '}'), *behind = end ? end : name; /* of PREFIX:{KEY} */
        bool is_record = !strstr(behind, BELL) && !strstr(behind, LINE);
        if (size > 0 && is_record && record_read_name(name, &size))
            each(arg, (struct slice){name, size});
        free(name);
    }
    bool done = reply;
    json_decref(reply);
    strbuf_free(&body);
    return done;
}

/* Makes the check of that name for rlock doctor, which replies with its finding. False, with the
 * fault: it could not be made. */
static bool ask_for_doctor(const char *what, struct strbuf *out, struct host_fault *fault)
{
    return etcd_doctor_ask(what, &(struct etcd_check){etcd.known.margin_us, out, fault});
}

/* For struct host_store: etcd has no tables to make. Returns true. */
static bool make_nothing(const char *user, struct host_fault *fault)
{
    (void)user;
    (void)fault;
    return true;
}

const struct host_store host_etcd = {.open = open_etcd,
                                     .load = load_unit,
                                     .commit = commit_unit,
                                     .abandon = leave_line,
                                     .list = list_names,
                                     .poll_fd = stream_fd,
                                     .read_messages = read_stream,
                                     .ask = ask_for_doctor,
                                     .make = make_nothing};
