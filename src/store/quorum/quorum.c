/* Counts votes, and makes one answer of the answers of all nodes. It reads the ballots, and changes
 * nothing but the ballot that is cast and the answer. */
#include "store/quorum/quorum.h"

#include <stdio.h>
#include <string.h>

void quorum_begin(struct quorum *quorum, enum quorum_rule rule, size_t count, int64_t lease_ms)
{
    quorum->rule = rule;
    quorum->count = count;
    quorum->lease_ms = lease_ms;
    memset(quorum->ballots, 0, count * sizeof *quorum->ballots);
}

/* Whether that server ("": not known) has voted already, as another node than this one. An address
 * may lead to another server than when it was used last, and two addresses to one server. */
static bool has_voted(const struct quorum *quorum, size_t node, const char *server)
{
    for (size_t i = 0; *server && i < quorum->count; i++) {
        const struct quorum_ballot *other = &quorum->ballots[i];
        bool counts = other->vote != VOTE_NONE && other->vote != VOTE_UNKNOWN;
        if (i != node && counts && strcmp(other->server, server) == 0)
            return true;
    }
    return false;
}

void quorum_cast(struct quorum *quorum, size_t node, enum vote vote,
                 const struct member_report *report, const struct answer *answer)
{
    struct quorum_ballot *ballot = &quorum->ballots[node];
    const char *server = report ? report->server : "";

    ballot->vote = vote != VOTE_NONE && has_voted(quorum, node, server) ? VOTE_UNKNOWN : vote;
    snprintf(ballot->server, sizeof ballot->server, "%s", server);
    if (report && report->seniority.memory_ms > 0)
        ballot->seniority = report->seniority;
    if (answer)
        answer_keep(&ballot->kept, answer);
}

void quorum_close(struct quorum *quorum)
{
    static const struct answer silent = {
        .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .text = "no answer in time"};

    for (size_t i = 0; i < quorum->count; i++) {
        if (quorum->ballots[i].vote == VOTE_NONE)
            quorum_cast(quorum, i, VOTE_UNKNOWN, NULL, &silent);
    }
}

size_t quorum_majority(size_t count)
{
    return count / 2 + 1;
}

/* -- who counts -------------------------------------------------------------------------------- */

/* Returns for how many ms the quorum has existed, as far as any node knows: since the first of them
 * was asked for a lock. */
static int64_t age_of(const struct quorum *quorum)
{
    int64_t age = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        if (quorum->ballots[i].seniority.service_ms > age)
            age = quorum->ballots[i].seniority.service_ms;
    }
    return age;
}

/* Returns for how many ms a forgotten lease may still last: as long as ours, which tells what is
 * usual here, or as the longest that a node reports. */
static int64_t longest_lease(const struct quorum *quorum)
{
    int64_t longest = quorum->lease_ms;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct answer *answer = &quorum->ballots[i].kept.answer;
        if (answer->verdict == VERDICT_REFUSED && answer->refused.left_ms > longest)
            longest = answer->refused.left_ms;
    }
    return longest;
}

/* Whether this is a YES from a node that may have forgotten another owner's lock: what it remembers
 * (memory_ms) is shorter than a lease, while the quorum has existed for longer than that. A quorum
 * that is as young as its nodes has had no lock to forget. */
static bool is_doubtful(const struct quorum *quorum, const struct quorum_ballot *ballot)
{
    const struct seniority *its = &ballot->seniority;

    return quorum->rule == QUORUM_TAKE && ballot->vote == VOTE_YES && its->memory_ms > 0 &&
           its->memory_ms < longest_lease(quorum) &&
           its->memory_ms + QUORUM_FIRST_ASKED_MS < age_of(quorum);
}

/* Returns in how many ms all nodes will be counted that are doubtful now. */
static int64_t doubt_ms(const struct quorum *quorum)
{
    int64_t left = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        int64_t its = longest_lease(quorum) - ballot->seniority.memory_ms;
        if (is_doubtful(quorum, ballot) && its > left)
            left = its;
    }
    return left;
}

/* How many votes of each kind (enum vote) there are: a YES may be doubtful, VOID is "nothing". */
struct count {
    size_t none, yes, doubtful, no, nothing, unknown;
    size_t majority, spare; /* so many nodes are needed, and so many are not */
};

/* Counts the votes of each kind. */
static struct count count_votes(const struct quorum *quorum)
{
    size_t majority = quorum_majority(quorum->count);
    struct count count = {.majority = majority, .spare = quorum->count - majority};

    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        switch (ballot->vote) {
        case VOTE_NONE: count.none++; break;
        case VOTE_YES:
            if (is_doubtful(quorum, ballot))
                count.doubtful++;
            else
                count.yes++;
            break;
        case VOTE_NO: count.no++; break;
        case VOTE_VOID: count.nothing++; break;
        case VOTE_UNKNOWN: count.unknown++; break;
        }
    }
    return count;
}

/* -- the one who is named most ----------------------------------------------------------------- */

/* Returns the owner that the node names as the holder; "": it names none. */
static const char *holder_of(const struct quorum_ballot *ballot)
{
    return ballot->kept.answer.refused.holder ? ballot->kept.answer.refused.holder->owner : "";
}

/* Whether the node refuses, and names that owner. */
static bool names_owner(const struct quorum_ballot *ballot, const char *owner)
{
    bool refused = ballot->vote == VOTE_NO || ballot->vote == VOTE_VOID;
    return refused && strcmp(holder_of(ballot), owner) == 0;
}

/* Returns how many nodes refuse and name that owner. */
static size_t count_named(const struct quorum *quorum, const char *owner)
{
    size_t count = 0;

    for (size_t i = 0; i < quorum->count; i++)
        count += names_owner(&quorum->ballots[i], owner);
    return count;
}

/* Returns a ballot of the refusal that most nodes share; NULL if there is none. */
static const struct quorum_ballot *common_refusal(const struct quorum *quorum)
{
    const struct quorum_ballot *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        const char *owner = holder_of(ballot);
        if (ballot->kept.answer.verdict != VERDICT_REFUSED || !names_owner(ballot, owner))
            continue;
        /* Any refusal that names a holder comes before all that do not. */
        size_t count = *owner ? count_named(quorum, owner) + quorum->count : 1;
        if (count > most) {
            best = ballot;
            most = count;
        }
    }
    return best;
}

size_t quorum_rivals(const struct quorum *quorum)
{
    const struct quorum_ballot *refusal = common_refusal(quorum);
    const char *owner = refusal ? holder_of(refusal) : "";

    return *owner ? count_named(quorum, owner) : 0;
}

/* -- what is decided --------------------------------------------------------------------------- */

/* Whether a majority has answered, other than UNKNOWN. */
static bool is_heard(struct count votes)
{
    return votes.yes + votes.doubtful + votes.no + votes.nothing >= votes.majority;
}

/* Returns whether a majority grants the lock, as an outcome. */
static enum quorum_outcome outcome_of_take(struct count votes)
{
    if (votes.yes >= votes.majority)
        return QUORUM_CARRIED;
    if (votes.unknown > votes.spare)
        return QUORUM_FAILED;
    /* A majority may still grant it, or has not answered yet. */
    if (votes.yes + votes.none >= votes.majority || !is_heard(votes))
        return QUORUM_OPEN;
    /* With doubtful nodes only, no other owner is in the way. */
    if (votes.no + votes.nothing > 0)
        return QUORUM_REFUSED;
    return votes.none == 0 ? QUORUM_FAILED : QUORUM_OPEN;
}

/* Returns whether a majority has had the lock until now, as an outcome. against: how many nodes say
 * that they have not; rivals: how many of these name one and the same other holder. */
static enum quorum_outcome outcome_of_holding(struct count votes, size_t against, size_t rivals)
{
    if (votes.yes >= votes.majority)
        return QUORUM_CARRIED;
    if (against > votes.spare || rivals >= votes.majority)
        return QUORUM_REFUSED;
    bool may_be_lost = against + votes.none > votes.spare || rivals + votes.none >= votes.majority;
    return votes.yes + votes.none < votes.majority && !may_be_lost ? QUORUM_FAILED : QUORUM_OPEN;
}

/* Returns whether a majority does not have the lock any more, as an outcome; no matter whether it
 * had it before. */
static enum quorum_outcome outcome_of_free(struct count votes)
{
    if (votes.no > votes.spare)
        return QUORUM_REFUSED;
    if (votes.yes + votes.no + votes.nothing >= votes.majority)
        return QUORUM_CARRIED;
    return votes.unknown > votes.spare ? QUORUM_FAILED : QUORUM_OPEN;
}

/* Returns whether a majority has told what was asked, as an outcome. */
static enum quorum_outcome outcome_of_read(struct count votes)
{
    if (votes.yes >= votes.majority)
        return QUORUM_CARRIED;
    if (votes.no > votes.spare)
        return QUORUM_REFUSED;
    return votes.yes + votes.none < votes.majority ? QUORUM_FAILED : QUORUM_OPEN;
}

enum quorum_outcome quorum_outcome(const struct quorum *quorum)
{
    struct count votes = count_votes(quorum);

    switch (quorum->rule) {
    case QUORUM_TAKE: return outcome_of_take(votes);
    case QUORUM_KEEP: return outcome_of_holding(votes, votes.no, quorum_rivals(quorum));
    case QUORUM_RETURN: return outcome_of_holding(votes, votes.no + votes.nothing, 0);
    case QUORUM_FREE: return outcome_of_free(votes);
    case QUORUM_READ: return outcome_of_read(votes);
    }
    return QUORUM_FAILED;
}

size_t quorum_approvals(const struct quorum *quorum)
{
    return count_votes(quorum).yes;
}

bool quorum_is_young(const struct quorum *quorum)
{
    int64_t oldest = age_of(quorum);
    return oldest > 0 && oldest < longest_lease(quorum);
}

bool quorum_is_heard(const struct quorum *quorum)
{
    return is_heard(count_votes(quorum));
}

/* -- what to answer ---------------------------------------------------------------------------- */

/* Returns how many nodes have granted this key with the same fence, and nested as in *grant. */
static size_t count_agreeing(const struct quorum *quorum, size_t key,
                             const struct lock_grant *grant)
{
    size_t count = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        const struct lock_grant *other = &ballot->kept.grants[key];
        count += ballot->vote == VOTE_YES && other->nested == grant->nested &&
                 other->fence == grant->fence;
    }
    return count;
}

/* Whether "one" comes before "other" as the grant of the key: the higher fence does. But a nested
 * lock has the fence of its ancestor, not that of a node which does not know the ancestor; and the
 * one that most nodes know, since a node may have executed the ancestor's request late, and have
 * not been told yet which fence was settled on. */
static bool outranks(const struct quorum *quorum, size_t key, const struct lock_grant *one,
                     const struct lock_grant *other)
{
    if (one->nested != other->nested)
        return one->nested;
    size_t for_one = one->nested ? count_agreeing(quorum, key, one) : 0;
    size_t for_other = one->nested ? count_agreeing(quorum, key, other) : 0;
    return for_one != for_other ? for_one > for_other : one->fence > other->fence;
}

/* Makes the grant of those that voted yes: of each key, that which outranks the others. grants: the
 * caller's, one a key, to which the answer points. */
static void answer_carried(const struct quorum *quorum, struct answer *answer,
                           struct lock_grant *grants)
{
    answer->verdict = VERDICT_GRANTED;
    answer->granted.grants = memset(grants, 0, LOCK_KEYS_MAX * sizeof *grants);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        if (ballot->vote != VOTE_YES)
            continue;
        for (size_t key = 0; key < LOCK_KEYS_MAX; key++) {
            const struct lock_grant *grant = &ballot->kept.grants[key];
            if (outranks(quorum, key, grant, &grants[key]))
                grants[key] = *grant;
        }
    }
}

/* Returns a ballot of a node where the key is not a lock, if that is so on so many nodes that no
 * majority can grant it; NULL otherwise. */
static const struct quorum_ballot *misfit_of(const struct quorum *quorum)
{
    const struct quorum_ballot *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        if (ballot->vote == VOTE_NO && ballot->kept.answer.cause == CAUSE_MISFIT) {
            found = ballot;
            count++;
        }
    }
    return count > quorum->count - quorum_majority(quorum->count) ? found : NULL;
}

/* Answers with what most nodes say. The cause is that of the quorum as a whole, HELD or NOT_HOLDER,
 * except for causes that more nodes would not change. */
static void answer_refused(const struct quorum *quorum, struct answer *answer)
{
    const struct quorum_ballot *refusal = misfit_of(quorum); /* comes before a holder */

    if (!refusal)
        refusal = common_refusal(quorum);
    if (refusal)
        *answer = refusal->kept.answer;
    answer->verdict = VERDICT_REFUSED;
    if (quorum->rule != QUORUM_READ && answer->cause != CAUSE_MISFIT &&
        answer->cause != CAUSE_CHANGED && answer->cause != CAUSE_REVOKED)
        answer->cause = quorum->rule == QUORUM_TAKE ? CAUSE_HELD : CAUSE_NOT_HOLDER;
    answer->refused.position = 0; /* there is no queue */
    answer->refused.requeued = false;
}

/* The causes of failures, from the one that leaves least hope to the one that leaves most. */
static const enum cause failures[] = {CAUSE_DENIED, CAUSE_MISFIT,      CAUSE_UNFIT,
                                      CAUSE_SYSTEM, CAUSE_UNREACHABLE, CAUSE_NOT_READY};
#define FAILURES (sizeof failures / sizeof *failures)

/* Returns the ballot of a failure whose cause most nodes have, of equals the one that leaves most
 * hope; NULL: no node failed for a cause of its own. */
static const struct quorum_ballot *common_failure(const struct quorum *quorum)
{
    const struct quorum_ballot *best = NULL;
    size_t most = 0;

    for (size_t f = 0; f < FAILURES; f++) {
        const struct quorum_ballot *found = NULL;
        size_t count = 0;
        for (size_t i = 0; i < quorum->count; i++) {
            const struct quorum_ballot *ballot = &quorum->ballots[i];
            if (ballot->vote == VOTE_UNKNOWN && ballot->kept.answer.cause == failures[f]) {
                found = found ? found : ballot;
                count++;
            }
        }
        if (count > 0 && count >= most) {
            best = found;
            most = count;
        }
    }
    return best;
}

/* Answers why a round has come to no decision: servers have failed, are in doubt, or have been
 * granted to different owners. */
static void answer_failed(const struct quorum *quorum, struct answer *answer)
{
    const struct quorum_ballot *failure = common_failure(quorum);
    struct count votes = count_votes(quorum);
    bool frees = quorum->rule == QUORUM_RETURN || quorum->rule == QUORUM_FREE;
    const char *what = frees && is_heard(votes) ? "it may have been lost" : "no quorum";
    size_t full = 0; /* servers that take no more clients */

    answer->verdict = VERDICT_UNKNOWN;
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_ballot *ballot = &quorum->ballots[i];
        full += ballot->vote == VOTE_UNKNOWN && ballot->kept.answer.full;
        answer->maybe_done |= ballot->vote == VOTE_UNKNOWN ? ballot->kept.answer.maybe_done
                                                           : frees && ballot->vote == VOTE_YES;
    }
    if (votes.unknown > votes.doubtful) {
        /* Without a failure, what makes a vote UNKNOWN is that its server has voted before. */
        answer->cause = failure ? failure->kept.answer.cause : CAUSE_MISFIT;
        answer->hint = failure ? failure->kept.answer.hint : HINT_NONE;
        /* The votes would be a quorum if the full servers took one more client. */
        answer->full = full > 0 && votes.unknown - full <= votes.spare;
        if (failure)
            memcpy(answer->said, failure->kept.answer.said, sizeof answer->said);
        text_copy(answer->text, sizeof answer->text,
                  failure ? failure->kept.answer.text : "the same server twice");
        answer_prepend(answer, "%s, %zu of %zu servers failed: ", what, votes.unknown,
                       quorum->count);
        return;
    }
    answer->cause = CAUSE_NOT_READY;
    answer->grace_ms = doubt_ms(quorum);
    if (votes.doubtful > 0)
        snprintf(answer->text, sizeof answer->text,
                 "no quorum, %zu of %zu servers may have lost data: not counted until leases from "
                 "before are over",
                 votes.doubtful, quorum->count);
    else
        snprintf(answer->text, sizeof answer->text, "no quorum, others have some of the servers");
}

void quorum_answer(const struct quorum *quorum, enum quorum_outcome outcome, struct answer *answer,
                   struct lock_grant *grants)
{
    memset(answer, 0, sizeof *answer);
    switch (outcome) {
    case QUORUM_CARRIED: answer_carried(quorum, answer, grants); break;
    case QUORUM_REFUSED: answer_refused(quorum, answer); break;
    case QUORUM_FAILED:
    case QUORUM_OPEN: answer_failed(quorum, answer); break;
    }
}
