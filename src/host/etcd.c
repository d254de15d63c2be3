/* Records in etcd, and what the doctor asks it. A unit is read by one request and written by
 * another, on condition that none of its keys has changed meanwhile (mod_revision): nothing is
 * locked, and a request that arrives twice, or late, does nothing. Leases count as clockless.h
 * says. The messages of a unit are put into keys that those who wait watch, the bells of a lock. It
 * has 16, so that a message to one waiter does not wake all. */
#include <inttypes.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/mem.h"
#include "host/clockless.h"
#include "host/etcd_gateway.h"
#include "host/http.h"
#include "host/own_clock.h"

/* By how much the clocks of the members may differ, unless the URL says so, us. */
#define MARGIN_US (10 * US_PER_S)
/* How soon a holder listens that may be asked to release the lock, and when a stream that has
 * broken is begun anew: most commands are over by then. */
#define PATIENCE_NS NS_PER_SEC
#define BELL        "!bell" /* a hexadecimal digit follows */
#define LINE        "!line" /* the places in it follow */

static struct {
    struct clockless known;
    struct own_clock clock;
    struct clockless_reading reading;
    int64_t revision;    /* of that reading */
    int64_t heard;       /* messages up to that revision have been heard */
    char *watched;       /* the request of the stream */
    struct moment since; /* when a client listens that is patient; 0: it has not done anything */
    struct moment anew;  /* when a stream may begin */
    char *lease;         /* of this host's place in a line; NULL: it stands in none */
    char version[40];
} etcd = {.known = {.margin_us = MARGIN_US}};

/* Not a bell, nor a place in a line. */
static bool is_of_record(const char *name)
{
    const char *end = strrchr(name, '}');

    return !end || end[1] != '!';
}

static bool is_bell(const char *name, size_t length)
{
    size_t size = strlen(BELL "0");

    return length >= size && memcmp(name + length - size, BELL, strlen(BELL)) == 0;
}

/* -- the line ---------------------------------------------------------------------------------- */

/* Hosts that ask for a lock, and lost to another unit, line up by etcd's own lock and lease: many
 * that come at once would keep each other and the holder from their writes. The line only sets the
 * pace. A unit that passes it does no harm, as its conditions decide. */

/* How long a host stands in it at most, and how long its place stays if it dies in its turn, s. */
#define LINE_MS  3000
#define LINE_TTL "{\"TTL\":\"5\"}"

static void leave_line(void)
{
    struct host_fault fault;

    if (!etcd.lease)
        return;
    char *body = strbuf_print("{\"ID\":\"%s\"}", etcd.lease);
    json_decref(gateway_ask_once("/v3/lease/revoke", body, true, &fault));
    free(body);
    free(etcd.lease);
    etcd.lease = NULL;
}

/* Returns whether it is this host's turn. */
static bool line_up(struct piece lock)
{
    struct host_fault fault;
    struct strbuf body = {0};
    json_t *grant = gateway_ask("/v3/lease/grant", LINE_TTL, false, &fault), *turn = NULL;
    const char *lease = json_string_value(json_object_get(grant, "ID"));

    if (lease) {
        etcd.lease = mem_strdup(lease);
        strbuf_puts(&body, "{\"name\":");
        gateway_add_name(&body, lock, LINE);
        strbuf_printf(&body, ",\"lease\":\"%s\"}", lease);
        http_limit(LINE_MS);
        turn = gateway_ask_once("/v3/lock/lock", body.text, true, &fault);
        http_limit(0);
    }
    bool first = turn;
    if (!first)
        leave_line();
    strbuf_free(&body);
    json_decref(grant);
    json_decref(turn);
    return first;
}

/* -- reading ----------------------------------------------------------------------------------- */

static bool take_record(struct unit_key *key, const json_t *response)
{
    const json_t *rows = json_object_get(json_object_get(response, "response_range"), "kvs");
    const json_t *row = json_array_get(rows, 0);
    size_t size;

    if (!row)
        return true;
    char *text = gateway_bytes(row, "value", &size);
    bool sound = clockless_read(&etcd.known, key, text, size, &etcd.reading);
    key->record.version = gateway_number(row, "mod_revision");
    free(text);
    return sound;
}

static enum host_outcome load(struct unit *unit, struct host_fault *fault)
{
    struct strbuf body = {0};
    bool sound = true;

    etcd.reading.asked_us = unit->now_us = own_clock_now(&etcd.clock);
    if (unit->count == 0)
        return HOST_DONE;
    for (size_t i = 0; i < unit->count; i++) {
        strbuf_puts(&body, i == 0 ? "{\"success\":[{\"request_range\":{\"key\":"
                                  : "}},{\"request_range\":{\"key\":");
        gateway_add_name(&body, unit->keys[i].name, "");
    }
    strbuf_puts(&body, "}}]}");
    json_t *reply = gateway_ask("/v3/kv/txn", body.text, false, fault);
    strbuf_free(&body);
    if (!reply)
        return HOST_FAILED;
    etcd.reading.read_us = unit->now_us = own_clock_now(&etcd.clock);
    etcd.reading.date_us = http_date_us();
    etcd.revision = gateway_number(json_object_get(reply, "header"), "revision");
    if (!etcd.heard)
        etcd.heard = etcd.revision;
    const json_t *responses = json_object_get(reply, "responses");
    for (size_t i = 0; i < unit->count; i++)
        sound &= take_record(&unit->keys[i], json_array_get(responses, i));
    json_decref(reply);
    if (!sound)
        host_fail(fault, WIRE_DRIVER, "a key of rlock's holds other data");
    return sound ? HOST_DONE : HOST_FAILED;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void add_put(struct strbuf *body, struct piece name, const char *behind, const char *value,
                    size_t size)
{
    strbuf_puts(body, "{\"request_put\":{\"key\":");
    gateway_add_name(body, name, behind);
    strbuf_puts(body, ",\"value\":");
    gateway_add_bytes(body, value, size);
    strbuf_puts(body, "}}");
}

/* The lock that a channel is about: KEY of KEY:OWNER. */
static struct piece lock_of(struct piece channel)
{
    size_t size = channel.size;

    while (size > 0 && channel.at[size - 1] != ':')
        size--;
    return (struct piece){channel.at, size > 0 ? size - 1 : channel.size};
}

static unsigned number_of_bell(struct piece channel)
{
    return hash_add(HASH_START, channel.at, channel.size) % 16;
}

/* How the name of its key ends. The next call changes it. */
static const char *bell_of(struct piece channel)
{
    static char bell[] = BELL "0";

    bell[strlen(BELL)] = "0123456789abcdef"[number_of_bell(channel)];
    return bell;
}

static bool share_bell(struct piece channel, struct piece other)
{
    return number_of_bell(channel) == number_of_bell(other) &&
           piece_equal(lock_of(channel), lock_of(other));
}

/* Adds a put of all messages for the bell of that channel, "CHANNEL TEXT" in lines: etcd takes one
 * for each key. */
static void add_bell(struct strbuf *body, const struct unit *unit, struct piece of_channel)
{
    struct strbuf value = {0};

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
    add_put(body, lock_of(of_channel), bell_of(of_channel), value.text, value.size);
    strbuf_free(&value);
}

static bool is_first_of_bell(const struct unit *unit, size_t number)
{
    size_t i = 0;

    while (!share_bell(unit->messages[i].channel, unit->messages[number].channel))
        i++;
    return i == number;
}

static void take_event(const json_t *event)
{
    const json_t *row = json_object_get(event, "kv");
    size_t size;

    if (gateway_number(row, "mod_revision") <= etcd.heard)
        return;
    char *text = gateway_bytes(row, "value", &size), *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *channel = strsep(&line, " ");
        size_t length = strlen(channel), told = line ? strlen(line) : 0;
        if (line && record_read_name(channel, &length) && record_read_name(line, &told))
            host_tell((struct piece){channel, length}, (struct piece){line, told});
    }
    free(text);
}

/* The stream is begun anew in a while, with the next member. */
static void leave_stream(void)
{
    http_stream_end();
    http_choose(http_server() + 1);
    etcd.anew = moment_plus(moment_now(), PATIENCE_NS);
}

/* Takes one line of the stream. A message that was compacted away is not heard: a waiter asks now
 * and then. */
static void take_line(const char *line)
{
    json_t *reply = json_loads(line, 0, NULL);
    const json_t *result = json_object_get(reply, "result");
    int64_t revision = gateway_number(json_object_get(result, "header"), "revision");
    int64_t compacted = gateway_number(result, "compact_revision");
    const json_t *events = json_object_get(result, "events");

    for (size_t i = 0; i < json_array_size(events); i++)
        take_event(json_array_get(events, i));
    if (json_array_size(events) > 0 && revision > etcd.heard)
        etcd.heard = revision;
    if (compacted > etcd.heard)
        etcd.heard = compacted;
    if (!result || json_is_true(json_object_get(result, "canceled")))
        leave_stream();
    json_decref(reply);
}

/* One request for each bell that somebody listens to, from that revision on. */
static char *watch_request(int64_t from)
{
    struct strbuf body = {0};

    for (size_t i = 0; i < host_channels.count; i++) {
        struct piece channel = host_channels.at[i].name;
        size_t first = 0;
        while (!share_bell(host_channels.at[first].name, channel))
            first++;
        if (first < i)
            continue;
        strbuf_puts(&body, "{\"create_request\":{\"key\":");
        gateway_add_name(&body, lock_of(channel), bell_of(channel));
        strbuf_printf(&body, ",\"start_revision\":\"%" PRId64 "\"}}\n", from);
    }
    return strbuf_detach(&body);
}

/* A stream stays as long as the same locks are listened to, or none: a waiter that asks leaves its
 * channel for a moment. */
static int rest(enum host_ears ears, int *ms)
{
    char *wanted = watch_request(0);
    bool hears = http_stream_is_open() && strcmp(wanted, etcd.watched) == 0;
    struct moment from = etcd.anew;

    if (ears == HOST_PATIENT && from.ns < etcd.since.ns)
        from = etcd.since;
    if (ears == HOST_NO_LISTENER || hears) {
        free(wanted);
    } else if (!moment_reached(from, moment_now())) {
        free(wanted);
        *ms = (int)(moment_until(moment_now(), from) / NS_PER_MS) + 1;
        return -1;
    } else {
        char *body = watch_request(etcd.heard + 1);
        http_stream_begin("/v3/watch", body);
        free(body);
        free(etcd.watched);
        etcd.watched = wanted;
    }
    return http_stream_rest(ms);
}

/* Nothing is missed by a stream that breaks. */
static bool hear(void)
{
    if (!http_stream_hear(take_line))
        leave_stream();
    return true;
}

/* -- what is over ------------------------------------------------------------------------------ */

/* How many keys a purge looks at: of its requests, etcd takes 128 conditions and changes. A run
 * writes two units or more, so this keeps up with locks that are used once. */
#define PURGED_KEYS 60
#define PURGE_EVERY 64

/* Whether it is the key of a record that has expired, or a bell: all who watch have heard it. */
static bool is_over(const json_t *row, const struct clockless_reading *reading)
{
    size_t length, size;
    char *name = gateway_name(row, &length), *text = gateway_bytes(row, "value", &size);
    bool over =
        is_bell(name, length) || clockless_has_expired(etcd.known.margin_us, text, size, reading);

    free(name);
    free(text);
    return over;
}

/* Deletes what is over of the keys that were not written for longest, unless it has been written
 * meanwhile. The next purge does what this one fails to do. */
static void purge(void)
{
    struct strbuf body = {0}, deletes = {0};
    struct clockless_reading reading = {.asked_us = own_clock_now(&etcd.clock)};
    struct host_fault fault;
    json_t *row;
    size_t i;

    strbuf_printf(&body, "{\"sort_order\":\"ASCEND\",\"sort_target\":\"MOD\",\"limit\":\"%d\",",
                  PURGED_KEYS);
    gateway_add_range(&body, piece_of("rlock:"));
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, false, &fault);
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
        json_decref(gateway_ask("/v3/kv/txn", body.text, true, &fault));
    }
    strbuf_free(&body);
    strbuf_free(&deletes);
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Returns the request. texts: of the keys that change; the caller frees. */
static char *commit_request(const struct unit *unit, char **texts)
{
    struct strbuf body = {0};
    const char *between = "";

    /* A key that was only read must not have changed either. */
    strbuf_puts(&body, "{\"compare\":[");
    for (size_t i = 0; i < unit->count; i++) {
        strbuf_printf(&body, "%s{\"target\":\"MOD\",\"mod_revision\":\"%" PRId64 "\",\"key\":",
                      i == 0 ? "" : ",", unit->keys[i].record.version);
        gateway_add_name(&body, unit->keys[i].name, "");
        strbuf_putc(&body, '}');
    }
    strbuf_puts(&body, "],\"success\":[");
    for (size_t i = 0; i < unit->count; i++) {
        if (!unit->keys[i].record.changed)
            continue;
        texts[i] = clockless_print(&etcd.known, &unit->keys[i], &etcd.reading);
        strbuf_puts(&body, between);
        add_put(&body, unit->keys[i].name, "", texts[i], strlen(texts[i]));
        between = ",";
    }
    for (size_t i = 0; i < unit->message_count; i++) {
        if (!is_first_of_bell(unit, i))
            continue;
        strbuf_puts(&body, between);
        add_bell(&body, unit, unit->messages[i].channel);
        between = ",";
    }
    strbuf_puts(&body, "]}");
    return strbuf_detach(&body);
}

/* A message that was told since a unit was read is heard, also by who begins to listen with it. */
static void commit_done(const struct unit *unit, char *const *texts)
{
    for (size_t i = 0; i < unit->count; i++)
        if (texts[i])
            clockless_wrote(&etcd.known, &unit->keys[i], texts[i], &etcd.reading);
    if (!etcd.since.ns)
        etcd.since = moment_plus(moment_now(), PATIENCE_NS);
    if (!http_stream_is_open() && moment_reached(etcd.anew, moment_now()))
        etcd.heard = etcd.revision > etcd.heard ? etcd.revision : etcd.heard;
}

static enum host_outcome commit(struct unit *unit, struct host_fault *fault)
{
    char *texts[UNIT_KEYS_MAX] = {NULL}, *text = commit_request(unit, texts);
    json_t *reply = gateway_ask("/v3/kv/txn", text, true, fault);
    bool done = json_is_true(json_object_get(reply, "succeeded"));
    enum host_outcome outcome = done ? HOST_DONE : reply ? HOST_AGAIN : HOST_FAILED;

    if (done)
        commit_done(unit, texts);
    if (outcome == HOST_AGAIN && unit->asks)
        unit->again = etcd.lease || line_up(unit->keys[0].name);
    else
        leave_line();
    for (size_t i = 0; i < unit->count; i++)
        free(texts[i]);
    free(text);
    json_decref(reply);
    if (done && random() % PURGE_EVERY == 0)
        purge();
    return outcome;
}

/* -- opening, listing -------------------------------------------------------------------------- */

static json_t *ask_status(struct host_fault *fault)
{
    json_t *status = gateway_ask("/v3/maintenance/status", "{}", false, fault);
    const char *version = json_string_value(json_object_get(status, "version"));

    if (version) {
        snprintf(etcd.version, sizeof etcd.version, "%s", version);
        return status;
    }
    if (status)
        host_fail(fault, WIRE_STRANGER, "it tells no version of etcd");
    json_decref(status);
    return NULL;
}

/* The clock begins with the store's time, for the sake of times that are shown to hosts whose
 * clocks are wrong. */
static bool open_etcd(const struct host_target *target, const char *table, struct host_fault *fault)
{
    int64_t ns;

    *fault = (struct host_fault){.broken = false};
    if (*target->margin)
        etcd.known.margin_us =
            duration_parse(target->margin, &ns) ? ns / NS_PER_US : CLOCKLESS_NEVER;
    gateway_open(target, table);
    if (*target->user) {
        if (!gateway_log_in(fault))
            return false;
    } else {
        json_t *status = ask_status(fault);
        if (!status)
            return false;
        json_decref(status);
    }
    own_clock_begin(&etcd.clock, http_date_us());
    return true;
}

static bool list(struct piece prefix, void (*each)(void *arg, struct piece name), void *arg,
                 struct host_fault *fault)
{
    struct strbuf body = {0};
    json_t *row;
    size_t i;

    strbuf_puts(&body, "{\"keys_only\":true,");
    gateway_add_range(&body, prefix);
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, false, fault);
    json_array_foreach(json_object_get(reply, "kvs"), i, row)
    {
        size_t size;
        char *name = gateway_name(row, &size);
        if (size > 0 && is_of_record(name) && record_read_name(name, &size))
            each(arg, (struct piece){name, size});
        free(name);
    }
    bool done = reply;
    json_decref(reply);
    strbuf_free(&body);
    return done;
}

/* -- for the doctor ---------------------------------------------------------------------------- */

/* From here on to refuse writes, unless it is told to take more. */
#define QUOTA_MB  2048
#define MANY      100000 /* revisions */
#define APART_MAX 2      /* s */

#define ADVICE_COMPACT "etcd --auto-compaction-retention=5m --auto-compaction-mode=periodic"

/* The version is told behind what has to be asked of a majority. */
static bool try_ping(struct strbuf *out, struct host_fault *fault)
{
    struct strbuf body = {0};

    strbuf_puts(&body, "{\"keys_only\":true,\"key\":");
    gateway_add_name(&body, piece_of("rlock:"), "");
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, false, fault);
    json_t *status = reply && !*etcd.version ? ask_status(fault) : NULL;
    bool done = reply && *etcd.version;

    strbuf_free(&body);
    json_decref(reply);
    json_decref(status);
    if (!done)
        return false;
    resp_array(out, 2);
    resp_bulk(out, piece_of("ok"));
    resp_bulk(out, piece_of(etcd.version));
    return true;
}

static bool try_space(struct strbuf *out, struct host_fault *fault)
{
    json_t *status = ask_status(fault);
    char text[120];

    if (!status)
        return false;
    int64_t size = gateway_number(status, "dbSize") >> 20,
            used = gateway_number(status, "dbSizeInUse") >> 20;
    json_decref(status);
    snprintf(text, sizeof text, "its file has %" PRId64 " MB, of which %" PRId64 " MB are in use",
             size, used);
    bool scarce = size > QUOTA_MB - QUOTA_MB / 4;
    host_find(out, scarce ? "warning" : "fine", text,
              !scarce ? ""
              : used < size / 2
                  ? "etcdctl defrag; at 2 GB, or --quota-backend-bytes, no lock is taken"
                  : ADVICE_COMPACT "; then etcdctl defrag");
    return true;
}

static bool try_alarms(struct strbuf *out, struct host_fault *fault)
{
    json_t *reply = gateway_ask("/v3/maintenance/alarm", "{\"action\":\"GET\"}", false, fault),
           *alarm;
    bool space = false, corrupt = false;
    size_t i;

    if (!reply)
        return false;
    json_array_foreach(json_object_get(reply, "alarms"), i, alarm)
    {
        const char *name = json_string_value(json_object_get(alarm, "alarm"));
        space |= name && strcmp(name, "NOSPACE") == 0;
        corrupt |= name && strcmp(name, "CORRUPT") == 0;
    }
    json_decref(reply);
    if (corrupt)
        host_find(out, "unfit", "the alarm CORRUPT is on: its members have different data",
                  "replace the member that differs");
    else if (space)
        host_find(out, "unfit",
                  "the alarm NOSPACE is on: it takes no writes, so it grants no locks",
                  "compact, etcdctl defrag, etcdctl alarm disarm");
    else
        host_find(out, "fine", "there is no alarm", "");
    return true;
}

/* Each write leaves a revision behind until it is compacted. */
static bool try_compaction(struct strbuf *out, struct host_fault *fault)
{
    struct strbuf body = {0};
    int64_t from = etcd.revision > MANY ? etcd.revision - MANY : 1;

    strbuf_printf(&body, "{\"revision\":\"%" PRId64 "\",\"key\":", from);
    gateway_add_name(&body, piece_of("rlock:"), "");
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, false, fault);
    int64_t revision = gateway_number(json_object_get(reply, "header"), "revision");
    bool compacted = !reply && strstr(fault->why.said, "compacted");
    strbuf_free(&body);
    json_decref(reply);
    if (!reply && !compacted)
        return false;
    etcd.revision = revision;
    if (compacted)
        host_find(out, "fine", "old revisions are compacted", "");
    else if (revision > MANY)
        host_find(out, "warning", "it keeps every write: nothing was compacted for long",
                  ADVICE_COMPACT);
    else
        host_find(out, "note", "it may be too new to tell whether old revisions are compacted",
                  ADVICE_COMPACT);
    return true;
}

/* Each member's time, less this process's own, at the same moment. */
static bool try_members(struct strbuf *out, struct host_fault *fault)
{
    size_t asked = http_server(), answered = 0;
    struct strbuf reply ENDED_BY(strbuf_free) = {0};
    int64_t least = INT64_MAX, most = INT64_MIN;
    struct host_error why;
    char text[160];

    (void)fault;
    for (size_t i = 0; i < http_servers(); i++) {
        http_choose(i);
        if (http_post("/v3/maintenance/status", "{}", false, &reply, &why) != 200 ||
            http_server() != i)
            continue;
        int64_t ahead = (http_date_us() - own_clock_now(&etcd.clock)) / US_PER_S;
        least = ahead < least ? ahead : least;
        most = ahead > most ? ahead : most;
        answered++;
    }
    http_choose(asked);
    if (answered < http_servers()) {
        snprintf(text, sizeof text, "%zu of the %zu members in the URL answer", answered,
                 http_servers());
        host_find(out, "warning", text, "with a majority down, no lock is granted or kept");
    } else if (most - least > APART_MAX) {
        snprintf(text, sizeof text, "the clocks of its members differ by %" PRId64 " s",
                 most - least);
        host_find(out, most - least < etcd.known.margin_us / US_PER_S ? "warning" : "unfit", text,
                  "set them by NTP: beyond 10 s, or the URL's ?margin=, a lock that no client "
                  "watches may be taken too early");
    } else {
        host_find(out, "fine",
                  answered == 1 ? "the member in the URL answers"
                                : "all members in the URL answer, and their clocks agree",
                  answered == 1 ? "name all members of the cluster in the URL" : "");
    }
    return true;
}

static bool ask_for_doctor(const char *what, struct strbuf *out, struct host_fault *fault)
{
    static const struct {
        const char *name;
        bool (*try)(struct strbuf *out, struct host_fault *fault);
    } checks[] = {{"ping", try_ping},
                  {"members", try_members},
                  {"space", try_space},
                  {"alarms", try_alarms},
                  {"compaction", try_compaction}};

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(checks[i].name, what) == 0)
            return checks[i].try(out, fault);
    return host_fail(fault, WIRE_UNFIT, "no such check");
}

/* There is nothing to prepare. */
static bool make(const char *user, struct host_fault *fault)
{
    (void)user;
    (void)fault;
    return true;
}

int main(void)
{
    static const struct host_store store = {open_etcd, load, commit,         leave_line, list,
                                            rest,      hear, ask_for_doctor, make,       NULL};

    return host_serve(&(const struct host){.store = &store});
}
