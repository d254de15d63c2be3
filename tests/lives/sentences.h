/* The sentences of the manual by which lives are judged. To judge by a further one: quote it in the
 * table of sentences.c, and check it where its facts are known. */
#pragma once

#include "lives/world.h"

enum sentence {
    ONE_AT_A_TIME,
    NEVER_WITHOUT_LOCK,
    READERS_OR_WRITER,
    AT_MOST_N,
    FENCES_RISE,
    DIES_WITH_RLOCK,
    ONE_LEASE_AT_MOST,
    ENDS_AS_COMMAND,
    ENDS_LOST,
    ENDS_IN_TIME,
    ENDS_REFUSED,
    ANOTHER_AGENT,
    RENEWS_ON,
    STOPPED_WAITS,
    WAITS_AT_MOST,
    STOP_COMMAND,
    STOP_LEFT,
    STOP_TOO_LATE,
    STOP_HAS_TIME,
    STOP_KEEPS_LOCK,
    STOP_BY_AGENT,
    STOP_OF_STOPPED,
    STOP_KILLED,
    RELEASE_TOLD,
    HISTORY_TELLS,
    AT_LEAST,
    RELEASED_AT_END,
    FIRST_COME,
    BY_PRIORITY,
    LATEST,
    ALL_OR_NONE,
    UNLESS_DONE,
    SIGNAL_ONCE,
    TERM_FIRST,
    STOPPED_ENDS,
    ONLY_SHOWN,
    KEYS_TOLD,
    MAY_SHARE,
    LEARNS_OF_LOSS,
    OUTLIVES_OUTAGE,
    KEEPS_ADDRESSES,
    SURVIVES_FAILOVER,
    CLAIMS,
    NO_GAP,
    LEAVES_MASTER,
    WAITS_FOR_STORE,
    NESTS,
    NESTED_FIRST,
    NESTED_KEEPS,
    PAUSED,
    CTRL_C_ONCE,
    STOPS_WITH_COMMAND,
    CONTINUES_AT_ONCE,
    GETS_HUP,
    KEPT_WHILE_STOPPED,
    NOTIFIES,
    NOTICE_ENDS,
    TOKEN_PRINTED,
    HELD_FOR_A_LEASE,
    NOTHING_PRINTED,
    RENEWED,
    GIVEN_BACK,
    KILLED_BEFORE,
    NOT_HOLDER,
    LATCH_STAYS,
    LATCH_COUNTS,
    LATCH_COUNTS_ONCE,
    LATCH_NOT_CLOSED,
    LATCH_ABSENT,
    LATCH_OPENS,
    LATCH_VANISHES,
    LATCH_DELETED,
    LATCH_WAITS,
    LATCH_NOT_RUN,
    LATCH_RUN_ENDS,
    LATCH_RUN_RETRIES,
    FENCE_WRITES,
    FENCE_REFUSES,
    FENCE_LOCKED,
    FENCE_KILLS,
    FENCE_WHOLE,
    FENCE_TELLS,
    FENCE_ENDS,
    FENCE_WAITS
};

/* Where each stands, and its words. */
extern const struct sentence_quote {
    const char *page, *text;
} sentences[];

/* The life has gone wrong: the sentence is not true. */
#define BROKEN(sentence, format, ...)                                                              \
    fail(format " (%s: \"%s\")", __VA_ARGS__, sentences[sentence].page, sentences[sentence].text)

/* Prints all, a line each: PAGE TEXT. */
void sentences_print(void);
