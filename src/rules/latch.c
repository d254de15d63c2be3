/* Reads the replies of latch.lua, whose first comment lists them, and believes only what makes
 * sense. */
#include "rules/latch.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "rules/error.h"
#include "rules/reply.h"

/* Makes the answer a refusal, in these words. */
static void refuse_latch(struct answer *answer, enum cause cause, const char *text)
{
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
    snprintf(answer->text, sizeof answer->text, "%s", text);
}

/* Reads LATCH, now, left, number, word, since, expires, 1 if the call has counted, how many were
 * counted without an id (-1: the reply does not tell). False if it does not make sense as a whole:
 * an open latch must not be believed by mistake. */
static bool read_latch(const redisReply *reply, int64_t now, struct latch_state *latch)
{
    const char *word = redis_reply_string(reply, 4);
    int64_t expires = redis_reply_clock(reply, 6);

    latch->left = redis_reply_whole(reply, 2);
    latch->number = redis_reply_whole(reply, 3);
    latch->since_ms = redis_reply_whole(reply, 5);
    latch->counted = redis_reply_says(reply, 7, 1);
    latch->unnamed = redis_reply_whole(reply, 8);
    if (!word || !*word || strlen(word) >= sizeof latch->word)
        return false;
    strcpy(latch->word, word);
    if (now == 0 || expires <= now)
        return false;
    latch->age_ms = latch->since_ms < now ? now - latch->since_ms : 0; /* a clock may be set back */
    latch->ttl_ms = expires - now < REDIS_SPAN_MAX ? expires - now : REDIS_SPAN_MAX;
    return latch->left >= 0 && latch->number >= 1 && latch->left <= latch->number &&
           latch->since_ms >= 0;
}

/* Calls "each" for the ids that were counted, which only the reply to a list tells. */
static void tell_ids(const redisReply *reply, void (*each)(void *arg, const char *id), void *arg)
{
    const redisReply *ids = reply->elements > 9 ? reply->element[9] : NULL;

    for (size_t i = 0; ids && ids->type == REDIS_REPLY_ARRAY && i < ids->elements; i++) {
        const char *id = redis_reply_string(ids, i);
        if (id)
            each(arg, id);
    }
}

void redis_latch_answer(const struct redisReply *reply, void (*each)(void *arg, const char *id),
                        void *each_arg, struct answer *answer, int64_t *now_ms)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;
    const char *what = word ? redis_reply_string(reply, 2) : NULL;
    int64_t now = word ? redis_reply_clock(reply, 1) : 0;

    memset(answer, 0, sizeof *answer);
    *now_ms = now;
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_error_of_script(reply->str, answer);
    } else if (word && strcmp(word, "ABSENT") == 0) {
        refuse_latch(answer, CAUSE_ABSENT, "no such latch");
    } else if (word && strcmp(word, "EXISTS") == 0) {
        refuse_latch(answer, CAUSE_EXISTS, "the latch exists already");
    } else if (word && strcmp(word, "OTHER") == 0) {
        refuse_latch(answer, CAUSE_CHANGED, "the latch vanished, and another one has its name");
    } else if (word && strcmp(word, "MISFIT") == 0) {
        const char *held = what ? what : "?";
        char text[120];
        if (strcmp(held, "lock/1") == 0)
            snprintf(text, sizeof text,
                     "the key is a lock, or was one within a week; rlock status shows it");
        else if (strcmp(held, "damaged") == 0)
            snprintf(text, sizeof text,
                     "the store's key of that name holds other data, or is damaged");
        else if (!redis_newer_layout(held, "latch/1", text, sizeof text))
            snprintf(text, sizeof text, "not a latch: the key holds '%.40s'", held);
        refuse_latch(answer, CAUSE_MISFIT, text);
    } else if (word && strcmp(word, "LATCH") == 0 &&
               read_latch(reply, now, &answer->granted.latch)) {
        answer->verdict = VERDICT_GRANTED;
        if (each)
            tell_ids(reply, each, each_arg);
    } else {
        redis_error_senseless(answer);
    }
}
