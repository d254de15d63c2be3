/* A token is 16 bytes in base64, with letters that a message and a record may have. */
#include "rules/handover.h"

#include "rules/answer.h"
#include "rules/arguments.h"

#include <string.h>
#include <sys/random.h>

#define TOKEN_LENGTH (HANDOVER_TOKEN_SIZE - 1)

bool handover_offer(struct handover *handover, struct moment now)
{
    uint8_t bytes[16];

    *handover = (struct handover){.offered = now};
    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != sizeof bytes)
        return false;
    /* Six bits a character; the last one has the two that are left. */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (size_t i = 0; i < TOKEN_LENGTH; i++) {
        size_t bit = 6 * i;
        unsigned next = bit / 8 + 1 < sizeof bytes ? bytes[bit / 8 + 1] : 0;
        unsigned both = (unsigned)bytes[bit / 8] << 8 | next; /* the six bits may be in both */
        handover->token[i] = digits[both >> (10 - bit % 8) & 63];
    }
    handover->token[TOKEN_LENGTH] = '\0';
    return true;
}

bool handover_take(struct handover *handover, const char *message, int64_t lease,
                   struct answer *grant)
{
    /* The lock that was handed over ends HANDOVER_MS after the offer. */
    int64_t beyond = lease - HANDOVER_MS * NS_PER_MS;

    if (!handover->open || strncmp(message, handover->token, TOKEN_LENGTH) != 0 ||
        message[TOKEN_LENGTH] != ' ')
        return false;
    if (!redis_answer_grant(message + TOKEN_LENGTH + 1, &handover->grants[0]))
        return false;
    *grant =
        (struct answer){.verdict = VERDICT_GRANTED,
                        .granted.from = moment_plus(handover->offered, beyond > 0 ? -beyond : 0),
                        .granted.grants = handover->grants};
    handover->open = false;
    return true;
}
