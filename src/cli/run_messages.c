/* Turns each event of a run or an acquisition into a message and a hint. It reads the event and the
 * request, and changes only what it prints. To add a message, edit enum run_event (run/events.h)
 * and the table here. */
#include "cli/run_messages.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/describe.h"
#include "lock/lock.h"

/* -- the wordings ---------------------------------------------------------------------------- */

enum level {
    ERROR,
    WARNING,
    DETAIL,
    REMINDER, /* an error, only on a terminal */
    CONFLICT, /* an error, or less, by the settings */
};

#define WORDING(EVENT, LEVEL, TEXT, ...) [EVENT] = {.level = LEVEL, .text = TEXT, __VA_ARGS__}

/* Forms (base/text.h). A hint whose field is empty is left out. */
static const struct wording {
    enum level level;
    const char *text, *hint;
} wordings[RUN_EVENTS] = {
    WORDING(RUN_REQUEUED, DETAIL,
            "{lock}: was dropped from the queue, and is back in it as number {number}"),
    WORDING(RUN_OWN_ANCESTOR, ERROR,
            "{key}: rlock waits for itself: pid {number}, which holds it, is an ancestor of this "
            "process",
            .hint = "pass RLOCK_OWNER on, as by sudo --preserve-env=RLOCK_OWNER; rlock acquire "
                    "sets it with --export"),
    WORDING(RUN_ACQUIRED, DETAIL, "{key}: acquired, fencing token {number}[, slot {slot}]"),
    WORDING(RUN_WAITED, WARNING, "{lock}: acquired after {duration}"),
    WORDING(RUN_SHORT_LEASE, WARNING, "{lock}: the store grants a lease of {duration}, not more"),
    WORDING(RUN_OTHER_LIMIT, WARNING, "{key}: its stored limit of {number} counts, not {asked}"),
    WORDING(RUN_NOT_ACQUIRED, CONFLICT, "{key}: not acquired: {obstacle}[; {ancestor}]"),

    WORDING(RUN_SERVER_SAID, DETAIL, "{lock}: the server said: {why}"),
    WORDING(RUN_TROUBLE, WARNING, "{lock}: {why}; trying again"),
    WORDING(RUN_STORE_BACK, WARNING, "{lock}: the store is back after {duration}"),
    WORDING(RUN_FORGOTTEN, WARNING, "{lock}: the store had forgotten it, and has it again"),
    WORDING(RUN_RENEWED, DETAIL, "{lock}: renewed"),
    WORDING(RUN_FAILED, ERROR, "{key}: {why}", .hint = "{hint}"),

    WORDING(RUN_NO_PROC, DETAIL,
            "{lock}: /proc cannot be used; of what the command starts, only its process group can "
            "be stopped"),
    WORDING(RUN_CGROUP, DETAIL, "{lock}: its command has the cgroup {why}"),
    WORDING(RUN_NO_CGROUP_HERE, DETAIL, "{lock}: its command has no cgroup of its own"),
    WORDING(RUN_NO_CGROUP, ERROR, "{lock}: cannot make a cgroup for its command: {why}",
            .hint = "without --cgroup, or in a unit with Delegate=yes"),
    WORDING(RUN_NOT_STARTED, ERROR, "cannot start {command}: {why}"),
    WORDING(RUN_NOT_EXECUTED, ERROR, "{command}: {why}"),
    WORDING(RUN_KEPT_STOPPED, DETAIL, "{lock}: {command} was stopped; the lock is kept"),
    WORDING(RUN_NO_TERMINAL, WARNING,
            "{lock}: {command} needs the terminal, which another job has; HUP sent"),
    WORDING(RUN_STOPPING, ERROR, "{lock}: stopping {command}: {why}"),
    WORDING(RUN_LOST, ERROR, "{lock}: lock lost: {why}"),
    WORDING(RUN_LOST_STOPPING, ERROR, "{lock}: lock lost: {why}; stopping {command}"),
    WORDING(RUN_LOST_CONTINUES, ERROR, "{lock}: lock lost: {why}; {command} continues"),
    WORDING(RUN_STOPPED_BEFORE, REMINDER, "{lock}: {command} was stopped: {why}"),
    WORDING(RUN_LOST_BEFORE, REMINDER, "{lock}: lock lost: {why}"),
    WORDING(RUN_LOST_STOPPED_BEFORE, REMINDER, "{lock}: lock lost: {why}; {command} was stopped"),

    WORDING(RUN_AGENT_REPLACED, WARNING, "{lock}: its agent {end}; another one takes over"),
    WORDING(RUN_AGENT_MISSING, WARNING,
            "{lock}: its agent {end}, and another one cannot be started yet: {why}"),
    WORDING(RUN_AGENT_DIED_AGAIN, DETAIL, "{lock}: its agent {end} again"),
    WORDING(RUN_AGENTS_DIE, ERROR, "{lock}: the agent {end} while it waited, again and again"),
    WORDING(RUN_AGENT_GAVE_UP, WARNING, "{lock}: {why}"),
    WORDING(RUN_SURVIVORS, ERROR, "{lock}: some processes of its command could not be killed"),
    WORDING(RUN_UNSEEN, ERROR,
            "{lock}: cannot see whether all processes of its command have ended"),
    WORDING(RUN_SYSTEM_REFUSED, ERROR, "{lock}: the operating system refuses: {why}"),

    WORDING(RUN_NOT_NOTIFIED, WARNING, "{lock}: cannot start what --notify asks for: {why}"),
    WORDING(RUN_NOTIFIED_BADLY, WARNING, "{lock}: the command of --notify {end}"),

    WORDING(RUN_STOP_COMMAND, DETAIL, "{lock}: the command of --stop has {duration}"),
    WORDING(RUN_STOP_COMMAND_NOT_STARTED, ERROR,
            "{lock}: cannot start the command of --stop: {why}"),
    WORDING(RUN_STOP_COMMAND_TOO_LATE, ERROR, "{lock}: no time was left for the command of --stop"),
    WORDING(RUN_STOP_COMMAND_FAILED, ERROR, "{lock}: the command of --stop {end}"),

    WORDING(RUN_UNRELEASED, WARNING,
            "{lock}: could not be released: {why}; its lease frees it[ in {duration}]"),
    WORDING(RUN_UNRELEASED_ENDED, WARNING,
            "{lock}: could not be released: {why}; its lease has ended meanwhile"),

    WORDING(RUN_OWNER_ENDED, ERROR,
            "{lock}: not acquired: process {number}, which it is kept for, has ended"),
    WORDING(RUN_NO_RENEWER, ERROR, "{lock}: cannot start its renewer: {why}"),
    WORDING(RUN_PARTNER_DIED, ERROR, "{lock}: not acquired: {why}"),
    WORDING(RUN_RENEWER_ENDED, ERROR, "{lock}: nothing renews it: its renewer has ended"),
    WORDING(RUN_UNDELIVERED, ERROR, "{lock}: released again: {why}"),
};

/* {why} */
static const char *const causes[RUN_CAUSES] = {
    [RUN_CAUSE_TEXT] = "{text}",
    [RUN_CAUSE_WAS_STOPPED] = "rlock was stopped, so its lease runs out",
    [RUN_CAUSE_TOO_LATE] = "no time was left to start the command",
    [RUN_CAUSE_AGENT_DIED] = "its agent died",
    [RUN_CAUSE_NO_ANSWER] = "no answer",
    [RUN_CAUSE_UNKILLED] = "not all processes of its command could be killed",
    [RUN_CAUSE_TIME_LIMIT] = "time limit reached (--at-most {limit})",
    [RUN_CAUSE_NO_RENEWAL] = "the lease ends (--no-renew)",
    [RUN_CAUSE_UNWRITABLE] = "cannot write to standard output: {text}",
    [RUN_CAUSE_UNPRINTED] = "its lease ended before standard output took it",
    [RUN_CAUSE_RENEWER_ENDED] = "its renewer has ended",
    [RUN_CAUSE_TOO_FAR] = ("a round trip of {limit} is too long for a lease of {lease}; it takes "
                           "{needed} or more"),
    [RUN_CAUSE_GRANTED_TOO_LITTLE] = ("a round trip of {limit} is too long for a lease of {lease}, "
                                      "which is all that the store grants"),
    [RUN_CAUSE_NOT_RENEWED] = "not renewed in time[: {text}]",
    [RUN_CAUSE_LOSS + LOSS_STATED] = "[{part}: ]{text}",
    [RUN_CAUSE_LOSS + LOSS_REVOKED] = "[{part}: ]revoked[ by {by}][: {text}]",
    [RUN_CAUSE_LOSS + LOSS_TAKEN] = "[{part}: ]the store has given it to {by}",
    [RUN_CAUSE_LOSS + LOSS_TAKEN_BY_UNKNOWN] = "[{part}: ]the store has given it to another holder",
    [RUN_CAUSE_LOSS + LOSS_GONE] = "[{part}: ]the store no longer has it",
    [RUN_CAUSE_LOSS + LOSS_MIRROR_TAKEN] =
        "[{part}: ]its mirror {text} was taken by another program",
    [RUN_CAUSE_LOSS + LOSS_MIRROR_DELETED] = "[{part}: ]its mirror {text} was deleted",
};

/* -- the fields ------------------------------------------------------------------------------ */

#define MESSAGE_SIZE 4096

/* The key that the refusal is about. An index that makes no sense, as another rlock may have sent
 * it, is the first. */
static const char *blocked_key(const struct run_messages *messages,
                               const struct run_refusal *refusal)
{
    const struct acquire_request *request = messages->request;
    size_t key = refusal->kept.answer.refused.key;

    return request->keys[key < request->key_count ? key : 0];
}

/* Returns the KEY that the message is about; or the title of all of them. */
static const char *key_of(const struct run_messages *messages, const struct run_news *news)
{
    if (news->refusal && messages->request->take)
        return messages->asked;
    if (news->refusal)
        return blocked_key(messages, news->refusal);
    bool of_one = news->key > 0; /* they count from 1 */
    return of_one ? messages->request->keys[news->key - 1] : messages->title;
}

/* Words what the caller waits for; where it takes some of several KEYs, with the KEY. */
static void put_obstacle(const struct run_messages *messages, const struct run_refusal *refusal,
                         char *out, size_t size)
{
    if (messages->request->take) {
        int used = snprintf(out, size, "%s: ", BRIEF_TEXT(blocked_key(messages, refusal), 200));
        out += used;
        size -= (size_t)used;
    }
    describe_obstacle(&refusal->kept.answer, messages->request->limit, refusal->age, DESCRIBE_FULL,
                      out, size);
    if (!*out)
        snprintf(out, size, "others come first");
}

#define NUMBER_TEXT(number) print_number(number, (char[24]){""})

static char *print_number(int64_t number, char out[24])
{
    sprintf(out, "%" PRId64, number);
    return out;
}

/* Fills the form in with what the news is about. */
static void fill_in(const struct run_messages *messages, const struct run_news *news,
                    const char *form, char *out, size_t size)
{
    static const struct run_reason none;
    const struct run_reason *reason = news->reason ? news->reason : &none;
    const struct run_refusal *refusal = news->refusal;
    const char *hint = hint_words(news->cause, news->hint);
    char why[MESSAGE_SIZE] = "", end[40], part[81] = "",
         obstacle[DESCRIBE_OBSTACLE_SIZE + 204] = "";
    const struct text_field fields[] = {
        {"lock", messages->title},
        {"key", key_of(messages, news)},
        {"command", news->remains ? "what the command left running" : messages->command},
        {"number", NUMBER_TEXT(news->number)},
        {"asked", NUMBER_TEXT(messages->request ? messages->request->limit : 0)},
        {"slot", news->slot > 0 ? NUMBER_TEXT(news->slot) : ""},
        {"duration", news->duration > 0 ? DURATION_TEXT(news->duration) : ""},
        {"text", reason->text},
        {"by", reason->by},
        {"part", part}, /* the KEY that the reason is about */
        {"limit", DURATION_TEXT(reason->duration)},
        {"lease", DURATION_TEXT(reason->lease)},
        {"needed", DURATION_TEXT(reason->needed)},
        {"end", end},
        {"obstacle", obstacle},
        {"ancestor", refusal && refusal->ancestor ? "that is an ancestor of this process" : ""},
        {"hint", hint ? hint : ""},
        {"why", why},
    };

    if (reason->key > 0)
        text_copy(part, sizeof part, messages->request->keys[reason->key - 1]);
    int status = (int)news->number; /* as of waitpid(2), in the events whose form has {end} */
    if (WIFSIGNALED(status))
        snprintf(end, sizeof end, "was killed (signal %d)", WTERMSIG(status));
    else
        snprintf(end, sizeof end, "ended (status %d)", WEXITSTATUS(status));
    if (refusal)
        put_obstacle(messages, refusal, obstacle, sizeof obstacle);
    text_fill(why, sizeof why, causes[reason->cause], fields);
    *out = '\0';
    text_fill(out, size, form, fields);
}

/* -- saying ---------------------------------------------------------------------------------- */

/* Says the text in the way of its level. Returns whether a hint may follow. */
static bool say_at_level(enum level level, const char *text)
{
    switch (level) {
    case ERROR: say_error("%s", text); return true;
    case WARNING: say_warning("%s", text); return true;
    case DETAIL: say_detail("%s", text); return false;
    case REMINDER: return say_on_terminal() && say_at_level(ERROR, text);
    case CONFLICT: return false; /* see level_of() */
    }
    return false;
}

/* Returns the level of an event: DETAIL for a conflict that the settings keep silent, except for a
 * deployment that a newer one has superseded: it ends with success, and must not look as if it had
 * deployed. */
static enum level level_of(const struct run_messages *messages, const struct wording *wording,
                           const struct run_news *news)
{
    if (wording->level != CONFLICT)
        return wording->level;
    switch (messages->conflict) {
    case CONFLICT_IS_ERROR: return ERROR;
    case CONFLICT_IS_EXPECTED: return WARNING;
    case CONFLICT_IS_SILENT: break;
    }
    return news->refusal->kept.answer.cause == CAUSE_SUPERSEDED ? WARNING : DETAIL;
}

/* Words an event of the run, and the hint that belongs to it. */
__attribute__((noinline)) static void say_event(const struct run_messages *messages,
                                                const struct run_news *news, enum level level)
{
    const struct wording *wording = &wordings[news->event];
    char text[MESSAGE_SIZE], hint[MESSAGE_SIZE];

    fill_in(messages, news, wording->text, text, sizeof text);
    fill_in(messages, news, wording->hint ? wording->hint : "", hint, sizeof hint);
    if (say_at_level(level, text) && *hint)
        say_hint("%s", hint);
}

/* Says an event if this user wants to know. Most events of a run that goes well need no words, and
 * no stack for them. */
static void tell_event(void *arg, const struct run_news *news)
{
    const struct run_messages *messages = arg;
    const enum level level = level_of(messages, &wordings[news->event], news);

    if (level != DETAIL || say_verbosity() >= SAY_VERBOSE)
        say_event(messages, news, level);
}

/* -- the line that says why it waits --------------------------------------------------------- */

#define ELLIPSIS       "..."
#define OBSTACLE_LEAST 16 /* columns; an obstacle with less room is left out */

/* Prints ", held by …" or ": X comes first", as far as the refusal tells. An exclusive lock whose
 * refusal names neither changes hands; a shared one may have room, but others are first. */
static void print_obstacle(const struct run_messages *messages, const struct run_refusal *refusal,
                           enum describe_detail detail, char *out, size_t size)
{
    const struct answer *answer = &refusal->kept.answer;
    bool changing = answer->refused.position == 1 || messages->request->mode == LOCK_EXCLUSIVE;
    bool held =
        answer->refused.holders > 0 || answer->refused.holder || answer->cause == CAUSE_CLOSED;
    char obstacle[DESCRIBE_OBSTACLE_SIZE];

    out[0] = '\0';
    describe_obstacle(answer, messages->request->limit, refusal->age, detail, obstacle,
                      sizeof obstacle);
    if (obstacle[0])
        text_append(out, size, "%s %s", held ? "," : ":", obstacle);
    else
        text_append(out, size, "%s",
                    changing ? ", which is about to change hands" : ": others come first");
}

/* Words the caller's place in the queue, if that is told. */
static void print_place(const struct run_messages *messages, const struct answer *refusal,
                        bool brief, char *out, size_t size)
{
    out[0] = '\0';
    if (refusal->refused.first && refusal->refused.position == 1)
        return; /* the place is in the queue of another KEY */
    if (refusal->refused.position == 1)
        snprintf(out, size, brief ? "; next" : "; you are next");
    else if (refusal->refused.position > 1)
        snprintf(out, size,
                 brief ? "; number %" PRId64 : "; you are number %" PRId64 " in the queue",
                 refusal->refused.position);
    else if (!brief && !store_can(messages->address, STORE_QUEUE))
        snprintf(out, size, "; %s", LACK_TEXT(messages->address, STORE_QUEUE));
}

/* Composes the line about a wait. Where there is little room the line becomes shorter piece by
 * piece, and is cut at last. The holder matters more than the place in the queue. */
static void compose_wait(void *arg, size_t columns, char *out, size_t size)
{
    const struct run_messages *messages = arg;
    const struct run_refusal *refusal = messages->refusal;
    static const struct {
        enum describe_detail detail;
        bool brief;
    } forms[] = {{DESCRIBE_FULL, false},
                 {DESCRIBE_WITHOUT_PID, false},
                 {DESCRIBE_WITHOUT_PID, true},
                 {DESCRIBE_WITHOUT_COMMAND, true}};
    char obstacle[DESCRIBE_OBSTACLE_SIZE + sizeof ELLIPSIS], place[80];
    size_t room = 0;

    if (messages->request->take)
        snprintf(out, size, "waiting for %s: %s", BRIEF_TEXT(messages->asked, 140),
                 BRIEF_TEXT(blocked_key(messages, refusal), 120));
    else
        snprintf(out, size, "waiting for %s", BRIEF_TEXT(blocked_key(messages, refusal), 120));
    if (messages->request->key_count > 1 && !messages->request->take)
        text_append(out, size, " (one of %s)", BRIEF_TEXT(messages->title, 120));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        print_obstacle(messages, refusal, forms[i].detail, obstacle, DESCRIBE_OBSTACLE_SIZE);
        print_place(messages, &refusal->kept.answer, forms[i].brief, place, sizeof place);
        size_t rest = utf8_width(out) + utf8_width(place);
        room = columns > rest ? columns - rest : 0;
        if (utf8_width(obstacle) <= room)
            break;
    }
    if (utf8_width(obstacle) > room && room >= OBSTACLE_LEAST)
        strcpy(obstacle + utf8_fit(obstacle, room - strlen(ELLIPSIS)), ELLIPSIS);
    text_append(out, size, "%s%s", obstacle, place);
}

/* Shows the wait, and notes whether it was announced. Returns in how many ns to show it again; 0:
 * not. */
static int64_t show_wait(void *arg, const struct run_refusal *refusal, bool *announced)
{
    struct run_messages *messages = arg;

    messages->refusal = refusal;
    int64_t pause = status_line_show(&messages->wait);
    *announced |= messages->wait.shown;
    return pause;
}

static void hide_wait(void *arg)
{
    struct run_messages *messages = arg;

    status_line_wipe(&messages->wait);
}

/* Words an event in full, for a log. */
static void word_event(void *arg, const struct run_news *news, char *out, size_t size)
{
    fill_in(arg, news, wordings[news->event].text, out, size);
}

/* Words the wait in full, for a log. */
static void word_wait(void *arg, const struct run_refusal *refusal, char *out, size_t size)
{
    struct run_messages *messages = arg;

    messages->refusal = refusal;
    compose_wait(messages, SIZE_MAX, out, size);
}

/* Names the holder that a refusal is about in a few words, for --notify; without a refusal, this
 * process, which holds the lock itself. */
static void name_holder(void *arg, const struct run_refusal *refusal, char *out, size_t size)
{
    const struct run_messages *messages = arg;
    const char *own = messages->request->who;
    struct identity self;

    if (!refusal) {
        identity_parse(own, strlen(own), &self);
        describe_party_briefly(&self, out, size);
    } else {
        const struct answer *answer = &refusal->kept.answer;
        const struct lock_party *party =
            answer->refused.holder ? answer->refused.holder : answer->refused.first;
        describe_party_briefly(party ? &party->who : &(struct identity){0}, out, size);
    }
}

/* Where some of several keys are enough, has messages name those that are held, as long as they
 * are. grants: NULL when they are not held any more. */
static void on_granted(void *arg, const struct lock_grant *grants)
{
    struct run_messages *messages = arg;
    const struct acquire_request *request = messages->request;
    struct held_keys held;

    messages->title = messages->asked;
    if (!grants || !request->take)
        return;
    held_keys_choose(&held, request->keys, request->key_count, grants);
    request_title(held.keys, held.count, messages->held);
    messages->title = messages->held;
}

static void on_detach(void *arg)
{
    (void)arg;
    say_let_go();
}

void run_messages_init(struct run_messages *messages, const char *title, const char *command)
{
    *messages =
        (struct run_messages){.events = {tell_event, show_wait, hide_wait, word_event, word_wait,
                                         name_holder, on_granted, on_detach, messages},
                              .title = title,
                              .asked = title,
                              .command = command};
    status_line_init(&messages->wait, NULL, say_verbosity() == SAY_QUIET, compose_wait, messages);
    say_set_job(getpgrp());
}

void run_messages_of_request(struct run_messages *messages, const struct acquire_request *request,
                             const struct settings *settings)
{
    messages->request = request;
    messages->address = &settings->address;
    if (settings->conflict_status == STATUS_OK)
        messages->conflict = CONFLICT_IS_SILENT;
    else if (settings->conflict_expected)
        messages->conflict = CONFLICT_IS_EXPECTED;
}
