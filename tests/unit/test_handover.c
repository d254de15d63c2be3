/* Which messages hand a lock over, and until when. */
#include "rules/handover.h"

#include "tap.h"

static const struct moment sent = {1000 * NS_PER_SEC};

/* An offer that was answered. */
static struct handover answered(void)
{
    struct handover handover;

    handover_offer(&handover, sent);
    handover.open = true;
    return handover;
}

/* TOKEN stands for the offer's, TOKE for one that is cut. The grant points into *handover. */
static bool take(const char *text, struct handover *handover, struct answer *grant)
{
    const char *token = strstr(text, "TOKE");
    int before = token ? (int)(token - text) : (int)strlen(text);
    bool whole = token && token[4] == 'N';
    char message[200];

    snprintf(message, sizeof message, "%.*s%.*s%s", before, text,
             !token  ? 0
             : whole ? 22
                     : 21,
             handover->token, token ? token + 4 + whole : "");
    return handover_take(handover, message, 30 * NS_PER_SEC, grant);
}

/* A message that has the token of the request is a grant with that fence and slot. */
static void test_grant(const char *text, uint64_t fence, unsigned slot)
{
    struct handover handover = answered();
    struct answer grant = {.verdict = VERDICT_UNKNOWN};

    tap_ok(take(text, &handover, &grant) && grant.verdict == VERDICT_GRANTED &&
               grant.granted.grants[0].slot == slot && grant.granted.grants[0].fence == fence,
           "'%s'", text);
}

/* A message with the offer's token, a fence and the time that is left hands the lock over; one
 * that differs in any character does not. */
static void test_messages(void)
{
    struct handover handover = answered();
    struct answer grant;

    test_grant("TOKEN 17 0", 17, 0);
    test_grant("TOKEN 9007199254740991 100000", 9007199254740991, 100000);
    EACH(text, INPUTS("1", "", "TOKEN", "TOKEN ", "TOKEN 17", "TOKEN 17 ", "TOKEN  17 0",
                      "TOKEN 0 0", "TOKEN 017 0", "TOKEN 17 0 ", "TOKEN 17 0 0", "TOKEN -17 0",
                      "TOKEN 17 100001", "TOKEN 9007199254740992 0", "TOKEN 1e3 0", "TOKENA 17 0",
                      " TOKEN 17 0", "TOKE 17 0", "AAAAAAAAAAAAAAAAAAAAAA 17 0"))
        tap_ok(!take(*text, &handover, &grant), "no grant: '%s'", *text);
}

/* An offer is taken once, not before the answer to the request that made it, and not by the
 * token of an earlier one. */
static void test_offers(void)
{
    struct handover handover = answered();
    struct answer grant;
    char message[64], first[HANDOVER_TOKEN_SIZE];

    snprintf(message, sizeof message, "%s 17 0", handover.token);
    tap_ok(handover_take(&handover, message, NS_PER_SEC, &grant) &&
               !handover_take(&handover, message, NS_PER_SEC, &grant),
           "a message counts once");
    handover.open = false;
    tap_ok(!handover_take(&handover, message, NS_PER_SEC, &grant), "nor before the answer");
    memcpy(first, handover.token, sizeof first);
    handover_offer(&handover, sent);
    handover.open = true;
    tap_ok(strlen(first) == 22 && strspn(first, "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "abcdefghijklmnopqrstuvwxyz") == 22,
           "22 characters");
    tap_ok(strcmp(first, handover.token) != 0 &&
               !handover_take(&handover, message, NS_PER_SEC, &grant),
           "a token is for one offer");
}

/* The lease ends 9.5 s after the offer was sent, or sooner if less was asked for. */
static void test_lease(void)
{
    static const int64_t leases[] = {1000, 9500, 9501, 30000, 86400000};

    for (size_t i = 0; i < COUNT(leases); i++) {
        int64_t lease = leases[i] * NS_PER_MS, lasts = lease < 9500 * NS_PER_MS ? leases[i] : 9500;
        struct handover handover = answered();
        struct answer grant;
        char message[64];
        snprintf(message, sizeof message, "%s 17 0", handover.token);
        tap_ok(handover_take(&handover, message, lease, &grant) &&
                   moment_plus(grant.granted.from, lease).ns == sent.ns + lasts * NS_PER_MS,
               "a lease of %d ms", (int)leases[i]);
    }
}

int main(void)
{
    test_messages();
    test_offers();
    test_lease();
    return tap_done();
}
