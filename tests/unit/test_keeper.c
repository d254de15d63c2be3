/* The keeper's schedules: what it asks of a store and says to its owner, whatever is answered
 * when, and how far away the store is.
 *
 * A row has the time to wait and the lease, in ms. The answers of the store follow, each a
 * letter: "+" is granted, "-" refused, "?" unknown, and struct fake_store has the others. Then
 * come the deeds of the owner, as at struct schedule: with "1000 r" it releases after a second.
 * The last word says how that goes: calls with their answers, as "r+", and the news for the
 * owner. In a call, a is a try, q and l one that queues or listens, r a renewal, f a release,
 * and u one that takes care of requests under way. */
#include "lock/keeper.h"

#include "chance.h"
#include "fake_loop.h"
#include "keepers.h"
#include "lock/lease.h"
#include "store/store.h"
#include "tap.h"

/* -- a store that answers as it was told ------------------------------------------------------ */

/* The answers, in the order they are given, whatever is asked: words of one of
 *   +  granted
 *   /  the same, for half the time that was asked for
 *   <  the same, counted from before the call: three tenths of the time that was asked for
 *   *  the same; a renewal: though it was forgotten, or 0 where the caller does not say what was
 *      granted
 *   d  granted, and does not listen for who asks for it
 *   a, b or c: of several keys, only that one is granted
 *   -  refused: held by someone else, whose lease has 20 s left
 *   0  refused: the caller holds nothing; to an acquisition the same as -
 *   v  refused: the lock was taken away, as the store remembers
 *   A  refused: the caller has it, and is asked to release it
 *   2  refused as by -, but sent twice: it may be granted yet
 *   =  granted, the same
 *   T  refused: another has the mirror
 *   D  refused: the mirror is not there
 *   g  refused: the store may have forgotten who holds it, for 1 s; to others than an acquisition
 *      the same as 0
 *   m  refused: the key is something else
 *   ?  unknown, but it may have been done
 *   !  unknown, not done: there is no connection
 *   ~  unknown, not done: the server is not ready
 *   x  unknown, not done: permission denied
 *   .  none, which is unknown at the end of the time for it
 *   ,  the same, not done: there is no connection all that time, for a release without waiting
 *      either
 *   @  granted by a server far away, counted from when it was sent there
 * and after how many ms: "-", "+4000". The last one is repeated. */
struct fake_store {
    struct store base;
    struct loop *loop;
    bool several; /* keys are asked for, and only some of them are taken */
    int64_t trip; /* ns: there and back to a server that grants all; 0: it answers as it is told */
    int64_t connect_timeout;
    bool connected;
    const char *answers;
    struct loop_timer reply;
    store_done *done; /* NULL: nothing is under way */
    void *done_arg;
    char call;      /* it is: a acquire, q and queue, l and listen, r renew, h the same of what was
                                 handed over, f release, u uncertainly */
    char answer;    /* as above */
    char asked[24]; /* about which of several keys, how many of them it takes, * if inherited */
    struct moment until;
    struct moment sent; /* the latest request for a lease, or from when its grant counts */
    int64_t lease;      /* asked for by it, or granted */
    bool offered; /* the latest acquisition, if refused, takes the lock without being asked again */
    char owner[OWNER_SIZE];
    bool holds;                /* the caller may hold the lock, as far as the answers tell */
    bool loose;                /* an acquisition may be under way yet */
    struct moment loose_until; /* and not be executed any more */
    bool parted; /* a release, waited for or not, was sent since it may have held it */
    struct trial trial;
};

#define SEVERAL  3
#define HELD_MS  20000
#define KEPT_MS  30000
#define REQUEST  (2 * NS_PER_SEC)
#define GRACE_MS 1000
#define NOT_SENT '_' /* an answer of our own */

static struct fake_store *of(struct store *base)
{
    return (struct fake_store *)base;
}

/* Adds a word to the log; a call that is repeated, with its answer, is there once. */
static void fake_log(struct fake_store *store, const char *word)
{
    size_t used = strlen(store->trial.log), length = strlen(word);
    bool is_call = length == 2 || strchr(word, ':');

    if (is_call && used > length &&
        strncmp(store->trial.log + used - length - 1, word, length) == 0)
        return;
    snprintf(store->trial.log + used, sizeof store->trial.log - used, "%s ", word);
}

static const struct lock_grant seven[LOCK_KEYS_MAX] = {{.fence = 7}};
static const struct lock_party other = {.owner = "other", .left_ms = HELD_MS};
static const struct revocation taken = {.known = true, .by = "boss", .why = "urgent"};

static const struct {
    char letter;
    struct answer answer;
} meanings[] = {
    ROW('+', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven),
    ROW('/', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven),
    ROW('<', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven),
    ROW('*', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven,
        .answer.granted.forgotten = true),
    ROW('d', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven,
        .answer.granted.not_listening = true),
    ROW('@', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven),
    ROW('g', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_GRACE,
        .answer.refused.position = 1, .answer.grace_ms = GRACE_MS, .answer.text = "grace"),
    ROW('-', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_HELD,
        .answer.refused.position = 1, .answer.refused.holders = 1,
        .answer.refused.left_ms = HELD_MS, .answer.refused.holder = &other),
    ROW('k', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_HELD,
        .answer.refused.position = 30, .answer.refused.holders = 1,
        .answer.refused.left_ms = HELD_MS, .answer.refused.next_call_ms = KEPT_MS,
        .answer.refused.holder = &other),
    ROW('0', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_NOT_HOLDER),
    ROW('v', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_NOT_HOLDER,
        .answer.refused.revoked = &taken),
    ROW('A', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_REVOKED,
        .answer.refused.holders = 1, .answer.refused.revoked = &taken),
    ROW('2', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_HELD,
        .answer.refused.position = 1, .answer.refused.holders = 1,
        .answer.refused.left_ms = HELD_MS, .answer.refused.holder = &other,
        .answer.maybe_done = true),
    ROW('=', .answer.verdict = VERDICT_GRANTED, .answer.granted.grants = seven,
        .answer.maybe_done = true),
    ROW('T', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_NOT_HOLDER,
        .answer.refused.foreign = true, .answer.refused.holders = 1),
    ROW('D', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_NOT_HOLDER,
        .answer.refused.foreign = true),
    ROW('m', .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_MISFIT,
        .answer.text = "misfit"),
    ROW('?', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_UNREACHABLE,
        .answer.maybe_done = true, .answer.text = "mute"),
    ROW('.', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_UNREACHABLE,
        .answer.maybe_done = true, .answer.text = "mute"),
    ROW(',', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_UNREACHABLE,
        .answer.text = "no connection"),
    ROW(NOT_SENT, .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_UNREACHABLE,
        .answer.text = "too late"),
    ROW('!', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_UNREACHABLE,
        .answer.text = "refused"),
    ROW('~', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_NOT_READY,
        .answer.text = "loading"),
    ROW('x', .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_DENIED,
        .answer.text = "denied"),
};

/* Updates what the caller must expect from now on. */
static void draw_conclusions(struct fake_store *store, const struct answer *answer)
{
    bool acquire = strchr("aql", store->call);
    bool release = strchr("fu", store->call);

    if (acquire && answer->maybe_done)
        store->holds = store->loose = true, store->loose_until = store->until;
    else if (acquire && answer->verdict == VERDICT_GRANTED)
        store->holds = true, store->loose = false;
    else if (acquire && answer->verdict == VERDICT_REFUSED)
        store->holds = answer->cause == CAUSE_REVOKED, store->loose = false;
    else if (answer->verdict == VERDICT_REFUSED || (release && answer->verdict == VERDICT_GRANTED))
        store->holds = store->loose = false;
    if (acquire && (answer->verdict == VERDICT_GRANTED || answer->maybe_done))
        store->parted = false;
}

/* The store grants in its own way. */
static void grant(struct fake_store *store, struct answer *answer)
{
    if (store->answer == '/') {
        store->lease /= 2;
        answer->granted.lease = store->lease;
    } else if (store->answer == '<') {
        store->sent = moment_plus(store->sent, -store->lease / 10 * 3);
        answer->granted.from = store->sent;
    } else if (store->answer == '@') {
        answer->granted.from = store->sent;
    }
}

static void reply(struct loop_timer *timer)
{
    struct fake_store *store = timer->owner;
    store_done *done = store->done;
    struct lock_grant grants[LOCK_KEYS_MAX] = {0};
    struct answer answer;
    bool one = strchr("abc", store->answer);
    size_t i = 0;
    char word[32];

    while (meanings[i].letter != (one ? '+' : store->answer))
        i++;
    answer = meanings[i].answer;
    for (size_t key = 0; key < SEVERAL; key++)
        grants[key] = (struct lock_grant){.fence = 7, .absent = store->answer != 'a' + (int)key};
    if (one)
        answer.granted.grants = grants;
    grant(store, &answer);
    store->done = NULL;
    store->offered &= answer.verdict == VERDICT_REFUSED;
    draw_conclusions(store, &answer);
    snprintf(word, sizeof word, "%c%c%s", store->call, store->answer, store->asked);
    if (store->answer != NOT_SENT)
        fake_log(store, word);
    done(store->done_arg, &answer);
}

/* Takes the next word of the answers, if it is not the last. Returns when to give it. */
static struct moment take_answer(struct fake_store *store)
{
    char *end = (char *)(uintptr_t)store->answers + 1;
    long delay = 0;

    store->answer = *store->answers;
    if (*end && *end != ' ')
        delay = strtol(store->answers + 1, &end, 10);
    if (*end)
        store->answers = end + 1;
    return moment_plus(loop_now(store->loop), delay * NS_PER_MS);
}

static void note_keys(struct fake_store *store, const struct acquire_request *lock)
{
    size_t used = 0;

    for (size_t i = 0; store->several && i < lock->key_count; i++)
        used += (size_t)snprintf(store->asked + used, sizeof store->asked - used, "%s%s",
                                 i ? "" : ":", lock->keys[i]);
    if (lock->take && strchr("aql", store->call))
        snprintf(store->asked + used, sizeof store->asked - used, "/%zu%s", lock->take,
                 lock->from_dead_agent ? "*" : "");
}

/* To a server far away: two round trips to be connected and greeted, one for a question; a release
 * does not wait for the greeting. A request may go unanswered for REQUEST, or two round trips.
 * Returns when it is answered, or given up. */
static struct moment travel(struct fake_store *store, enum store_verb verb)
{
    struct moment now = loop_now(store->loop), until = store->until;
    int64_t greeting = 2 * store->trip, way = verb == VERB_RELEASE ? store->trip : greeting;
    struct moment sent = moment_plus(now, store->connected ? 0 : way);
    struct moment connect_by = moment_min(until, moment_plus(now, store->connect_timeout));
    bool greeted = store->connected || moment_reached(moment_plus(now, greeting), connect_by);

    if (verb != VERB_RELEASE)
        store->sent = sent;
    if (verb == VERB_ACQUIRE)
        until = moment_min(until, moment_plus(sent, greeting > REQUEST ? greeting : REQUEST));
    until = greeted ? until : connect_by;
    struct moment due = moment_plus(sent, store->trip);
    bool out = greeted || verb == VERB_RELEASE;
    store->answer = !out ? ',' : due.ns > until.ns ? '.' : '@';
    store->connected = store->answer == '@';
    return out ? moment_min(due, until) : until;
}

/* Starts a call. One whose time is over is not even sent. */
static void begin(struct fake_store *store, char call, const struct operation *operation)
{
    const struct acquire_request *lock = operation_lock(operation);
    struct moment until = operation->until;
    bool late = moment_reached(until, loop_now(store->loop));
    struct moment due = late ? loop_now(store->loop) : take_answer(store);

    if (store->done)
        accuse(&store->trial, "two operations at a time");
    if (store->owner[0] && strcmp(store->owner, lock->owner) != 0)
        accuse(&store->trial, "another owner");
    snprintf(store->owner, sizeof store->owner, "%s", lock->owner);
    store->call = call;
    note_keys(store, lock);
    store->until = until;
    store->done = operation->done;
    store->done_arg = operation->arg;
    if (strchr("aql", call) && store->answer == '0')
        store->answer = '-';
    if (!strchr("aql", call) && store->answer == 'g')
        store->answer = '0';
    if (call == 'r' && store->answer == '*' && !operation->renew->grants)
        store->answer = '0';
    if (late) {
        store->answer = NOT_SENT;
    } else if (store->trip) {
        due = travel(store, operation->verb);
    } else if (store->answer == ',') {
        due = until;
    } else if (store->answer == '.' || due.ns > until.ns) {
        store->answer = '.';
        due = until;
    }
    loop_arm(store->loop, &store->reply, due);
}

static void begin_renewal(struct fake_store *store, const struct operation *operation)
{
    const struct renew_request *request = operation->renew;

    begin(store, request->handed ? 'h' : 'r', operation);
    if (request->grants && request->grants[0].fence != 7)
        accuse(&store->trial, "renewed something that was not granted");
}

static void begin_release(struct fake_store *store, const struct operation *operation)
{
    bool uncertain = operation->release->uncertain;

    if (store->loose && !uncertain && !moment_reached(store->loose_until, loop_now(store->loop)))
        accuse(&store->trial, "released without care for an acquisition that may be under way");
    store->parted = true;
    begin(store, uncertain ? 'u' : 'f', operation);
}

static void start(struct store *base, const struct operation *operation)
{
    struct fake_store *store = of(base);

    if (operation->verb == VERB_RELEASE) {
        begin_release(store, operation);
        return;
    }
    store->sent = loop_now(store->loop);
    store->lease = operation_lock(operation)->lease;
    if (operation->verb == VERB_RENEW) {
        begin_renewal(store, operation);
        return;
    }
    store->offered = operation->acquire->accept_by_message;
    begin(store,
          operation->acquire->listen  ? 'l'
          : operation->acquire->queue ? 'q'
                                      : 'a',
          operation);
}

static enum release_sent release_nowait(struct store *base, const struct release_request *request)
{
    struct fake_store *store = of(base);
    char word[32];

    loop_disarm(store->loop, &store->reply);
    store->done = NULL;
    if (store->answer == ',')
        return RELEASE_UNSENT;
    store->parted = true;
    store->call = 'u';
    note_keys(store, request->lock);
    const char *used = request->end.how == LOCK_UNUSED ? "" : "used-";
    snprintf(word, sizeof word, "%sbye%s", used, store->asked);
    fake_log(store, word);
    return RELEASE_SENT;
}

static const struct store_ops fake_ops = {close_nothing, start, release_nowait};

static void fake_store_init(struct fake_store *store, struct loop *loop, const char *answers)
{
    *store = (struct fake_store){.base = {.ops = &fake_ops}, .loop = loop, .answers = answers};
    store->reply = (struct loop_timer){.fire = reply, .owner = store};
    fake_descriptor(loop, reply);
}

/* As another's release hands over what the latest acquisition was refused, for 9.5 s from when that
 * was sent. Nothing if it has not offered to take it, or something is under way. */
static void fake_hand(struct fake_store *store)
{
    int64_t lasts = 9500 * NS_PER_MS, beyond = store->lease - lasts;
    struct answer grant = {.verdict = VERDICT_GRANTED, .granted.grants = seven};

    if (store->done || !store->offered || store->holds)
        return;
    grant.granted.from = moment_plus(store->sent, beyond > 0 ? -beyond : 0);
    store->lease = beyond > 0 ? lasts : store->lease;
    store->holds = true;
    store->parted = store->offered = false;
    store_granted(&store->base, &grant);
}

/* -- its keeper ------------------------------------------------------------------------------- */

#define LEAVE_NS   (8 * NS_PER_SEC)
#define KILL_AFTER (5 * NS_PER_SEC)
#define TURNS_MAX  20000

/* "answers": as above. "actions": "MS WHAT" in order, where WHAT is c cancel, r release, a
 * release and try again, s and w away and back, v verify, h hold renewals, u end that, p poke, o
 * hand the lock over, fN round trips take N % of the lease from now on, zN stopped for N s.
 * "wanted": the calls with their answers ("l-": a listening try, refused) and the events. */
struct schedule {
    const char *name;
    int wait_ms;  /* -1: for ever; 0: one try */
    int lease_ms; /* 0: 30000; it ends after 29698. Negative: it is not renewed */
    const char *answers, *actions, *wanted;
    bool can_be_asked;  /* its record promises that it hears requests for the lock */
    bool frugal;        /* as in struct store */
    bool whole;         /* as in struct keeper_plan */
    bool had;           /* as in struct acquire_request */
    bool several;       /* one of the keys a, b and c is taken */
    int server_wait_ms; /* 0: 5000; negative: none */
    enum lock_mode mode;
    /* Where it continues for a keeper that is dead. */
    char past;     /* w it waited, h held, r was releasing; 0: there was none */
    int begun_ms;  /* ago */
    int future_ms; /* the rest of the lease */
    int far;       /* the server is so many % of the lease away, there and back; 0: see answers */
};

#define TAKES_OVER(what) .past = (what), .begun_ms = 9000, .future_ms = 15000

static const struct schedule schedules[] = {
    /* One try. */
    {"free", 0, 0, "+", "1000 r", "a+ held f+ over:released"},
    {"held by another", 0, 0, "-", "", "a- over:refused"},
    {"another type", 0, 0, "m", "", "am over:failed"},
    {"denied", 0, 0, "x", "", "ax over:failed"},
    {"no connection", 0, 0, "!", "", "a! trouble a! over:failed"},
    {"nothing is granted yet, until then", 0, 0, "g +", "2000 r",
     "ag wait a+ held f+ over:released"},
    {"not ready", 0, 0, "~ ~ +", "1000 r", "a~ a+ held f+ over:released"},
    {"mute once", 0, 0, "? +", "1000 r", "a? a+ held u+ over:released"},
    {"mute, then refused", 0, 0, "? -", "", "a? a- u- over:refused"},
    {"mute, stopped until it is over, then refused", 0, 0, "? -+1500 +", "1000 z20",
     "a? trouble a- f+ over:refused"},
    {"mute, then gone", 0, 0, "? ! ! ! +", "4000 r", "a? a! a+ held u+ over:released"},
    {"mute, then denied", 0, 0, "? x +", "", "a? ax u+ over:failed"},
    {"mute for good", 0, 0, ".", "", "trouble a. u. over:failed"},

    /* Requests that are executed later than the next one, or were before it. */
    {"granted before, and asked for since", 0, 0, "? A + +", "8000 r",
     "a? aA f+ a+ held f+ over:released"},
    {"asked for, released, refused", 0, 0, "A + -", "", "aA f+ a- over:refused"},
    {"asked for, the release denied", -1, 0, "A x A x +", "9000 r", "qA fx over:failed"},
    {"asked for, released, waiting", -1, 0, "- - A + - - +", "9000 r",
     "q- l- wait lA f+ q- l- wait l+ held f+ over:released"},
    {"asked for, the release is not answered", 0, 0, "A ? + + +", "8000 r",
     "aA f? f+ a+ held f+ over:released"},
    {"asked for, no release is answered", 0, 0, "A . . . + +", "9000 r",
     "aA f. a+ held f+ over:released"},
    {"asked for, cancelled", -1, 0, "A +500 +", "300 c", "qA f+ over:cancelled"},
    {"sent twice, refused", 0, 0, "2 0", "", "a2 u0 over:refused"},
    {"sent twice, granted", 0, 0, "= +", "1000 r", "a= held u+ over:released"},
    {"sent twice, granted, for longer than a request takes", 0, 0, "= +", "6000 r",
     "a= held f+ over:released"},
    {"sent twice, granted, a later request with less time is not answered", 0, 2000, "= . +",
     "1500 r", "a= held r. trouble r+ ext u+ over:released"},
    {"sent twice, waiting, cancelled", -1, 0, "2 - 0", "1000 c", "q2 l- wait u0 over:cancelled"},

    /* A store that is away at the start. */
    {"comes back later", 0, 0, "! ! ! ! ! ! ! +", "4000 r",
     "a! trouble a! a+ held f+ over:released"},
    {"comes back, denied", 0, 0, "! x", "", "a! ax over:failed"},
    {"the wait is shorter", 700, 0, "!", "", "q! over:failed"},
    {"cancelled while it is away", -1, 0, "!", "300 c", "q! over:cancelled"},

    /* Renewing. */
    {"renewed twice", 0, 0, "+", "25000 r", "a+ held r+ ext r+ ext f+ over:released"},
    {"one renewal fails", 0, 0, "+ ? +", "12000 r", "a+ held r? trouble r+ ext u+ over:released"},
    {"two in different ways", 0, 0, "+ ? ? ~ +", "14000 r",
     "a+ held r? trouble r? r~ trouble r+ ext u+ over:released"},
    {"no renewal gets through", 0, 0, "+ ?", "35000 r",
     "a+ held r? trouble r? lost f? over:unreleased"},
    {"no renewal is answered", 0, 0, "+ .", "35000 r",
     "a+ held r. trouble r. lost r. f. over:unreleased"},
    {"not the holder", 0, 0, "+ 0", "15000 r", "a+ held r0 lost f0 over:released"},
    {"revoked", 0, 0, "+ v 0", "15000 r", "a+ held rv lost:revoked f0 over:released"},
    {"its mirror was taken", 0, 0, "+ T 0", "15000 r",
     "a+ held rT lost:mirror-taken f0 over:released"},
    {"its mirror was deleted", 0, 0, "+ D 0", "15000 r",
     "a+ held rD lost:mirror-deleted f0 over:released"},
    {"became another type", 0, 0, "+ m", "15000 r", "a+ held rm lost fm over:released"},
    {"mute, then not the holder", 0, 0, "+ ? 0", "15000 r",
     "a+ held r? trouble r0 lost f0 over:released"},
    {"forgotten, and had again", 0, 0, "+ * 0", "15000 r",
     "a+ held r* again ext f0 lost over:released"},
    {"a fixed lease", 0, -30000, "+ 0", "35000 r", "a+ held lost f0 over:released"},
    {"verified", 0, 0, "+", "2000 v 3000 r", "a+ held r+ ext f+ over:released"},
    {"verified: not the holder", 0, 0, "+ 0", "2000 v 3000 r", "a+ held r0 lost f0 over:released"},
    {"a fixed lease is verified", 0, -30000, "+ + 0", "2000 v 35000 r",
     "a+ held r+ ext lost f0 over:released"},
    {"poked", 0, 0, "+", "2000 p 3000 r", "a+ held r+ ext f+ over:released"},
    {"no renewals for a while", 0, 0, "+", "5000 h 20000 u 21000 r",
     "a+ held r+ ext f+ over:released"},
    {"poked while there are no renewals", 0, 0, "+", "1000 h 1001 p 1002 u 5000 r",
     "a+ held r+ ext f+ over:released"},
    {"poked twice while there are no renewals", 0, 0, "+", "1000 h 1001 p 1002 p 9000 u 9100 r",
     "a+ held r+ ext f+ over:released"},
    {"no renewals any more", 0, 0, "+ 0", "5000 h 8000 p 35000 r", "a+ held lost f0 over:released"},
    {"stopped beyond the lease", 0, 0, "+ 0", "5000 z60 70000 r", "a+ held lost f0 over:released"},
    {"a renewal heard beyond the lease", 0, 0, "+ +500 0", "10100 z60 75000 r",
     "a+ held lost r+ f0 over:released"},

    /* A request of another owner is not heard at first. */
    {"not listening for less than a second", 0, 0, "d +", "949 r", "ad held f+ over:released"},
    {"not listening for a second", 0, 0, "d +", "1000 r", "ad held r+ ext f+ over:released"},
    {"not listening, a short lease", 0, 2000, "d +", "700 r", "ad held r+ ext f+ over:released"},
    {"not listening again: a pause of twice as long", 0, 0, "d d + 0", "2800 r",
     "ad held rd ext f+ over:released"},
    {"not listening again: twice as long", 0, 0, "d d + 0", "2900 r",
     "ad held rd ext r+ ext f0 lost over:released"},
    {"never listening: renewed as ever at most", 0, 3000, "d", "2500 r",
     "ad held rd ext rd ext fd over:released"},
    {"not listening after its connection broke", 0, 0, "+ d + 0", "2000 p 3000 r",
     "a+ held rd ext r+ ext f0 lost over:released"},
    ROW("not listening, a fixed lease", 0, -30000, "d + 0", "35000 r",
        "ad held r+ ext lost f0 over:released", .can_be_asked = true),
    ROW("not listening, a fixed lease, on hold when it would ask", 0, -30000, "d + 0",
        "100 h 3000 u 35000 r", "ad held r+ ext lost f0 over:released", .can_be_asked = true),
    ROW("not listening, a fixed lease, taken away", 0, -30000, "d 0 0", "35000 r",
        "ad held r0 lost f0 over:released", .can_be_asked = true),
    ROW("not listening, a fixed lease, no answer", 0, -30000, "d ? + 0", "4000 r",
        "ad held r? r+ ext u0 lost over:released", .can_be_asked = true),
    {"not listening, a fixed lease without requests for it", 0, -30000, "d +", "4000 r",
     "ad held f+ over:released"},
    {"asked for during a renewal", 0, 0, "+ +500 0", "10100 p 15000 r",
     "a+ held r+ ext r0 lost f0 over:released"},

    /* A store that grants in its own way. */
    {"granted for half the time", 0, 0, "/ / / +", "12000 r",
     "a/ held r/ ext r/ ext f+ over:released"},
    {"half the time runs out", 0, 0, "/ .", "20000 r",
     "a/ held r. trouble r. lost r. f. over:unreleased"},
    {"counted from before", 0, 0, "< < +", "5000 r", "a< held r< ext r+ ext f+ over:released"},

    /* Handed over without being asked for again. */
    {"handed over", -1, 0, "- - +", "1000 o 5000 r", "q- l- wait held h+ ext f+ over:released"},
    {"handed over, for a moment", -1, 0, "- - +", "1000 o 1009 r",
     "q- l- wait held f+ over:released"},
    {"handed over, for a moment longer", -1, 0, "- - +", "1000 o 1011 r",
     "q- l- wait held h+ ext f+ over:released"},
    {"handed over, renewed as ever", -1, 0, "- - +", "1000 o 15000 r",
     "q- l- wait held h+ ext r+ ext f+ over:released"},
    ROW("handed over where requests are saved", -1, 0, "- +", "1000 o 5000 r",
        "l- wait held h+ ext f+ over:released", .frugal = true),
    ROW("handed over where requests are saved, for a moment", -1, 0, "- +", "1000 o 1900 r",
        "l- wait held f+ over:released", .frugal = true),
    ROW("one try where requests are saved", 0, 0, "-", "", "a- over:refused", .frugal = true),
    {"handed over too late", -1, 3000, "- - + +", "2000 o 2500 r",
     "q- l- wait q+ held f+ over:released"},
    {"handed over, and asked again", -1, 0, "- - +", "1000 o 1100 p 2000 r",
     "q- l- wait held h+ ext r+ ext f+ over:released"},
    {"handed over, taken away", -1, 0, "- - 0", "1000 o 5000 r",
     "q- l- wait held h0 lost f0 over:released"},
    {"handed over, no renewals for a while", -1, 0, "- - +", "900 h 1000 o 2000 u 5000 r",
     "q- l- wait held h+ ext f+ over:released"},
    {"handed over to one that is away", -1, 0, "- - + +", "500 s 1000 o 3000 w 8000 r",
     "q- l- wait f+ l+ held f+ over:released"},
    {"a fixed lease is not handed over", -1, -30000, "- - +", "1000 o 5000 r",
     "q- l- wait l+ held f+ over:released"},
    ROW("not handed over to a script", -1, 0, "- - +", "1000 o 5000 r",
        "q- l- wait l+ held f+ over:released", .whole = true),

    /* Releasing. */
    {"release unanswered, then nothing there", 0, 0, "+ ? 0", "1000 r",
     "a+ held f? f0 over:released"},
    {"release unanswered, but taken away before", 0, 0, "+ ? v", "1000 r",
     "a+ held f? fv lost:revoked over:released"},
    {"release late, then nothing there", 0, 0, "+ . 0", "1000 r", "a+ held f. f0 over:released"},
    {"release never answered", 0, 0, "+ .", "1000 r", "a+ held f. over:unreleased"},
    {"release answered after the lease, nothing there", 0, -30000, "+ 0+900", "29000 r",
     "a+ held f0 over:unreleased"},
    {"release answered after the lease, taken away", 0, -30000, "+ v+900", "29000 r",
     "a+ held fv lost:revoked over:released"},
    {"release during a renewal", 0, 0, "+ +100 +", "10050 r", "a+ held r+ f+ over:released"},
    {"release during a retry", 0, 0, "+ ? +", "10010 r", "a+ held r? trouble u+ over:released"},

    /* Waiting. */
    {"granted at a heartbeat", -1, 0, "- - - +", "9000 r",
     "q- l- wait l- wait l+ held f+ over:released"},
    {"far: a heartbeat is due when a third of the kept time is over", -1, 0, "- k +", "12000 r",
     "q- lk wait l+ held f+ over:released"},
    {"far: and not before", -1, 0, "- k +", "8900 c", "q- lk wait f+ over:cancelled"},
    {"far: poked when it comes near", -1, 0, "- k - +", "1000 p 6000 r",
     "q- lk wait q- l+ held f+ over:released"},
    {"far: poked during the request", -1, 0, "- k500 - +", "100 p 9000 r",
     "q- lk wait l- wait l+ held f+ over:released"},
    {"granted when poked", -1, 0, "- - + +", "1000 p 5000 r",
     "q- l- wait q+ held f+ over:released"},
    {"poked for nothing", -1, 0, "- - - - +", "1000 p 5000 r",
     "q- l- wait q- l- wait l+ held f+ over:released"},
    {"granted as soon as anything is", -1, 0, "g g +", "1500 r",
     "qg lg wait l+ held f+ over:released"},
    {"held after all", -1, 0, "g g - +", "5000 r", "qg lg wait l- wait l+ held f+ over:released"},
    {"no connection from the start", -1, 0, "!", "", "q! trouble q! over:failed"},
    {"silent while waiting", -1, 0, "- - !", "200000 c",
     "q- l- wait l! trouble l! f! over:cancelled"},
    {"mute for good while waiting", -1, 0, "- - ?", "200000 c",
     "q- l- wait l? trouble l? u? over:cancelled"},
    {"silent while waiting, until the time is up", 60000, 0, "- - !", "",
     "q- l- wait l! trouble l! over:failed"},
    {"denied while waiting", -1, 0, "- - x", "", "q- l- wait lx over:failed"},
    {"another type while waiting", -1, 0, "- - m +", "", "q- l- wait lm f+ over:failed"},
    {"another type while waiting, damaged", -1, 0, "- - m", "", "q- l- wait lm fm over:failed"},
    {"the time is up", 6000, 0, "- - - - 0", "", "q- l- wait l- wait l- wait f0 over:refused"},
    {"the time is up before anything is granted", 900, 0, "g g 0", "", "qg lg wait f0 over:failed"},
    {"the time is up, left the queue", 2000, 0, "- - +", "", "q- l- wait f+ over:refused"},
    {"H150 the time is up while it stood still, held", 6000, 0, "- - - 0", "1000 z30",
     "q- l- wait l- f0 over:refused"},
    {"the time is up in an outage", 6000, 0, "- - ?", "",
     "q- l- wait l? trouble l? u? over:failed"},
    {"the time is up, no answer", 2000, 0, "- - .", "", "q- l- wait f. over:failed"},
    {"the time is up before the answer", 2000, 0, "+2500", "", "q. u. over:failed"},
    {"granted in the last moment", 2000, 0, "+1999 +", "3000 r", "q+ held f+ over:released"},

    /* A grant that comes late in its lease. */
    {"in time", 0, 3000, "+1000 +", "2000 r", "a+ held r+ ext f+ over:released"},
    {"late", 0, 3000, "+1001 + +", "2000 r", "a+ r+ held f+ over:released"},
    {"late, and gone", 0, 3000, "+1500 0 +", "2000 r", "a+ r0 a+ held f+ over:released"},
    {"late, and taken", 0, 3000, "+1500 - -", "", "a+ r- a- over:refused"},
    {"late, then mute", 0, 3000, "+1500 ? + +", "2000 r", "a+ r? a+ held f+ over:released"},
    {"late, then mute for good", 0, 3000, "+1500 ?", "", "a+ r? a? trouble a? u? over:failed"},
    {"late for what it counts from, then mute twice", 0, 3000, "<101 ? <101 ? + +", "1000 r",
     "a< r? a< r? a+ held f+ over:released"},
    {"late, then denied", 0, 3000, "+1500 x +", "", "a+ rx u+ over:failed"},
    {"late, then stopped beyond the lease", 0, 3000, "+1500 +100 + +", "1550 z60 62000 r",
     "a+ r+ held f+ over:released"},
    {"stopped before the answer", 0, 3000, "+100 +100 +", "50 z60 61000 r",
     "a+ r+ held f+ over:released"},
    {"cancelled while it is renewed", 0, 3000, "+1500 +400", "1600 c", "a+ bye over:cancelled"},

    /* Going. */
    {"cancelled while waiting", -1, 0, "- - +", "1000 c", "q- l- wait f+ over:cancelled"},
    {"cancelled during a try", -1, 0, "+3000", "1000 c", "bye over:cancelled"},
    {"cancelled during a try, granted", -1, 0, "+100 +", "50 c", "q+ f+ over:cancelled"},
    {"cancelled during a try, refused", -1, 0, "-100 0", "50 c", "q- f0 over:cancelled"},
    {"cancelled during a try, cut off", -1, 0, "?100 +", "50 c", "q? u+ over:cancelled"},
    {"cancelled during a try, then mute", -1, 0, "+100 .", "50 c", "q+ f. over:cancelled"},
    {"cancelled during a heartbeat", -1, 0, "- - .", "2900 c", "q- l- wait bye over:cancelled"},
    {"cancelled during a first try, no connection", -1, 0, ", +", "1000 c", "over:cancelled"},
    {"cancelled during a retry, no connection", -1, 0, "? , +", "1000 c", "q? u+ over:cancelled"},
    {"cancelled before a retry", -1, 0, "? +", "10 c", "q? u+ over:cancelled"},
    {"cancelled before a retry, then stopped", -1, 0, "? , +", "10 c 100 z30",
     "q? u, u+ over:cancelled"},
    {"cancelled during a release", -1, 0, "+ .", "1000 r 1500 c",
     "q+ held used-bye over:cancelled"},
    {"back to the queue", -1, 0, "+ + - - + +", "1000 a 6000 r",
     "q+ held f+ q- l- wait l+ held f+ over:released"},
    {"back to the queue, it was gone", -1, 0, "+ 0 + +", "1000 a 2000 r",
     "q+ held f0 q+ held f+ over:released"},
    {"back to the queue, no answer", -1, 0, "+ . + +", "1000 a 4000 r",
     "q+ held f. q+ held f+ over:released"},
    /* The owner is away. */
    {"away while it is waited for", -1, 0, "- - +", "1000 s 20000 w 21000 r",
     "q- l- wait l+ held f+ over:released"},
    {"away, poked, and back in the queue", -1, 0, "- - + - +", "1000 s 1500 p 20000 w 26000 r",
     "q- l- wait f+ l- wait l+ held f+ over:released"},
    {"away when it is granted", -1, 0, "+100 + +", "50 s 20000 w 21000 r",
     "q+ f+ l+ held f+ over:released"},
    {"away when the one try is granted", 0, 0, "+100 + -", "50 s 20000 w", "a+ f+ a- over:refused"},
    {"away when it is granted, and the release is not answered", -1, 0, "+100 . ! 0 +",
     "50 s 20000 w 21000 r", "q+ f. f! f0 l+ held f+ over:released"},
    {"away when a late grant is renewed", 0, 3000, "+1500 +200 + +", "1600 s 8000 w 9000 r",
     "a+ r+ f+ a+ held f+ over:released"},
    {"away, and a try was not answered", -1, 0, "? + +", "10 s 20000 w 21000 r",
     "q? trouble f+ q+ held f+ over:released"},
    {"away, and a try is not answered", -1, 0, "- - . + +", "3000 s 20000 w 21000 r",
     "q- l- wait l. trouble f+ l+ held f+ over:released"},
    {"away until the time is up", 6000, 0, "- - 0", "1000 s", "q- l- wait f0 over:refused"},
    {"back to the queue, cancelled", -1, 0, "+ ? +", "1000 a 1010 c",
     "q+ held f? f+ over:cancelled"},

    /* A store that is away at the start, with another time for it. */
    ROW("one attempt, not ready", -1, 0, "~ +", "", "q~ over:failed", .server_wait_ms = -1),
    ROW("one attempt, mute", -1, 0, "? +", "", "q? u+ over:failed", .server_wait_ms = -1),
    ROW("a short time", 0, 0, "!", "", "a! over:failed", .server_wait_ms = 500),
    ROW("nothing is granted yet, for longer than that", 0, 0, "g", "", "ag over:failed",
        .server_wait_ms = 500),
    ROW("nothing is granted yet, and then for longer than that", 0, 0, "g", "",
        "ag wait ag over:failed", .server_wait_ms = 1500),

    /* The next readers are called by the renewal behind a hand-over. */
    ROW("handed over to one of many readers", -1, 0, "- - +", "1000 o 1001 r",
        "q- l- wait held h+ ext f+ over:released", .mode = LOCK_SHARED),

    /* This keeper continues for one that is dead. */
    ROW("renewed at once", 0, 0, "+", "25000 r", "r+ ext r+ ext r+ ext u+ over:released",
        TAKES_OVER('h')),
    ROW("not the holder any more", 0, 0, "0", "2000 r", "r0 lost u0 over:released",
        TAKES_OVER('h')),
    ROW("forgotten, and had again", 0, 0, "* +", "2000 r", "r* again ext u+ over:released",
        TAKES_OVER('h')),
    ROW("never renewed", 0, 0, ".", "20000 r", "r. trouble lost r. u. over:unreleased", .past = 'h',
        .begun_ms = 9000, .future_ms = 8000),
    ROW("a fixed lease", 0, -30000, "+", "5000 r", "u+ over:released", TAKES_OVER('h')),
    ROW("a fixed lease ends", 0, -30000, "0", "20000 r", "lost u0 over:released", TAKES_OVER('h')),
    ROW("to be released", 0, 0, "+", "10 r", "u+ over:released", TAKES_OVER('r')),
    ROW("released already", 0, 0, "0", "10 r", "u0 over:released", TAKES_OVER('r')),
    ROW("in the same place", -1, 0, "- - +", "9000 r", "l- wait l- wait l+ held u+ over:released",
        .past = 'w', .begun_ms = 9000),
    ROW("granted to the one before", -1, 0, "+", "9000 r", "l+ held u+ over:released", .past = 'w',
        .begun_ms = 9000),
    ROW("one try", 0, 0, "-", "", "a- u- over:refused", .past = 'w', .begun_ms = 100),
    ROW("never answered", -1, 0, ".", "", "trouble q. u. over:failed", .past = 'w',
        .begun_ms = 100),

    /* A lock that the owner had before is released only after a refusal. */
    ROW("had before, not answered", 0, 0, ".", "", "a. over:failed", .had = true,
        .server_wait_ms = -1),
    ROW("had before, refused", 0, 0, "-", "", "a- over:refused", .had = true),
    ROW("had before, cancelled before the answer", -1, 0, ".", "100 c", "over:cancelled q.",
        .had = true),
    ROW("had before, cancelled in the queue", -1, 0, "-", "4000 c",
        "q- l- wait l- wait f- over:cancelled", .had = true),
    ROW("had before, refused, then not answered", -1, 0, "- - .", "9000 c",
        "q- l- wait l. trouble over:cancelled l.", .had = true),

    /* Some of several keys: all are asked for; when some are granted, renewals and releases are
     * only about those, unless another grant may be under way. */
    ROW("one is granted", -1, 0, "b +", "12000 r", "qb:abc/1 held r+:b ext f+:b over:released",
        .several = true),
    ROW("one is granted, and lost: a late request may be granted another", -1, 0, "b 0 +",
        "15000 r", "qb:abc/1 held r0:b lost f+:abc over:released", .several = true),
    ROW("none is granted", -1, 0, "-", "4000 c",
        "q-:abc/1 l-:abc/1 wait l-:abc/1 wait f-:abc over:cancelled", .several = true),
    ROW("one after silence", -1, 0, ". b +", "25000 r",
        "trouble q.:abc/1 trouble qb:abc/1 held r+:b ext f+:b over:released", .several = true,
        .server_wait_ms = 60000),
    ROW("one is granted late, then mute: any may be granted", -1, 3000, "b1500 ? +", "1510 c",
        "qb:abc/1 r?:b u+:abc over:cancelled", .several = true),
    ROW("nothing is heard: any may be granted", -1, 0, ".", "40000 c",
        "trouble q.:abc/1 trouble q.:abc/1 bye:abc over:cancelled", .several = true,
        .server_wait_ms = 60000),
    ROW("another one the next time", -1, 0, "b + + a +", "12000 a 24000 r",
        "qb:abc/1 held r+:b ext f+:b qa:abc/1 held r+:a ext f+:a over:released", .several = true),
    ROW("none of them the next time", -1, 0, "b + + -", "12000 a 16000 c",
        "qb:abc/1 held r+:b ext f+:b q-:abc/1 l-:abc/1 wait l-:abc/1 wait f-:abc over:cancelled",
        .several = true),
    ROW("nothing is heard the next time", -1, 0, "b + + .", "12000 a 20000 c",
        "qb:abc/1 held r+:b ext f+:b q.:abc/1 trouble bye:abc over:cancelled", .several = true,
        .server_wait_ms = 60000),
    ROW("a successor waits on", -1, 0, "- - a +", "20000 r",
        "q-:abc/1* l-:abc/1 wait la:abc/1 held r+:a ext u+:a over:released", .several = true,
        .past = 'w'),
};

struct life {
    struct witness me;
    const struct schedule *schedule;
    struct fake_store store;
    const char *actions;
    struct loop_timer action;
    struct moment begun, held_at, lost_at, over_at;
    bool untimely; /* the command of a lock that is held had to be stopped */
    int extended;
    struct keeper_end end;
    struct answer why; /* of the end */
};

static void note(struct life *life, const char *event)
{
    if (life->me.over)
        accuse(life->me.trial, "an event after the last one");
    fake_log(&life->store, event);
}

/* No deadline may lie behind, nor be later than the lease of the latest request allows. */
static void check_lease(struct life *life, struct lease lease)
{
    int64_t asked = life->store.lease;

    if (moment_reached(lease.end, loop_now(life->me.loop)))
        accuse(life->me.trial, "the lease has ended already");
    if (lease.end.ns > life->store.sent.ns + asked - asked / 100)
        accuse(life->me.trial, "a deadline behind the lease");
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct life *life = arg;

    if (refusal->cause != CAUSE_HELD && refusal->cause != CAUSE_GRACE)
        accuse(life->me.trial, "waiting without a reason");
    note(life, "wait");
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct life *life = arg;

    note(life, "held");
    witness_held(&life->me, lease);
    while (grants->absent)
        grants++;
    if (grants->fence != 7)
        accuse(life->me.trial, "not the fence that came with it");
    if (!life->store.holds)
        accuse(life->me.trial, "held against the store's word");
    life->held_at = loop_now(life->me.loop);
    check_lease(life, lease);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct life *life = arg;

    if (forgotten)
        note(life, "again");
    note(life, "ext");
    witness_extended(&life->me, lease);
    life->extended++;
    check_lease(life, lease);
}

static void on_trouble(void *arg, const struct answer *why)
{
    witness_trouble(arg, why);
    note(arg, "trouble");
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    static const char *const words[LOSSES] = {[LOSS_REVOKED] = "lost:revoked",
                                              [LOSS_MIRROR_TAKEN] = "lost:mirror-taken",
                                              [LOSS_MIRROR_DELETED] = "lost:mirror-deleted"};
    struct life *life = arg;

    note(life, words[loss->cause] ? words[loss->cause] : "lost");
    if (loss->cause == LOSS_REVOKED &&
        (strcmp(loss->by, taken.by) != 0 || strcmp(loss->text, taken.why) != 0))
        accuse(life->me.trial, "revoked by another, or for another reason");
    if (loss->cause == LOSS_STATED && !*loss->text)
        accuse(life->me.trial, "lost without a reason");
    witness_lost(&life->me);
    life->lost_at = loop_now(life->me.loop);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    static const char *const endings[] = {"over:released", "over:refused", "over:failed",
                                          "over:cancelled", "over:unreleased"};
    struct life *life = arg;

    note(life, endings[end->ending]);
    if (life->store.holds && !life->store.parted && !life->schedule->had)
        accuse(life->me.trial, "left without trying to release it");
    if (end->ending == KEEPER_RELEASED && life->store.holds)
        accuse(life->me.trial, "said to be released, but was not");
    if (end->ending == KEEPER_NOT_ACQUIRED && end->refusal->cause != CAUSE_HELD)
        accuse(life->me.trial, "not acquired, but it was not held");
    witness_over(&life->me, end, strchr(life->schedule->actions, 'z'));
    life->end = *end;
    life->why = *end->why;
    life->over_at = loop_now(life->me.loop);
    loop_disarm(life->me.loop, &life->action);
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended,    {on_trouble, witness_recovered},
    on_lost,    on_over, witness_is_away};

static void arm_action(struct life *life)
{
    char *end;
    long ms = strtol(life->actions, &end, 10);

    if (end == life->actions)
        return;
    life->actions = end + 1;
    loop_arm(life->me.loop, &life->action, moment_plus(life->begun, ms * NS_PER_MS));
}

/* A command ends, and a grant is released, only if there was one. */
static void act(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    int64_t patience = LEAVE_NS + 4 * life->store.trip;
    char what = *life->actions++;
    int number = atoi(life->actions);

    if (what == 'c') {
        witness_leave(&life->me, true, patience);
    } else if (what == 'r' && (life->me.held || life->me.lost) && !life->me.leaving) {
        witness_leave(&life->me, false, patience);
    } else if (what == 'a' && life->me.held && !life->me.leaving) {
        witness_restart(&life->me);
    } else if (what == 's') {
        life->me.away = true;
    } else if (what == 'w') {
        life->me.away = false;
        keeper_resume(life->me.keeper);
    } else if (what == 'v') {
        keeper_verify(life->me.keeper);
    } else if (what == 'h') {
        keeper_hold_renewals(life->me.keeper);
    } else if (what == 'u') {
        keeper_allow_renewals(life->me.keeper);
    } else if (what == 'p') {
        store_changed(&life->store.base);
    } else if (what == 'o') {
        fake_hand(&life->store);
    } else if (what == 'f') {
        life->store.trip = life->store.lease / 100 * number;
    } else if (what == 'z') {
        fake_suspend(life->me.loop, number * NS_PER_SEC);
    }
    life->actions += strspn(life->actions, "0123456789");
    if (!life->me.over)
        arm_action(life);
}

static void take_over(struct life *life, const struct schedule *schedule,
                      const struct keeper_plan *plan)
{
    struct moment future = moment_plus(life->begun, schedule->future_ms * NS_PER_MS);
    struct keeper_past past = {.began = moment_plus(life->begun, -schedule->begun_ms * NS_PER_MS),
                               .held = schedule->past != 'w',
                               .released = schedule->past == 'r',
                               .lease = {future, plan->request.lease},
                               .grants = {{.fence = 7}}};

    if (schedule->several) {
        past.grants[1] = past.grants[0];
        past.grants[0] = past.grants[2] = (struct lock_grant){.absent = true};
    }
    life->me.held = life->store.holds = past.held;
    life->me.lease = past.lease;
    life->me.keeper =
        keeper_take_over(life->me.loop, &life->store.base, plan, &past, &events, life);
}

static void run(struct life *life, const struct schedule *schedule)
{
    int64_t lease_ms = schedule->lease_ms ? labs(schedule->lease_ms) : 30000;
    struct loop *loop = loop_new();
    struct moment now = loop_now(loop);
    struct keeper_plan plan =
        plan_of("us", lease_ms * NS_PER_MS, schedule->wait_ms * NS_PER_MS, now);
    static const char *const keys[SEVERAL] = {"a", "b", "c"};
    int turns = 0;

    if (schedule->several) {
        plan.request.keys = keys;
        plan.request.key_count = SEVERAL;
        plan.request.take = 1;
    }
    plan.request.mode = schedule->mode;
    plan.request.who = schedule->can_be_asked ? "host user 1 x - " LOCK_NOTE_HEARS "=1" : "";
    plan.renew = schedule->lease_ms >= 0;
    plan.whole = schedule->whole;
    plan.request.had = schedule->had;
    if (schedule->server_wait_ms)
        plan.server_wait = schedule->server_wait_ms > 0 ? schedule->server_wait_ms * NS_PER_MS : 0;
    *life =
        (struct life){.me = {.trial = &life->store.trial, .loop = loop, .leave_by = MOMENT_NEVER},
                      .schedule = schedule,
                      .actions = schedule->actions,
                      .begun = now};
    life->action = (struct loop_timer){.fire = act, .owner = life};
    fake_store_init(&life->store, loop, schedule->answers);
    life->store.several = schedule->several;
    life->store.base.frugal = schedule->frugal;
    if (schedule->far) {
        life->store.trip = lease_ms * NS_PER_MS / 100 * schedule->far;
        if (plan.connect_timeout < 4 * plan.request.lease)
            plan.connect_timeout = 4 * plan.request.lease;
        life->store.connect_timeout = plan.server_wait = plan.connect_timeout;
    }
    if (schedule->past)
        take_over(life, schedule, &plan);
    else
        life->me.keeper = keeper_start(loop, &life->store.base, &plan, &events, life);
    arm_action(life);
    while (fake_turn(loop)) {
        now = loop_now(loop);
        if (life->me.held && moment_reached(life->me.lease.end, now))
            accuse(life->me.trial, "held beyond the lease");
        life->untimely |=
            life->me.held && schedule->far && now.ns > lease_term_at(life->me.lease, KILL_AFTER).ns;
        if (++turns == TURNS_MAX) {
            accuse(life->me.trial, "no end");
            break;
        }
    }
    if (!life->me.over)
        accuse(life->me.trial, "never over");
    keeper_free(life->me.keeper);
    store_close(&life->store.base);
    loop_free(loop);
}

/* A keeper that meets the answers of a schedule sends the requests that it wants, in that order. */
static void test_schedule(const struct schedule *schedule)
{
    struct life life;

    run(&life, schedule);
    char *end = strrchr(life.store.trial.log, ' ');
    if (end)
        *end = '\0';
    if (tap_ok(!life.store.trial.fault && strcmp(life.store.trial.log, schedule->wanted) == 0,
               "%s: %s", schedule->name, schedule->wanted))
        return;
    tap_note("got %s", life.store.trial.log);
    if (life.store.trial.fault)
        tap_note("%s", life.store.trial.fault);
}

/* The reason at the end: the server's word rather than that it was silent afterwards. */
static const struct {
    const char *answers, *wanted;
} reasons[] = {
    {"+ .", "mute"},
    {"+ !", "too late"},
    {"+ ~", "loading"},
    {"+ ~ .", "loading"},
    {"+ . ~ !", "loading"},
    {"+ ~ x", "denied"},
    /* Not acquired. */
    {"!", "refused, for 5s"},
    {"~ !", "loading, for 5s"},
    {"? ~ .", "loading, for 5s"},
    {"~ ! x", "denied"},
};

/* Which of several failures the owner is told at the end: the server's word rather than
 * silence. */
static void test_reasons(void)
{
    for (size_t i = 0; i < COUNT(reasons); i++) {
        const struct schedule schedule = {.answers = reasons[i].answers, .actions = "1000 r"};
        struct life life;
        run(&life, &schedule);
        tap_is(life.why.text, reasons[i].wanted, "the reason", reasons[i].answers);
    }
}

/* Any answers to any actions: none of the accusations above. */
static void make_schedule(unsigned seed, struct schedule *schedule, char *answers, char *actions)
{
    static const char letters[] = "++++*----000ggg????..,!!~xm";
    static const char words[] = "crravhupoozsww";
    static const int leases[] = {1000, 3000, 30000, -3000};
    static const int waits[] = {-1, 0, 1500, 20000};
    int delays = 1 << chance(&seed, 14), ms = 0;

    schedule->lease_ms = leases[chance(&seed, COUNT(leases))];
    schedule->wait_ms = waits[chance(&seed, COUNT(waits))];
    for (unsigned count = 1 + chance(&seed, 20); count > 0; count--) {
        char letter = letters[chance(&seed, sizeof letters - 1)];
        answers += sprintf(answers, "%c%u ", letter, chance(&seed, (unsigned)delays));
    }
    answers[-1] = '\0';
    for (unsigned count = chance(&seed, 10); count > 0; count--) {
        char what = words[chance(&seed, sizeof words - 1)];
        ms += (int)chance(&seed, chance(&seed, 2) ? 300 : 9000);
        actions += sprintf(actions, what == 'z' ? "%d z%u " : "%d %c ", ms,
                           what == 'z' ? chance(&seed, 50) : (unsigned)what);
    }
    sprintf(actions, "%d w %d r %d c", ms + 1, ms + 100000, ms + 200000);
}

/* 10,000 schedules of answers and actions by chance, under which the keeper breaks no rule of
 * the trial. */
static void test_any(void)
{
    for (unsigned part = 0; part < 20; part++) {
        unsigned seed = part * 500, end = seed + 500;
        char answers[400], actions[400];
        struct schedule schedule = {.answers = answers, .actions = actions};
        struct life life = {.actions = NULL};
        for (; seed < end && !life.store.trial.fault; seed++) {
            make_schedule(seed, &schedule, answers, actions);
            run(&life, &schedule);
        }
        if (tap_ok(!life.store.trial.fault, "500 schedules by chance"))
            continue;
        tap_note("%s (seed %u)", life.store.trial.fault, seed - 1);
        tap_note("lease %d, wait %d, answers %s, actions %s", schedule.lease_ms, schedule.wait_ms,
                 answers, actions);
        tap_note("got %s", life.store.trial.log);
    }
}

/* -- a server far away, where nothing is lost -------------------------------------------------- */

/* Near enough: it has the lock soon, and keeps it for long. */
static const char *judge_near(const struct life *life, int64_t trip)
{
    return life->untimely        ? "not renewed before its command had to be stopped"
           : !life->held_at.ns   ? "not had"
           : life->me.lost       ? "not kept"
           : life->extended < 20 ? "hardly ever renewed"
           : moment_until(life->begun, life->held_at) > 4 * trip ? "not had soon"
           : life->end.ending != KEEPER_RELEASED                 ? "not released"
                                                                 : NULL;
}

/* Too far: an end, soon, and why. A server that cannot even be greeted in time is out of reach. */
static const char *judge_far(const struct life *life, const struct schedule *schedule, int64_t trip)
{
    int64_t patience = life->store.connect_timeout, wait = schedule->wait_ms * NS_PER_MS;
    int64_t most = 3 * (patience + schedule->lease_ms * NS_PER_MS);
    bool heard = 3 * trip <= patience && wait <= 0;

    most = 3 * NS_PER_SEC + (wait > 0 && wait < most ? wait : most);
    return life->held_at.ns                                  ? "held what cannot be kept"
           : moment_until(life->begun, life->over_at) > most ? "no end in time"
           : life->end.ending != KEEPER_FAILED               ? "not for the store's sake"
           : heard && !life->end.far.round_trip              ? "not told why"
                                                             : NULL;
}

/* H125: at any round trip below a third of the lease it has the lock and keeps it, at a longer one
 * it ends. */
static void test_distances(void)
{
    static const int leases[] = {1, 2, 3, 5, 10, 30, 600};

    for (size_t i = 0; i < 3 * COUNT(leases); i++) {
        int lease_ms = 1000 * leases[i / 3], waits[] = {0, 3 * lease_ms, -1};
        char actions[20];
        struct schedule schedule = {
            .wait_ms = waits[i % 3], .lease_ms = lease_ms, .answers = "+", .actions = actions};
        const char *fault = NULL;
        struct life life;
        for (int percent = 1; percent <= 200 && !fault; percent++) {
            int64_t trip = lease_ms * NS_PER_MS / 100 * percent;
            schedule.far = percent;
            snprintf(actions, sizeof actions, "%d r", 25 * lease_ms);
            run(&life, &schedule);
            fault = life.store.trial.fault ? life.store.trial.fault
                    : percent <= 33        ? judge_near(&life, trip)
                                           : judge_far(&life, &schedule, trip);
        }
        if (!tap_ok(!fault,
                    "a lease of %d ms, a wait of %d ms: round trips from 1 %% to 200 %% of it",
                    lease_ms, schedule.wait_ms))
            tap_note("%d %%: %s; \"%s\"; %s", schedule.far, fault, life.why.text,
                     life.store.trial.log);
    }
}

/* Where round trips leave no time for renewals, the lock is not kept, and the owner is told how
 * long the lease has to be. */
static void test_too_far(void)
{
    const struct schedule schedule = {.lease_ms = 1000, .answers = "+", .actions = "", .far = 61};
    struct life life;

    run(&life, &schedule);
    tap_ok(life.end.far.round_trip == 610 * NS_PER_MS && life.end.far.lease == NS_PER_SEC &&
               life.end.far.needed == 2 * NS_PER_SEC && life.why.cause == CAUSE_UNFIT,
           "a round trip of 610 ms is too long for a lease of 1 s; it takes 2 s");

    /* Three times a grant that arrives after a third of the lease, and no answer to the renewal
     * which has to confirm it. */
    const struct schedule mute = {
        .lease_ms = 3000, .answers = "<101 ? <101 ? <101 ? +", .actions = ""};
    run(&life, &mute);
    tap_ok(life.end.far.round_trip == NS_PER_SEC && life.end.far.needed == 4 * NS_PER_SEC,
           "so is a third of the lease, after which confirmations were not answered");
}

/* A round trip grows while the lock is held: step by step, it is followed; or the lock is lost
 * before another owner can have it. */
static void test_growth(void)
{
    static const struct {
        int from; /* % of the lease */
        const char *actions;
        bool kept;
    } rows[] = {{1, "150000 f16 300000 r", true},  {5, "150000 f19 300000 r", true},
                {8, "150000 f31 300000 r", true},  {16, "150000 f33 300000 r", true},
                {5, "150000 f30 300000 r", false}, {1, "150000 f90 300000 r", false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct schedule schedule = {
            .lease_ms = 30000, .answers = "+", .actions = rows[i].actions, .far = rows[i].from};
        struct life life;
        run(&life, &schedule);
        bool lost = life.me.lost && moment_reached(life.me.lease.end, life.lost_at);
        if (!tap_ok(!life.store.trial.fault &&
                        (rows[i].kept ? !life.untimely && !life.me.lost : lost),
                    "from %d %%, %s: %s", rows[i].from, rows[i].actions,
                    rows[i].kept ? "kept" : "lost, in time"))
            tap_note("%s; %s", life.store.trial.fault, life.store.trial.log);
    }
}

int main(void)
{
    for (size_t i = 0; i < COUNT(schedules); i++)
        test_schedule(&schedules[i]);
    test_reasons();
    test_distances();
    test_too_far();
    test_growth();
    test_any();
    return tap_done();
}
