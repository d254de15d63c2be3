/* Owner tokens: what is one, and who nests in whom. */
#include "lock/owner.h"

#include "tap.h"

#define A    "6c807ae5-d3fd-554c-dcae-87fe288c8e42"
#define B    "00000000-0000-0000-0000-000000000000"
#define FOUR A "." A "." A "." A

static const struct {
    const char *fault;
    const char *const *texts;
} tokens[] = {
    {NULL, INPUTS(A, A "." B, FOUR "." FOUR "." FOUR "." FOUR)},
    {"is nested too deep", INPUTS(FOUR "." FOUR "." FOUR "." FOUR "." A)},
    {"is not an owner token",
     INPUTS("", "x", ".", A ".", "." A, A ".." A, A " " A, A A, A "\n",
            "6C807AE5-D3FD-554C-DCAE-87FE288C8E42", "6c807ae5d3fd554cdcae87fe288c8e42",
            "6c807ae5-d3fd-554c-dcae-87fe288c8e4", "6c807ae5-d3fd-554c-dcae-87fe288c8e4g",
            "6c807ae5-d3fd-554c-dcae_87fe288c8e42", A "." A "." A ".zzz")},
};

static const struct {
    const char *owner, *ancestor;
    bool wanted;
} kin[] = {
    {"a.b", "a", true},  {"a.b.c", "a", true}, {"a.b.c", "a.b", true}, {"a", "a", false},
    {"a", "a.b", false}, {"ab", "a", false},   {"ab.c", "a", false},   {"a.b", "b", false},
};

/* A nested owner's token begins with its ancestor's, down to the deepest that is allowed; a
 * sibling's has the same ancestor. */
static void test_nest(void)
{
    char owner[OWNER_SIZE], deepest[OWNER_SIZE] = "";
    int depth = 0;

    tap_ok(owner_nest(NULL, A, owner) && strcmp(owner, A) == 0, "without an ancestor");
    tap_ok(owner_nest("", A, owner) && strcmp(owner, A) == 0, "the child of an empty word");
    tap_ok(owner_nest(A, B, owner) && strcmp(owner, A "." B) == 0, "a child");
    for (; depth <= OWNER_DEPTH && owner_nest(deepest, A, owner); depth++)
        strcpy(deepest, owner);
    tap_ok(depth == OWNER_DEPTH, "as deep as is allowed, no deeper");
    tap_ok(owner_fault(deepest) == NULL, "the deepest is a token");
    owner_beside(deepest, B, owner);
    tap_ok(owner_fault(owner) == NULL &&
               strncmp(owner, deepest, strlen(deepest) - strlen(A)) == 0 &&
               tap_same(strrchr(owner, '.') + 1, B),
           "and so is its sibling");
    owner_beside(A, B, owner);
    tap_ok(tap_same(owner, B), "siblings without an ancestor");
}

/* R was taken by rlock run, the others by rlock acquire. */
#define R "00000000-0000-4000-8000-000000000001"
#define K "00000000-0000-8acc-8000-000000000002"
#define L "00000000-0000-8acc-8000-000000000003"
#define M "00000000-0000-8acc-8000-000000000004"

static const struct {
    const char *owner, *wanted; /* NULL: none is meant */
} acquired[] = {
    {K, NULL},
    {R, NULL},
    {K "." L, K},
    {R "." K, NULL},
    {K "." R, NULL},
    {R "." R, NULL},
    {K "." L "." M, K "." L},
    {R "." K "." L, R "." K},
    {K "." R "." L, NULL},
    {K "." L "." R, NULL},
};

/* A token tells whether rlock acquire made it, and whether that is nested in another one that rlock
 * acquire has made: which. */
static void test_mark(void)
{
    char uuid[OWNER_UUID_SIZE] = A, outer[OWNER_SIZE];

    owner_mark(uuid);
    tap_ok(tap_same(uuid, "6c807ae5-d3fd-8acc-dcae-87fe288c8e42"), "rlock acquire's tells");
    tap_ok(owner_fault(uuid) == NULL, "and is a token");
    for (size_t i = 0; i < COUNT(acquired); i++) {
        bool found = owner_acquired_in(acquired[i].owner, outer);
        tap_ok(found == (acquired[i].wanted != NULL) &&
                   (!found || tap_same(outer, acquired[i].wanted)),
               "owner_acquired_in %s", acquired[i].owner);
    }
    tap_ok(owner_is_acquired(K) && owner_is_acquired(A "." K), "of rlock acquire");
    tap_ok(!owner_is_acquired(A) && !owner_is_acquired(K "." A), "of rlock run");
    strcpy(outer, K "." L "." M);
    tap_ok(owner_acquired_in(outer, outer) && owner_acquired_in(outer, outer) &&
               tap_same(outer, K) && !owner_acquired_in(outer, outer),
           "outwards, one by one");
}

int main(void)
{
    for (size_t i = 0; i < COUNT(tokens); i++)
        EACH(text, tokens[i].texts)
            tap_is(owner_fault(*text), tokens[i].fault, "owner_fault", *text);
    for (size_t i = 0; i < COUNT(kin); i++)
        tap_ok(owner_nests_in(kin[i].owner, kin[i].ancestor) == kin[i].wanted,
               "owner_nests_in %s %s", kin[i].owner, kin[i].ancestor);
    test_nest();
    test_mark();
    return tap_done();
}
