/* Who is in the way. */
#include "cli/obstacle.h"

#include <inttypes.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/kept.h"

/* A line to be added to. */
struct line {
    char *out;
    size_t size;
    enum obstacle_detail detail;
    int64_t later; /* than the refusal, ns */
};

/* "build@ci-3 pid 4121 (make)", as much of it as is known; a process that has ended has no number
 * any more. False if nothing is. */
static bool add_who(struct line *line, const struct identity *who, bool ended)
{
    if (!who->host[0] && !who->user[0])
        return false;
    if (who->user[0])
        text_append(line->out, line->size, "%.60s@%.80s", who->user, who->host);
    else
        text_append(line->out, line->size, "somebody on %.80s", who->host);
    if (who->pid && !ended && line->detail == OBSTACLE_FULL)
        text_append(line->out, line->size, " pid %ld", who->pid);
    if (who->command[0] && line->detail != OBSTACLE_WITHOUT_COMMAND)
        text_append(line->out, line->size, " (%.40s)", who->command);
    return true;
}

static void add_age(struct line *line, const struct lock_party *party)
{
    char age[32];

    text_append(line->out, line->size, "for %s",
                duration_print(party->age_ms * NS_PER_MS + line->later, age, sizeof age));
}

static void add_label(struct line *line, const struct identity *who)
{
    if (who->label[0])
        text_append(line->out, line->size, ", label %.200s", who->label);
}

/* "VERB by WHO for AGE". */
static void add_holder(struct line *line, const struct lock_party *holder, const char *verb)
{
    bool known = holder->who.host[0] || holder->who.user[0];

    text_append(line->out, line->size, "%s %s", verb, known ? "by " : "");
    if (add_who(line, &holder->who, false))
        text_append(line->out, line->size, " ");
    if (holder->unread)
        text_append(line->out, line->size, "by somebody whose node may not be read");
    else
        add_age(line, holder);
    add_label(line, &holder->who);
}

static void add_kept(struct line *line, const struct lock_party *holder)
{
    bool known = holder->who.host[0] || holder->who.user[0];
    char kept[160];

    text_append(line->out, line->size, "%s%s", kept_print(holder, kept, sizeof kept),
                known ? "; it was run by " : "");
    add_who(line, &holder->who, true);
    add_label(line, &holder->who);
}

/* Of several holders the one who has held it for longest. */
static void add_several(struct line *line, const struct answer *refusal, unsigned limit)
{
    const struct lock_party *oldest = &refusal->holder;
    bool slots;

    if (refusal->limited)
        limit = refusal->limit;
    slots = limit && refusal->holders >= (int64_t)limit;
    if (limit && refusal->holders > (int64_t)limit)
        text_append(line->out, line->size, "its limit is %u, %" PRId64 " still hold it", limit,
                    refusal->holders);
    else if (slots)
        text_append(line->out, line->size, "all %u slots are taken", limit);
    else
        text_append(line->out, line->size, "held by %" PRId64 " %s", refusal->holders,
                    oldest->mode == LOCK_SHARED ? "readers" : "others");
    if (!oldest->owner[0])
        return;
    text_append(line->out, line->size, ", %s", oldest->kept ? "the oldest " : "");
    if (oldest->kept)
        add_kept(line, oldest);
    else
        add_holder(line, oldest, slots ? "the oldest" : "longest");
}

/* Another program's lock does not tell who has it. */
static void add_foreign(struct line *line, const struct answer *refusal)
{
    int64_t left = refusal->left_ms * NS_PER_MS - line->later;
    char most[32];

    text_append(line->out, line->size, "held by a foreign lock %.200s", refusal->text);
    if (refusal->left_ms == 0)
        text_append(line->out, line->size, ", which has no end");
    else if (left > 0)
        text_append(line->out, line->size, " for at most %s",
                    duration_print(left, most, sizeof most));
}

static void add_decision(struct line *line, const struct lock_party *by, const char *verb)
{
    char text[OBSTACLE_SIZE];

    text_append(line->out, line->size, "%s",
                decision_print(by, verb, line->later, text, sizeof text));
}

static void add_first(struct line *line, const struct lock_party *first)
{
    if (!add_who(line, &first->who, false))
        text_append(line->out, line->size, "somebody else");
    text_append(line->out, line->size, " comes first, waiting ");
    add_age(line, first);
    add_label(line, &first->who);
}

/* "a run by WHO that began AGE ago has succeeded". */
static void add_done(struct line *line, const struct lock_party *run)
{
    bool known = run->who.host[0] || run->who.user[0];
    char ago[32];

    duration_print(run->age_ms * NS_PER_MS, ago, sizeof ago);
    text_append(line->out, line->size, "a run %s", known ? "by " : "");
    if (add_who(line, &run->who, true))
        text_append(line->out, line->size, " ");
    text_append(line->out, line->size, "that began %s ago has succeeded", ago);
    add_label(line, &run->who);
}

static void add_successor(struct line *line, const struct lock_party *first)
{
    text_append(line->out, line->size, "superseded by ");
    if (!add_who(line, &first->who, false))
        text_append(line->out, line->size, "somebody who came later");
    add_label(line, &first->who);
}

char *obstacle_print(const struct answer *refusal, unsigned limit, int64_t later,
                     enum obstacle_detail detail, char *out, size_t size)
{
    const struct lock_party *holder = &refusal->holder;
    struct line line = {out, size, detail, later};

    out[0] = '\0';
    if (refusal->cause == CAUSE_DONE)
        add_done(&line, &refusal->first);
    else if (refusal->cause == CAUSE_SUPERSEDED)
        add_successor(&line, &refusal->first);
    else if (refusal->foreign)
        add_foreign(&line, refusal);
    else if (refusal->cause == CAUSE_CLOSED && refusal->first.owner[0])
        add_decision(&line, &refusal->first, "paused");
    else if (refusal->cause == CAUSE_CLOSED)
        text_append(out, size, "its limit is 0");
    else if (refusal->holders > 1)
        add_several(&line, refusal, limit);
    else if (refusal->cause == CAUSE_GRACE)
        store_print_grace(refusal->grace_ms - later / NS_PER_MS, out, size);
    else if (holder->kept)
        add_kept(&line, holder);
    else if (holder->owner[0] && holder->reserved)
        add_decision(&line, holder, "reserved");
    else if (holder->owner[0])
        add_holder(&line, holder, "held");
    else if (refusal->first.owner[0])
        add_first(&line, &refusal->first);
    return out;
}

void obstacle_print_who(const struct identity *who, char *out, size_t size)
{
    struct line line = {.out = out, .size = size, .detail = OBSTACLE_FULL};

    out[0] = '\0';
    add_who(&line, who, false);
    add_label(&line, who);
}
