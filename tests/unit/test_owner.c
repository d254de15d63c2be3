/* Owner tokens: what is one, and who nests in whom. */
#include "owner.h"

#include "tap.h"

#define A    "6c807ae5-d3fd-554c-dcae-87fe288c8e42"
#define B    "00000000-0000-0000-0000-000000000000"
#define NONE "is no owner token"
#define FOUR A "." A "." A "." A

static const struct {
    const char *text, *wanted;
} tokens[] = {
    {A, NULL},
    {A "." B, NULL},
    {FOUR "." FOUR "." FOUR "." FOUR, NULL},
    {FOUR "." FOUR "." FOUR "." FOUR "." A, "is nested too deep"},
    {"", NONE},
    {"x", NONE},
    {".", NONE},
    {A ".", NONE},
    {"." A, NONE},
    {A ".." A, NONE},
    {A " " A, NONE},
    {A A, NONE},
    {A "\n", NONE},
    {"6C807AE5-D3FD-554C-DCAE-87FE288C8E42", NONE}, /* not as it was made */
    {"6c807ae5d3fd554cdcae87fe288c8e42", NONE},
    {"6c807ae5-d3fd-554c-dcae-87fe288c8e4", NONE},
    {"6c807ae5-d3fd-554c-dcae-87fe288c8e4g", NONE},
    {"6c807ae5-d3fd-554c-dcae_87fe288c8e42", NONE},
    {A "." A "." A ".zzz", NONE},
};

static const struct {
    const char *owner, *ancestor;
    bool wanted;
} kin[] = {
    {"a.b", "a", true},  {"a.b.c", "a", true}, {"a.b.c", "a.b", true}, {"a", "a", false},
    {"a", "a.b", false}, {"ab", "a", false},   {"ab.c", "a", false},   {"a.b", "b", false},
};

static void test_nest(void)
{
    char owner[OWNER_SIZE], deepest[OWNER_SIZE] = "";
    int depth = 0;

    tap_ok(owner_nest(NULL, A, owner) && strcmp(owner, A) == 0, "nobody's child");
    tap_ok(owner_nest("", A, owner) && strcmp(owner, A) == 0, "the child of an empty word");
    tap_ok(owner_nest(A, B, owner) && strcmp(owner, A "." B) == 0, "a child");
    for (; depth <= OWNER_DEPTH && owner_nest(deepest, A, owner); depth++)
        strcpy(deepest, owner);
    tap_ok(depth == OWNER_DEPTH, "as deep as is allowed, no deeper");
    tap_ok(owner_fault(deepest) == NULL, "the deepest is a token");
    owner_beside(deepest, B, owner);
    tap_ok(owner_fault(owner) == NULL && strncmp(owner, deepest, strlen(deepest) - strlen(A)) == 0 &&
               tap_same(strrchr(owner, '.') + 1, B),
           "and so is its sibling");
    owner_beside(A, B, owner);
    tap_ok(tap_same(owner, B), "nobody's child has siblings as well");
}

int main(void)
{
    for (size_t i = 0; i < COUNT(tokens); i++)
        tap_is(owner_fault(tokens[i].text), tokens[i].wanted, "owner_fault", tokens[i].text);
    for (size_t i = 0; i < COUNT(kin); i++)
        tap_ok(owner_nests_in(kin[i].owner, kin[i].ancestor) == kin[i].wanted,
               "owner_nests_in %s %s", kin[i].owner, kin[i].ancestor);
    test_nest();
    return tap_done();
}
