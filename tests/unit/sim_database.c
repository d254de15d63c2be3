/* Statements, as store/sql writes them, and what they do. */
#include "sim_database.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- words ----------------------------------------------------------------------------------- */

/* Behind a '?' in a pattern. */
enum word { NOW, CLOCK, HEX, HEX_END, NUMBER, NUMBER_END, LITERAL, LITERAL_END, SWAP, STAY, WORDS };
static const char letters[WORDS + 1] = "nchHdDxXsy";

static const char *const words[2][WORDS] = {
    {"CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)",
     "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)", "encode(", ", 'hex')",
     "CAST(", " AS text)", "decode('", "', 'hex')",
     " ON CONFLICT (name) DO UPDATE SET version = excluded.version, state = CASE WHEN "
     "rlock_lock.version + 1 = excluded.version THEN excluded.state END",
     " ON CONFLICT (name, owner) DO UPDATE SET scope = excluded.scope, deadline_us = "
     "excluded.deadline_us, mode = excluded.mode, who = excluded.who"},
    {"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
     "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + "
     "TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) - 900000000 * "
     "ROUND(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) / 900000000)", "HEX(", ")", "CAST(",
     " AS CHAR)", "x'", "'",
     " ON DUPLICATE KEY UPDATE state = IF(version + 1 = VALUES(version), VALUES(state), NULL), "
     "version = VALUES(version)",
     " ON DUPLICATE KEY UPDATE scope = VALUES(scope), deadline_us = VALUES(deadline_us), "
     "mode = VALUES(mode), who = VALUES(who)"}};

struct scan {
    const char *at;
    const char *const *words;
};

/* A part of the statement. */
struct span {
    const char *at;
    size_t size;
};

static bool take_plain(struct scan *scan, const char *text)
{
    size_t size = strlen(text);

    if (strncmp(scan->at, text, size) != 0)
        return false;
    scan->at += size;
    return true;
}

static bool take_digits(struct scan *scan, struct span *span)
{
    if (!take_plain(scan, scan->words[LITERAL]))
        return false;
    *span = (struct span){scan->at, strspn(scan->at, "0123456789abcdef")};
    scan->at += span->size;
    return take_plain(scan, scan->words[LITERAL_END]);
}

static bool take_integer(struct scan *scan, int64_t *number)
{
    char *end;

    if (*scan->at < '0' || *scan->at > '9')
        return false;
    *number = strtoll(scan->at, &end, 10);
    scan->at = end;
    return true;
}

/* One '?' and its letter. */
static bool take_word(struct scan *scan, char letter, va_list *values)
{
    if (letter == 'i')
        return take_integer(scan, va_arg(*values, int64_t *));
    if (letter == 'x')
        return take_digits(scan, va_arg(*values, struct span *));
    return take_plain(scan, scan->words[strchr(letters, letter) - letters]);
}

/* What fits the pattern, as a whole or not at all. ?i: a number, into an int64_t; ?x: a literal,
 * into a span; others: see "letters". */
static bool take(struct scan *scan, const char *pattern, ...)
{
    const char *start = scan->at;
    bool fits = true;
    va_list values;

    va_start(values, pattern);
    for (; fits && *pattern; pattern++) {
        if (*pattern == '?')
            fits = take_word(scan, *++pattern, &values);
        else
            fits = *scan->at++ == *pattern;
    }
    va_end(values);
    if (!fits)
        scan->at = start;
    return fits;
}

static bool is_same(const char *text, struct span span)
{
    return strncmp(text, span.at, span.size) == 0 && text[span.size] == '\0';
}

static void set(char **to, struct span span)
{
    free(*to);
    *to = strndup(span.at, span.size);
    if (!*to)
        abort();
}

/* -- answers --------------------------------------------------------------------------------- */

static void answer_count(struct wire_out *answer, int64_t count)
{
    wire_begin(answer, WIRE_ROWS);
    wire_number(answer, 1);
    wire_number(answer, count);
    wire_end(answer);
}

static void answer_conflict(struct wire_out *answer)
{
    wire_begin(answer, WIRE_ERROR);
    wire_text(answer, (char[]){WIRE_CONFLICT, '\0'});
    wire_text(answer, "null value in column \"state\"");
    wire_text(answer, "locker");
    wire_end(answer);
}

/* -- reading --------------------------------------------------------------------------------- */

static void put_row(struct wire_out *answer, char kind, int64_t key, int64_t scope)
{
    wire_text(answer, (char[]){kind, '\0'});
    wire_number(answer, key);
    if (scope < 0)
        wire_text(answer, "");
    else
        wire_number(answer, scope);
}

static struct sim_lock *find_lock(struct sim_database *database, struct span name)
{
    for (size_t i = 0; i < database->lock_count; i++)
        if (is_same(database->locks[i].name, name))
            return &database->locks[i];
    return NULL;
}

static struct sim_place *find_place(struct sim_database *database, struct span name,
                                    struct span owner)
{
    for (size_t i = 0; i < SIM_PLACES; i++) {
        struct sim_place *place = &database->places[i];
        if (place->name && is_same(place->name, name) && is_same(place->owner, owner))
            return place;
    }
    return NULL;
}

static bool comes_before(const struct sim_place *a, const struct sim_place *b)
{
    return a->since < b->since || (a->since == b->since && strcmp(a->owner, b->owner) < 0);
}

static bool read_lock(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    struct span name;
    int64_t key;

    if (!take(scan,
              "SELECT 'l', '?i', '', ?dversion?D, ?hstate?H, '', ''"
              " FROM rlock_lock WHERE name = ?x",
              &key, &name))
        return false;
    const struct sim_lock *lock = find_lock(database, name);
    if (!lock)
        return true;
    put_row(answer, 'l', key, -1);
    wire_number(answer, lock->version);
    wire_text(answer, lock->state);
    wire_text(answer, "");
    wire_text(answer, "");
    return true;
}

static bool read_own_place(struct sim_database *database, struct scan *scan,
                           struct wire_out *answer)
{
    struct span name, owner;
    int64_t key;

    if (!take(scan,
              " UNION ALL SELECT 'm', '?i', '', ?dsince_us?D, ?ddeadline_us?D, ?hscope?H, ''"
              " FROM rlock_wait WHERE name = ?x AND owner = ?x",
              &key, &name, &owner))
        return false;
    const struct sim_place *place = find_place(database, name, owner);
    if (!place)
        return true;
    put_row(answer, 'm', key, -1);
    wire_number(answer, place->since);
    wire_number(answer, place->deadline);
    wire_text(answer, place->scope);
    wire_text(answer, "");
    return true;
}

/* The live ones of others in one queue: name, scope and owner, and how long a place counts. */
struct terms {
    struct span is[3];
    int64_t longest;
};

/* The first of them, how many there are of those that come before "limit", and the last of
 * these. */
static const struct sim_place *search(struct sim_database *database, const struct terms *terms,
                                      const struct sim_place *limit, int64_t *count,
                                      const struct sim_place **last)
{
    const struct sim_place *first = NULL;

    *count = 0;
    *last = NULL;
    for (size_t i = 0; i < SIM_PLACES; i++) {
        const struct sim_place *place = &database->places[i];
        if (!place->name || !is_same(place->name, terms->is[0]) ||
            !is_same(place->scope, terms->is[1]) || place->deadline <= database->now ||
            place->deadline > database->now + terms->longest || is_same(place->owner, terms->is[2]))
            continue;
        if (!first || comes_before(place, first))
            first = place;
        if (limit && comes_before(limit, place))
            continue;
        ++*count;
        if (!*last || comes_before(*last, place))
            *last = place;
    }
    return first;
}

#define OTHERS                                                                                     \
    " FROM rlock_wait w WHERE w.name = ?x AND w.scope = ?x AND w.deadline_us > ?c"                 \
    " AND w.deadline_us <= ?c + ?i AND w.owner <> ?x"

static bool read_first(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    const struct sim_place *last;
    struct terms terms;
    int64_t key, scope, count;

    if (!take(scan,
              " UNION ALL (SELECT 'f', '?i', '?i', ?hw.owner?H, ?hw.mode?H, ?dw.since_us?D, "
              "?hw.who?H" OTHERS " ORDER BY w.since_us, w.owner LIMIT 1)",
              &key, &scope, &terms.is[0], &terms.is[1], &terms.longest, &terms.is[2]))
        return false;
    const struct sim_place *first = search(database, &terms, NULL, &count, &last);
    if (!first)
        return true;
    put_row(answer, 'f', key, scope);
    wire_text(answer, first->owner);
    wire_text(answer, first->mode);
    wire_number(answer, first->since);
    wire_text(answer, first->who);
    return true;
}

static bool read_ahead(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    const struct sim_place *last;
    struct terms terms;
    struct span own;
    int64_t key, scope, count;

    if (!take(scan,
              " UNION ALL SELECT 'a', '?i', '?i', ?dcount(*)?D, '', '', ''" OTHERS
              " AND NOT EXISTS (SELECT 1 FROM rlock_wait o WHERE o.name = w.name AND o.owner = ?x"
              " AND (o.since_us < w.since_us OR o.since_us = w.since_us AND o.owner < w.owner))",
              &key, &scope, &terms.is[0], &terms.is[1], &terms.longest, &terms.is[2], &own))
        return false;
    search(database, &terms, find_place(database, terms.is[0], own), &count, &last);
    put_row(answer, 'a', key, scope);
    wire_number(answer, count);
    for (int i = 0; i < 3; i++)
        wire_text(answer, "");
    return true;
}

static bool read_before(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    const struct sim_place *last, *limit;
    struct terms terms;
    struct span own;
    int64_t key, scope, count;

    if (!take(scan,
              " UNION ALL (SELECT 'b', '?i', '?i', ?hw.owner?H, ?hw.mode?H, '', ''" OTHERS
              " AND EXISTS (SELECT 1 FROM rlock_wait o WHERE o.name = w.name AND o.owner = ?x"
              " AND (w.since_us < o.since_us OR w.since_us = o.since_us AND w.owner < o.owner))"
              " ORDER BY w.since_us DESC, w.owner DESC LIMIT 1)",
              &key, &scope, &terms.is[0], &terms.is[1], &terms.longest, &terms.is[2], &own))
        return false;
    limit = find_place(database, terms.is[0], own);
    search(database, &terms, limit, &count, &last);
    if (!limit || !last)
        return true;
    put_row(answer, 'b', key, scope);
    wire_text(answer, last->owner);
    wire_text(answer, last->mode);
    wire_text(answer, "");
    wire_text(answer, "");
    return true;
}

static bool ask_bell(const struct sim_database *database, struct span name, bool takes)
{
    char text[SIM_BELL];

    snprintf(text, sizeof text, "%.*s", (int)name.size, name.at);
    return database->bell(database->arg, text, takes);
}

static bool take_bell(const struct sim_database *database, struct scan *scan,
                      struct wire_out *answer)
{
    struct span name;

    if (take(scan, ", ''")) {
        wire_text(answer, "");
        return true;
    }
    if (!database->mysql || !take(scan, ", ?dGET_LOCK(_utf8mb4 ?x, 0)?D", &name))
        return false;
    wire_number(answer, ask_bell(database, name, true));
    return true;
}

static bool read_all(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    if (strncmp(scan->at, "SELECT '", strlen("SELECT '")) != 0)
        return false;
    wire_begin(answer, WIRE_ROWS);
    wire_number(answer, 7);
    while (!take(scan, "SELECT 'c', '', '', ?d?c?D"))
        if (!read_lock(database, scan, answer) && !read_own_place(database, scan, answer) &&
            !read_first(database, scan, answer) && !read_ahead(database, scan, answer) &&
            !(database->mysql && read_before(database, scan, answer)) && !take(scan, " UNION ALL "))
            return false;
    wire_text(answer, "c");
    wire_text(answer, "");
    wire_text(answer, "");
    wire_number(answer, database->now);
    if (!take_bell(database, scan, answer) || !take_bell(database, scan, answer) ||
        !take(scan, ", ''"))
        return false;
    wire_text(answer, "");
    wire_end(answer);
    return *scan->at == '\0';
}

/* -- writing --------------------------------------------------------------------------------- */

static struct sim_lock *lock_to_write(struct sim_database *database, struct span name)
{
    struct sim_lock *lock = find_lock(database, name);

    if (lock)
        return lock;
    if (database->lock_count == SIM_KEYS)
        abort();
    lock = &database->locks[database->lock_count++];
    *lock = (struct sim_lock){0};
    set(&lock->name, name);
    set(&lock->state, (struct span){"", 0});
    return lock;
}

/* Behind a swap: who waits for a latch is called with it. False if there is something else. */
static bool take_call(const struct sim_database *database, struct scan *scan,
                      char channel[SIM_CHANNEL])
{
    *channel = '\0';
    if (database->mysql || !take(scan, "; SELECT pg_notify('rlock_"))
        return true;
    size_t size = strcspn(scan->at, "'");
    if (size >= SIM_CHANNEL)
        return false;
    memcpy(channel, scan->at, size);
    channel[size] = '\0';
    scan->at += size;
    return take(scan, "', '')");
}

static bool swap_locks(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    char channel[SIM_CHANNEL];
    struct span names[SIM_KEYS], states[SIM_KEYS];
    int64_t versions[SIM_KEYS];
    size_t count = 0;
    bool fits = true;

    if (!take(scan, "INSERT INTO rlock_lock (name, version, state) VALUES "))
        return false;
    do {
        if (count == SIM_KEYS ||
            !take(scan, "(?x, ?i, ?x)", &names[count], &versions[count], &states[count]))
            return false;
        const struct sim_lock *lock = find_lock(database, names[count]);
        fits = fits && (!lock || lock->version + 1 == versions[count]);
        count++;
    } while (take(scan, ", "));
    if (!take(scan, "?s") || !take_call(database, scan, channel))
        return false;
    for (size_t i = 0; fits && i < count; i++) {
        struct sim_lock *lock = lock_to_write(database, names[i]);
        char *before = lock->state;
        lock->state = NULL;
        set(&lock->state, states[i]);
        lock->version = versions[i];
        database->written(database->arg, lock->name, before, lock->state);
        free(before);
    }
    if (fits && *channel)
        database->notify(database->arg, channel);
    if (fits)
        answer_count(answer, (int64_t)count);
    else
        answer_conflict(answer);
    return true;
}

static struct sim_place *place_to_write(struct sim_database *database, struct span name,
                                        struct span owner)
{
    struct sim_place *place = find_place(database, name, owner);

    if (place)
        return place;
    for (size_t i = 0; i < SIM_PLACES; i++) {
        place = &database->places[i];
        if (place->name)
            continue;
        set(&place->name, name);
        set(&place->owner, owner);
        place->since = database->now;
        return place;
    }
    abort();
}

static bool join_queues(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    struct span name, owner, scope, mode, who;
    int64_t keep, count = 0;

    if (!take(scan, "INSERT INTO rlock_wait (name, owner, scope, since_us, deadline_us, mode, who) "
                    "VALUES "))
        return false;
    do {
        if (!take(scan, "(?x, ?x, ?x, ?n, ?n + ?i, ?x, ?x)", &name, &owner, &scope, &keep, &mode,
                  &who))
            return false;
        struct sim_place *place = place_to_write(database, name, owner);
        set(&place->scope, scope);
        set(&place->mode, mode);
        set(&place->who, who);
        place->deadline = database->now + keep;
        count++;
    } while (take(scan, ", "));
    answer_count(answer, count);
    return take(scan, "?y");
}

static void free_place(struct sim_place *place)
{
    free(place->name);
    free(place->owner);
    free(place->scope);
    free(place->mode);
    free(place->who);
    *place = (struct sim_place){0};
}

static bool take_names(struct scan *scan, struct span names[SIM_KEYS], size_t *count)
{
    *count = 0;
    if (!take(scan, "("))
        return false;
    do {
        if (*count == SIM_KEYS || !take(scan, "?x", &names[*count]))
            return false;
        ++*count;
    } while (take(scan, ", "));
    return take(scan, ")");
}

static bool is_among(const char *name, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_same(name, names[i]))
            return true;
    return false;
}

/* The last 36 characters of an owner token in hexadecimal digits. */
static void print_channel(const char *digits, char channel[SIM_CHANNEL])
{
    size_t size = strlen(digits) / 2, most = SIM_CHANNEL - 1;
    const char *at = digits + (size > most ? 2 * (size - most) : 0);

    for (; *at; at += 2)
        *channel++ = (char)strtol((char[]){at[0], at[1], '\0'}, NULL, 16);
    *channel = '\0';
}

static bool is_live(const struct sim_database *database, const struct sim_place *place,
                    int64_t longest)
{
    return place->deadline > database->now && place->deadline <= database->now + longest;
}

static bool is_first(const struct sim_database *database, const struct sim_place *place,
                     int64_t longest)
{
    for (size_t i = 0; i < SIM_PLACES; i++) {
        const struct sim_place *other = &database->places[i];
        if (other->name && strcmp(other->name, place->name) == 0 &&
            strcmp(other->scope, place->scope) == 0 && is_live(database, other, longest) &&
            comes_before(other, place))
            return false;
    }
    return true;
}

static void call_first(const struct sim_database *database, const struct span *names, size_t count,
                       int64_t longest)
{
    char channel[SIM_CHANNEL];

    for (size_t i = 0; i < SIM_PLACES; i++) {
        const struct sim_place *place = &database->places[i];
        if (!place->name || !is_among(place->name, names, count) ||
            !is_live(database, place, longest) || !is_first(database, place, longest))
            continue;
        print_channel(place->owner, channel);
        database->notify(database->arg, channel);
    }
}

static bool leave_queues(struct sim_database *database, struct scan *scan, struct wire_out *answer)
{
    struct span names[SIM_KEYS], called[SIM_KEYS], owner = {"", 0};
    size_t count, called_count = 0;
    int64_t age = 0, longest = 0;
    bool all = true;

    if (!take(scan, "DELETE FROM rlock_wait WHERE name IN ") || !take_names(scan, names, &count))
        return false;
    if (take(scan, " AND (owner = ?x OR deadline_us < ?n - ?i)", &owner, &age))
        all = false;
    if (!database->mysql &&
        (!take(scan,
               "; SELECT pg_notify('rlock_' || right(convert_from(owner, 'UTF8'), 36), '') FROM "
               "(SELECT DISTINCT ON (name, scope) owner FROM rlock_wait WHERE name IN ") ||
         !take_names(scan, called, &called_count) ||
         !take(scan,
               " AND deadline_us > ?c AND deadline_us <= ?c + ?i"
               " ORDER BY name, scope, since_us, owner) AS first",
               &longest)))
        return false;
    for (size_t i = 0; i < SIM_PLACES; i++) {
        struct sim_place *place = &database->places[i];
        if (place->name && is_among(place->name, names, count) &&
            (all || is_same(place->owner, owner) || place->deadline < database->now - age))
            free_place(place);
    }
    call_first(database, called, called_count, longest);
    answer_count(answer, 0);
    return true;
}

static bool listen_to(const struct sim_database *database, struct scan *scan, char *channel,
                      struct wire_out *answer)
{
    if (database->mysql || !take(scan, "UNLISTEN *; LISTEN \"rlock_"))
        return false;
    size_t size = strcspn(scan->at, "\"");
    if (size >= SIM_CHANNEL)
        return false;
    memcpy(channel, scan->at, size);
    channel[size] = '\0';
    scan->at += size;
    answer_count(answer, 0);
    return take(scan, "\"");
}

static bool ring_bells(const struct sim_database *database, struct scan *scan,
                       struct wire_out *answer)
{
    struct span names[2];
    size_t count = 0;

    if (!database->mysql || !take(scan, "SELECT "))
        return false;
    do {
        if (count == 2 || !take(scan, "RELEASE_LOCK(_utf8mb4 ?x)", &names[count++]))
            return false;
    } while (take(scan, ", "));
    for (size_t i = 0; i < count; i++)
        ask_bell(database, names[i], false);
    answer_count(answer, 1);
    return true;
}

bool sim_database_sleeps(const struct sim_database *database, const char *sql, char name[SIM_BELL],
                         int64_t *ns)
{
    struct scan scan = {sql, words[database->mysql]};
    struct span first, second;
    int64_t seconds, ms;

    if (!take(&scan, "SELECT IF(GET_LOCK(_utf8mb4 ?x, ?i.?i) = 1, RELEASE_LOCK(_utf8mb4 ?x), 0)",
              &first, &seconds, &ms, &second) ||
        *scan.at || !database->mysql || first.size != second.size || first.size >= SIM_BELL ||
        memcmp(first.at, second.at, first.size) != 0)
        return false;
    snprintf(name, SIM_BELL, "%.*s", (int)first.size, first.at);
    *ns = seconds * 1000000000 + ms * 1000000;
    return true;
}

/* -------------------------------------------------------------------------------------------- */

bool sim_database_execute(struct sim_database *database, const char *sql, char *channel,
                          struct wire_out *answer)
{
    struct scan scan = {sql, words[database->mysql]};

    return (read_all(database, &scan, answer) || swap_locks(database, &scan, answer) ||
            join_queues(database, &scan, answer) || leave_queues(database, &scan, answer) ||
            listen_to(database, &scan, channel, answer) || ring_bells(database, &scan, answer)) &&
           *scan.at == '\0';
}

void sim_database_free(struct sim_database *database)
{
    for (size_t i = 0; i < database->lock_count; i++) {
        free(database->locks[i].name);
        free(database->locks[i].state);
    }
    for (size_t i = 0; i < SIM_PLACES; i++)
        free_place(&database->places[i]);
}
