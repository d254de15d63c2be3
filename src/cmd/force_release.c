/* rlock force-release: take a lock away from its holder. */
#include "cmd/commands.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/render.h"
#include "cli/request.h"
#include "lock/own_identity.h"
#include "net/loop.h"

/* How often the store is asked whether the holders have released the lock: at first, and after a
 * while. */
#define LOOK_FIRST_NS (50 * NS_PER_MS)
#define LOOK_LAST_NS  (500 * NS_PER_MS)

enum { OPTION_OWNER = OPTION_BEYOND_REQUEST, OPTION_PURGE, OPTION_REASON, OPTION_NOW, OPTION_YES };

static const struct option_spec options[] = {
    OPTION(OPTION_OWNER, "owner", "TOKEN",
           "only from the holder with this token, the owner in rlock status"),
    OPTION(OPTION_PURGE, "purge", NULL, "empty the queue, too; waiters that are alive queue again"),
    OPTION(OPTION_REASON, "reason", "TEXT", "why; the holder that loses it reads this"),
    OPTION(OPTION_NOW, "now", NULL,
           "take it away at once, although its command may run on for a while"),
    OPTION(OPTION_MIRROR, "mirror", "KIND:NAME",
           "not from a holder of KEY, but from another program that has this lock of its own"),
    OPTION(OPTION_YES, "yes", NULL, "do not ask on the terminal"),
    SETTINGS_OPTIONS,
    {0}};

struct eviction {
    struct call call;
    const char *owner; /* the only holder that is meant, or NULL */
    bool yes;
    char mirror[MIRROR_SIZE]; /* only another program's lock; "": the lock */
    char by[IDENTITY_WORD_MAX + 1], why[IDENTITY_WORD_MAX + 1];
};

/* Prints how long ago the store heard of a holder. Returns "out". A holder renews its lease every
 * third of it, so it has missed a renewal after half of it. */
static const char *print_heard(const struct lock_party *holder, char out[120])
{
    const char *heard = MS_TEXT(holder->heard_ms);

    if (holder->unread)
        snprintf(out, 120, "its node may not be read");
    else if (holder->heard_ms <= (holder->heard_ms + holder->left_ms) / 2)
        snprintf(out, 120, "heard from %s ago", heard);
    else if (holder->age_ms - holder->heard_ms < 1000)
        snprintf(out, 120, "not heard from since"); /* it was acquired, which was said before */
    else
        snprintf(out, 120, "not heard from for %s: it may be dead", heard);
    return out;
}

/* Appends a line: who holds the lock, since when, and for how long at least. */
static void show_holder(struct strbuf *out, const char *key, const struct lock_party *holder)
{
    const char *label = holder->who.label, *labelled = *label ? ", label " : "";
    const char *who = PARTY_TEXT(&holder->who);
    char heard[120], slot[24] = "";

    if (holder->slot)
        snprintf(slot, sizeof slot, " in slot %u", holder->slot);
    if (holder->reserved)
        render_line(out, "%s is %s", key, DECISION_TEXT(holder, "reserved"));
    else if (holder->kept)
        render_line(out, "%s is %s; it was run by %s%s%s", key, KEPT_TEXT(holder), who, labelled,
                    label);
    else
        render_line(out, "%s is held%s by %s%s since %s, %s, lease left %s%s%s", key,
                    holder->mode == LOCK_SHARED ? " for reading" : "", who, slot,
                    UTC_TEXT(holder->since_ms), print_heard(holder, heard),
                    MS_TEXT(holder->left_ms), labelled, label);
}

/* Whether the user says yes to the question, or has said --yes. */
static bool is_confirmed(const struct eviction *eviction, const char *question)
{
    char words[80], answer[16];

    if (eviction->yes)
        return true;
    snprintf(words, sizeof words, "%s [y/N]", question);
    return say_ask(words, answer, sizeof answer) &&
           (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0);
}

/* Prints the holders; with --quiet only if a question about them follows. */
static void show_holders(const struct eviction *eviction, const struct lock_view *lock,
                         const struct lock_party *const *holders, size_t count)
{
    const struct lock_party *last = NULL; /* to end, of those that seem to run a command */
    struct strbuf out ENDED_BY(strbuf_free) = {0};

    if (eviction->yes && say_verbosity() == SAY_QUIET)
        return;
    for (size_t i = 0; i < count; i++) {
        bool runs = !holders[i]->kept && !holders[i]->reserved && !holders[i]->unread;
        if (runs && (!last || holders[i]->left_ms > last->left_ms))
            last = holders[i];
        show_holder(&out, lock->key, holders[i]);
    }
    /* The next command may begin beside one that does not know yet that it lost the lock. */
    if (last && command_has(&eviction->call, OPTION_NOW))
        render_line(&out, "with --now, %s may run on until %s",
                    count > 1 ? "their commands" : "its command",
                    LEASE_END_TEXT(last, DESCRIBE_SECOND));
    if (lock->waiter_count > 0)
        render_line(&out, "%zu waiter%s, the first is %s", lock->waiter_count,
                    lock->waiter_count == 1 ? "" : "s", PARTY_TEXT(&lock->waiters[0].who));
    fputs(out.text ? out.text : "", stderr);
}

/* Says no, and is STATUS_NO, which is enough for a user who asked for quiet. */
#define refuse(...) (say_warning("force-release: " __VA_ARGS__), STATUS_NO)

/* Returns the moment when the leases of the holders that were asked have ended, whatever the
 * server's clock does meanwhile: from then on none of them relies on its grant. */
static struct moment leases_end(const struct answer *answer)
{
    int64_t left = answer->refused.left_ms * NS_PER_MS;

    return moment_plus(moment_now(), left + left / 100 + NS_PER_SEC);
}

/* Whether the store has asked the holders to release the lock, and they still have it. */
static bool is_asked(const struct answer *answer)
{
    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_REVOKED;
}

/* Whether the store is away, and may come back: it has not answered, for a cause that may pass. */
static bool is_away(const struct answer *answer)
{
    return answer->verdict == VERDICT_UNKNOWN && cause_may_pass(answer->cause);
}

/* Waits until the holders that were asked have released the lock, or their leases have ended: asks
 * the store again and again, from then on to take it (FORCE_ASKED_OVER). A store that is away is
 * waited for as long: they may have heard of the request. *answer: the first answer; then the
 * last, which the caller reports if it is not GRANTED. */
static void await_release(struct eviction *eviction, struct force_request *request,
                          struct answer *answer)
{
    char who[DESCRIBE_PARTY_SIZE];
    int64_t pause = LOOK_FIRST_NS, left_ms = answer->refused.left_ms;
    struct moment over = leases_end(answer);
    bool told_away = false;

    if (answer->refused.holders > 1)
        snprintf(who, DESCRIBE_PARTY_SIZE, "%" PRId64 " holders", answer->refused.holders);
    else
        describe_party(answer->refused.holder ? &answer->refused.holder->who
                                              : &(struct identity){0},
                       who, DESCRIBE_PARTY_SIZE);

    say_warning("%s: asked %s to release it; the lease ends in %s", request->key, who,
                MS_TEXT(answer->refused.left_ms));
    request->how = FORCE_ASK_AGAIN;
    request->purge = false; /* the first request has emptied the queue */
    while (is_asked(answer) || (is_away(answer) && request->how == FORCE_ASK_AGAIN)) {
        if (is_asked(answer)) {
            /* With more time left than before, or when time was over: it has been acquired anew,
             * by an owner that was asked just now. */
            if (answer->refused.left_ms > left_ms || request->how == FORCE_ASKED_OVER)
                over = leases_end(answer);
            left_ms = answer->refused.left_ms;
        } else if (!told_away) {
            say_warning("%s: %s; trying again", request->key, answer->text);
        }
        told_away |= is_away(answer);
        loop_run_for(eviction->call.query.loop, pause);
        pause = pause * 3 / 2 < LOOK_LAST_NS ? pause * 3 / 2 : LOOK_LAST_NS;
        request->how = moment_reached(over, moment_now()) ? FORCE_ASKED_OVER : FORCE_ASK_AGAIN;
        query_ask(&eviction->call.query, (struct operation){.verb = VERB_FORCE, .force = request},
                  answer);
    }
    if (answer->verdict != VERDICT_GRANTED)
        return;
    /* The last lease that was seen could not end between two looks. */
    if (left_ms * NS_PER_MS > LOOK_LAST_NS && request->how == FORCE_ASK_AGAIN)
        say_warning("%s was released by %s", request->key, who);
    else
        say_warning("%s was taken from %s when the lease had ended", request->key, who);
}

/* Reports that the lock was taken away. only: the holder, if it was one. */
static void report_taken(const struct force_request *request, const struct lock_party *only)
{
    const char *queue = request->purge ? ", and its queue was emptied" : "";

    if (request->owner_count == 0)
        say_warning("the queue of %s was emptied", request->key);
    else if (request->owner_count > 1)
        say_warning("%s was taken from %zu holders%s", request->key, request->owner_count, queue);
    else
        say_warning("%s was taken from %s%s", request->key, PARTY_TEXT(&only->who), queue);
}

/* Says why the lock was not taken from its holders, or may not have been. asked: they were asked
 * to release it. */
static int report_kept(const struct eviction *eviction, const char *key,
                       const struct answer *answer, bool asked)
{
    if (answer->cause == CAUSE_CHANGED || answer->cause == CAUSE_NOT_HOLDER) {
        if (answer->refused.holder)
            return refuse("%s changed hands meanwhile, and is held by %s now; nothing was changed",
                          key, PARTY_TEXT(&answer->refused.holder->who));
        return refuse("%s changed hands meanwhile; nothing was changed", key);
    }
    int status = command_refused(&eviction->call, answer);
    if (answer->maybe_done)
        say_warning(asked ? "%s: its holder was asked, and may release it anyway"
                          : "%s may have been released anyway",
                    key);
    return status;
}

/* Asks the holders to release the lock, or takes it from them at once. */
static int force_holders(struct eviction *eviction, const struct lock_view *lock,
                         const struct lock_party *const *holders, size_t count)
{
    const char **owners FREED = mem_zeroed((count + 1) * sizeof *owners);
    struct force_request request = {.key = lock->key,
                                    .how = command_has(&eviction->call, OPTION_NOW) ? FORCE_NOW
                                                                                    : FORCE_ASK,
                                    .by = eviction->by,
                                    .why = eviction->why,
                                    .owners = owners,
                                    .owner_count = count,
                                    .purge = command_has(&eviction->call, OPTION_PURGE)};
    struct answer answer;

    for (size_t i = 0; i < count; i++) {
        /* A lease counts from when the store last heard of its holder. */
        int64_t lease = (holders[i]->heard_ms + holders[i]->left_ms) * NS_PER_MS;
        owners[i] = holders[i]->owner;
        if (!holders[i]->reserved && lease > request.lease)
            request.lease = lease;
    }
    /* Notices a connection that was closed during the question. */
    loop_run_for(eviction->call.query.loop, 0);
    query_ask(&eviction->call.query, (struct operation){.verb = VERB_FORCE, .force = &request},
              &answer);
    bool asked = is_asked(&answer);
    if (asked)
        await_release(eviction, &request, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return report_kept(eviction, lock->key, &answer, asked);
    if (!asked)
        report_taken(&request, holders[0]);
    return STATUS_OK;
}

/* Shows the holders that are meant and asks on the terminal; then takes the lock from them. */
static int evict_holders(struct eviction *eviction, const char *key)
{
    struct lock_view free_lock = {.key = key};
    struct answer answer;
    const struct lock_view *lock =
        query_read_lock(&eviction->call.query, key, &eviction->call.list, &answer);
    char question[64] = "Take it away?";

    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(&eviction->call, &answer);
    lock = lock ? lock : &free_lock;
    const struct lock_party **holders FREED = /* those that are meant */
        mem_zeroed((lock->holder_count + 1) * sizeof *holders);
    bool idle_queue = lock->holder_count == 0 && lock->waiter_count > 0 &&
                      command_has(&eviction->call, OPTION_PURGE);
    size_t count = 0;
    for (size_t i = 0; i < lock->holder_count; i++)
        if (!eviction->owner || strcmp(lock->holders[i].owner, eviction->owner) == 0)
            holders[count++] = &lock->holders[i];
    if (count > 1)
        snprintf(question, sizeof question, "Take it away from all %zu?", count);
    if (count > 0 || idle_queue)
        show_holders(eviction, lock, holders, count);
    if (eviction->owner && count == 0)
        return refuse("%s is not held by %s", lock->key, eviction->owner);
    if (count == 0 && !idle_queue) {
        int status = refuse("%s is not held", lock->key);
        if (strpbrk(lock->key, "*?["))
            say_hint("force-release takes KEYs, not GLOBs; rlock status lists them");
        return status;
    }
    if (!is_confirmed(eviction, idle_queue ? "Empty its queue?" : question))
        return refuse("%s is left as it was", lock->key);
    return force_holders(eviction, lock, holders, count);
}

/* -- another program's lock -------------------------------------------------------------------- */

/* Takes the other program's lock, if its token is still the one that was shown. */
static int take_foreign(struct eviction *eviction, const char *key, const char *token)
{
    const char *name = strchr(eviction->mirror, ':') + 1;
    struct force_request request = {
        .key = key, .mirror = eviction->mirror, .owners = &token, .owner_count = 1};
    struct answer answer;

    loop_run_for(eviction->call.query.loop, 0); /* notices a connection that was closed meanwhile */
    query_ask(&eviction->call.query, (struct operation){.verb = VERB_FORCE, .force = &request},
              &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        say_warning("%s was taken from another program", name);
        return STATUS_OK;
    }
    if (answer.cause == CAUSE_HELD || answer.cause == CAUSE_NOT_HOLDER ||
        answer.cause == CAUSE_CHANGED)
        return refuse("%s changed hands meanwhile; nothing was changed", name);
    if (answer.maybe_done)
        say_warning("%s may have been taken anyway; rlock status %s shows", name, name);
    return command_refused(&eviction->call, &answer);
}

/* Takes the lock of another program, a mirror of the KEY, away from that program. */
static int evict_foreign(struct eviction *eviction, const char *key)
{
    struct force_request request = {.key = key, .mirror = eviction->mirror};
    struct answer answer;
    char token[OWNER_SIZE];

    /* Without an owner, this only asks which token has the mirror. */
    query_ask(&eviction->call.query, (struct operation){.verb = VERB_FORCE, .force = &request},
              &answer);
    if (answer.verdict == VERDICT_GRANTED)
        return refuse("%s is not held by another program", strchr(eviction->mirror, ':') + 1);
    if (answer.cause != CAUSE_HELD)
        return command_refused(&eviction->call, &answer);
    if (!eviction->yes || say_verbosity() != SAY_QUIET) {
        char end[64] = "has no end";
        if (answer.refused.left_ms > 0)
            snprintf(end, sizeof end, "ends in %s if it is not renewed",
                     MS_TEXT(answer.refused.left_ms));
        fprintf(stderr,
                "%s, the mirror of %s, is held by another program, and %s\n"
                "It is not a lease of rlock: the program is not told, and may continue as if it "
                "had it\n",
                answer.text, key, end);
    }
    if (!is_confirmed(eviction, "Take it away?"))
        return refuse("%s is left as it was", answer.text);
    snprintf(token, sizeof token, "%s", answer.refused.holder ? answer.refused.holder->owner : "");
    return take_foreign(eviction, key, token);
}

/* Reads --mirror, and refuses options that exclude it. */
static int check_mirror(struct eviction *eviction)
{
    const struct call *call = &eviction->call;
    const char *mirror = command_value(call, OPTION_MIRROR);

    if (!mirror)
        return STATUS_OK;
    const char *why = mirror_read(mirror, call->arguments.words[0], eviction->mirror);
    if (why)
        return command_wrong(call, "--mirror", mirror, why);
    if (call->arguments.word_count > 1)
        return command_misused(call, "--mirror is for one KEY");
    if (eviction->owner || command_has(call, OPTION_PURGE) || command_has(call, OPTION_NOW) ||
        command_has(call, OPTION_REASON))
        return command_misused(call, "--mirror does not go with --owner, --purge, --now or "
                                     "--reason: the other program is told nothing");
    return STATUS_OK;
}

/* Checks the options. Without a terminal there is no one to confirm. A store that cannot ask a
 * holder can still take the lock away. */
static int check_eviction(struct call *call)
{
    struct eviction *eviction = (struct eviction *)call;

    eviction->owner = command_value(call, OPTION_OWNER);
    eviction->yes = command_has(call, OPTION_YES);
    if (eviction->owner && call->arguments.word_count > 1)
        return command_misused(call, "--owner is for one KEY");
    int status = check_mirror(eviction);
    if (status == STATUS_OK && !eviction->yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
        return command_misused(call, "not a terminal: confirm with --yes");
    call->needs = command_has(call, OPTION_NOW) || *eviction->mirror ? 0 : STORE_ASK;
    return status;
}

/* Takes the locks of all KEYs away, one after the other. Returns the worst status of all: an error
 * of the store, the larger number, weighs more than a plain no. */
static int evict_all(struct call *call)
{
    struct eviction *eviction = (struct eviction *)call;
    const struct arguments *given = &call->arguments;
    int worst = STATUS_OK;

    signal(SIGXFSZ, SIG_IGN); /* a log that may not grow loses what is shown, and nothing else */
    /* The holder that loses the lock reads who takes it, from where and why. */
    const char *reason = command_value(&eviction->call, OPTION_REASON);
    struct identity self = {0};
    if (!eviction->call.settings.no_identity) {
        own_identity_fill(&self, "", getpid());
        identity_set(eviction->by, PARTY_TEXT(&self));
    }
    if (reason)
        identity_set(eviction->why, reason);
    if (*eviction->mirror)
        worst = mirror_judge(eviction->mirror, given->words[0], call);
    if (worst == STATUS_OK)
        worst = command_open(call);
    if (worst != STATUS_OK)
        return worst;
    for (size_t i = 0; i < given->word_count; i++) {
        if (text_is_among((const char *const *)given->words, i, given->words[i]))
            continue; /* a second time would be the next holder's */
        int status = *eviction->mirror ? evict_foreign(eviction, given->words[i])
                                       : evict_holders(eviction, given->words[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

const struct command command_force_release = {
    .name = "force-release",
    .summary = "take a lock away from its holder, which is asked first",
    .usage = {"force-release [OPTIONS] KEY..."},
    .example = "Example, in a script, from the holder that was seen and no other:\n"
               "  owner=$(rlock status --json deploy | jq -r '.[0].holders[0].owner')\n"
               "  rlock force-release --yes --owner \"$owner\" deploy\n",
    .options = options,
    .words = WORDS_KEYS,
    .size = sizeof(struct eviction),
    .needs = STORE_FORCE,
    .check = check_eviction,
    .act = evict_all,
};
