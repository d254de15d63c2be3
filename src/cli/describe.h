/* Times, the owners of locks, and the reasons of refusals, in words. Pure.
 *
 * The text is as others wrote it, for a function that escapes what it prints: those of cli/say.h,
 * table_set() and strbuf_escape(). Each function returns "out" unless it says otherwise. */
#pragma once

#include "base/utf8.h"
#include "store/store.h"

/* -- times and signals: wall clocks, in ms since 1970; "?" if one makes no sense -- */

#define DESCRIBE_TIME_SIZE 40

/* "2026-11-20T08:15:30.123Z": ISO 8601 in UTC. */
char *describe_utc(int64_t ms, char out[DESCRIBE_TIME_SIZE]);
#define UTC_TEXT(ms) describe_utc(ms, (char[DESCRIBE_TIME_SIZE]){""})
/* "2026-11-20 08:15:30" and "08:15:30", in the time zone of this process. */
char *describe_local(int64_t ms, char out[DESCRIBE_TIME_SIZE]);
char *describe_local_time(int64_t ms, char out[DESCRIBE_TIME_SIZE]);
#define LOCAL_TEXT(ms)      describe_local(ms, (char[DESCRIBE_TIME_SIZE]){""})
#define LOCAL_TIME_TEXT(ms) describe_local_time(ms, (char[DESCRIBE_TIME_SIZE]){""})
/* "19:50", the minute nearest to at_ms, or "19:50:19", in the time zone of this process; with its
 * date in front if that is not the day of now_ms. */
enum describe_precision { DESCRIBE_MINUTE, DESCRIBE_SECOND };
char *describe_daytime(int64_t now_ms, int64_t at_ms, enum describe_precision precision,
                       char out[DESCRIBE_TIME_SIZE]);
/* The end of a lease that is not renewed, by the store's clock, worded as a daytime. */
char *describe_lease_end(const struct lock_party *holder, enum describe_precision precision,
                         char out[DESCRIBE_TIME_SIZE]);
#define LEASE_END_TEXT(holder, precision)                                                          \
    describe_lease_end(holder, precision, (char[DESCRIBE_TIME_SIZE]){""})
/* "TERM", or its number where the signal has no name. */
char *describe_signal(int signo, char out[16]);
#define SIGNAL_TEXT(signo) describe_signal(signo, (char[16]){""})

/* -- who ------------------------------------------------------------------------------------ */

#define DESCRIBE_PARTY_SIZE (3 * IDENTITY_WORD_MAX + 64)

/* "user@host pid 4121 (make)", as much of it as is known; "someone" if nothing is. */
char *describe_party(const struct identity *who, char *out, size_t size);
#define PARTY_TEXT(who) describe_party(who, (char[DESCRIBE_PARTY_SIZE]){""}, DESCRIBE_PARTY_SIZE)
/* An owner in the few words that fit a message, with its label: "build@ci-3 pid 4121 (make), label
 * nightly"; "" if nothing is known. */
char *describe_party_briefly(const struct identity *who, char *out, size_t size);

/* The holder with that owner; NULL: it does not hold the lock. */
const struct lock_party *lock_holder_of(const struct lock_view *lock, const char *owner);
/* The waiter with that owner; NULL: it does not wait for the lock. */
const struct lock_party *lock_waiter_of(const struct lock_view *lock, const char *owner);
/* True if the holder nests in another holder of the lock. */
bool holder_is_nested(const struct lock_view *lock, const struct lock_party *holder);
/* Returns the number of holders that do not nest in another one; *last is the last of them, or
 * NULL. */
size_t holders_count(const struct lock_view *lock, const struct lock_party **last);
/* Returns the holder that has had the lock for longest, among those whose times may be read and
 * that --at-least does not merely keep; or NULL. */
const struct lock_party *holders_oldest(const struct lock_view *lock);
/* Returns the first holder that is a reservation, or NULL. */
const struct lock_party *holders_reserved(const struct lock_view *lock);
/* Returns the waiter that has waited for longest, among those whose times may be read; or NULL. */
const struct lock_party *waiters_oldest(const struct lock_view *lock);
/* True if the KEY or GLOB itself is paused, not only by a GLOB that it matches. */
bool lock_has_own_pause(const struct lock_view *lock);

/* -- how a run ended -------------------------------------------------------------------------- */

#define DESCRIBE_OUTCOME_SIZE    32
#define DESCRIBE_REVOCATION_SIZE (2 * IDENTITY_WORD_MAX + 64)

/* "exit 0", "signal TERM", "timed out", "lost", "expired", "revoked", "rlock was killed"; "" if
 * the end is not known. */
char *describe_outcome(const struct lock_end *end, char out[DESCRIBE_OUTCOME_SIZE]);
#define OUTCOME_TEXT(end) describe_outcome(end, (char[DESCRIBE_OUTCOME_SIZE]){""})
/* How a run ended, for programs: "success", "failure", "timed_out", "lost", "expired", "revoked";
 * NULL if the end is not known, as where no command was run. */
const char *run_result(const struct lock_end *end);
/* True if it is known that the run failed. */
bool run_has_failed(const struct lock_end *end);
/* By whom and why a lock was revoked: " by build@ci-3 pid 4121: hotfix"; "" if neither is known. */
char *describe_revocation(const struct revocation *revoked, char out[DESCRIBE_REVOCATION_SIZE]);
#define REVOCATION_TEXT(revoked) describe_revocation(revoked, (char[DESCRIBE_REVOCATION_SIZE]){""})
/* "taken away 12s ago by build@ci-3 pid 4121: hotfix", of a run that ended so. */
char *describe_past_revocation(const struct revocation *revoked,
                               char out[DESCRIBE_REVOCATION_SIZE]);
#define PAST_REVOCATION_TEXT(revoked)                                                              \
    describe_past_revocation(revoked, (char[DESCRIBE_REVOCATION_SIZE]){""})

/* -- what is in the way ----------------------------------------------------------------------- */

#define DESCRIBE_KEPT_SIZE     160
#define DESCRIBE_DECISION_SIZE 640
#define DESCRIBE_OBSTACLE_SIZE 1024

/* "kept until 03:05; the command ended with 0 after 4.2s", of a holder that is kept. */
char *describe_kept(const struct lock_party *holder, char *out, size_t size);
#define KEPT_TEXT(holder) describe_kept(holder, (char[DESCRIBE_KEPT_SIZE]){""}, DESCRIBE_KEPT_SIZE)
/* "VERB by ada@ada-pc until 21:51 (1h59m left): load test", of a reservation or a pause that the
 * store reported "later" ns ago. */
char *describe_decision(const struct lock_party *by, const char *verb, int64_t later, char *out,
                        size_t size);
#define DECISION_TEXT(by, verb)                                                                    \
    describe_decision(by, verb, 0, (char[DESCRIBE_DECISION_SIZE]){""}, DESCRIBE_DECISION_SIZE)

/* describe_decision() about the pause that holds for a lock: "paused by …"; by that of a GLOB,
 * "paused, as all of GLOB, by …". */
char *describe_pause(const struct lock_view *lock, char out[DESCRIBE_DECISION_SIZE]);
#define PAUSE_TEXT(lock) describe_pause(lock, (char[DESCRIBE_DECISION_SIZE]){""})

/* How much is said about the owner in the way. */
enum describe_detail { DESCRIBE_FULL, DESCRIBE_WITHOUT_PID, DESCRIBE_WITHOUT_COMMAND };

/* Why a request with that limit (0: none) was refused, by a refusal that is "later" ns old: "held
 * by build@ci-3 pid 4121 (make) for 25m04s, label nightly", "all 2 slots are taken, the oldest by
 * …", "build@ci-4 pid 99 (sh) comes first, waiting for 3s", "held by a foreign lock jobs for at
 * most 12s"; "" if the store does not say. */
char *describe_obstacle(const struct answer *refusal, unsigned limit, int64_t later,
                        enum describe_detail detail, char *out, size_t size);

/* -- hints and the abilities of stores --------------------------------------------------------- */

/* Returns the words of the hint, or else of the one that always goes with the cause; NULL if there
 * is none. */
const char *hint_words(enum cause cause, enum hint hint);

#define ABILITY_LACK_SIZE 80

/* Prints "a quorum has no --grace". Returns out. */
char *ability_print_lack(const struct store_address *address, enum store_ability ability,
                         char out[ABILITY_LACK_SIZE]);
#define LACK_TEXT(address, ability)                                                                \
    ability_print_lack(address, ability, (char[ABILITY_LACK_SIZE]){""})

/* Returns a hint at what to use instead in that store, a constant; NULL if there is nothing. */
const char *ability_instead(const struct store_address *address, enum store_ability ability);
