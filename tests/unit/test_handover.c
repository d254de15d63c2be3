/* Which messages hand a lock over, and until when. */
#include "rules/handover.h"

#include "tap.h"

#include <stdio.h>

static const struct moment sent = {1000 * NS_PER_SEC};

/* An offer that was answered. */
static struct handover answered(void)
{
    struct handover handover;

    handover_offer(&handover, sent);
    handover.open = true;
    return handover;
}

static void test_messages(void)
{
    static const struct {
        const char *before;
        int length; /* of the token */
        const char *after;
        uint64_t fence; /* 0: it is none */
        unsigned slot;
    } cases[] = {
        {"", 22, " 17 0", 17, 0},
        {"", 22, " 9007199254740991 100000", 9007199254740991, 100000},
        {"1", 0, "", 0, 0},
        {"", 0, "", 0, 0},
        {"", 22, "", 0, 0},
        {"", 22, " ", 0, 0},
        {"", 22, " 17", 0, 0},
        {"", 22, " 17 ", 0, 0},
        {"", 22, "  17 0", 0, 0},
        {"", 22, " 0 0", 0, 0},
        {"", 22, " 017 0", 0, 0},
        {"", 22, " 17 0 ", 0, 0},
        {"", 22, " 17 0 0", 0, 0},
        {"", 22, " -17 0", 0, 0},
        {"", 22, " 17 100001", 0, 0},
        {"", 22, " 9007199254740992 0", 0, 0},
        {"", 22, " 1e3 0", 0, 0},
        {"", 22, "A 17 0", 0, 0},
        {" ", 22, " 17 0", 0, 0},
        {"", 21, " 17 0", 0, 0},
        {"AAAAAAAAAAAAAAAAAAAAAA 17 0", 0, "", 0, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct handover handover = answered();
        struct answer grant = {.verdict = VERDICT_UNKNOWN};
        char message[200];
        snprintf(message, sizeof message, "%s%.*s%s", cases[i].before, cases[i].length,
                 handover.token, cases[i].after);
        bool taken = handover_take(&handover, message, 30 * NS_PER_SEC, &grant);
        tap_ok(taken == (cases[i].fence > 0) &&
                   (!taken ||
                    (grant.verdict == VERDICT_GRANTED && grant.grants[0].slot == cases[i].slot &&
                     grant.grants[0].fence == cases[i].fence)),
               "'%s', %d of the token, '%s'", cases[i].before, cases[i].length, cases[i].after);
    }
}

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

/* It ends 9.5 s after the offer was sent, or sooner if less was asked for. */
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
                   moment_plus(grant.from, lease).ns == sent.ns + lasts * NS_PER_MS,
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
