/* Names of locks, owners, and text that others wrote: a key survives the way to the store and back,
 * and nothing that is shown can act on a terminal. */
#include "base/percent.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "lock/key.h"
#include "lock/owner.h"

static void check_key(const char *key)
{
    const char *fault = key_fault(key);

    if (fault) {
        MUST(*fault);
        return;
    }
    MUST(*key && strlen(key) <= KEY_MAX_BYTES && !strpbrk(key, " \t\r\n{}"));
    char *name = key_in_store("p", key), *back = key_from_store("p", name);
    MUST(back && strcmp(back, key) == 0 && !key_from_store("q", name));
    free(name);
    free(back);
}

static void check_owner(const char *owner)
{
    static const char uuid[] = "01234567-89ab-4cde-8f01-23456789abcd";
    char token[OWNER_SIZE];

    if (owner_fault(owner))
        return;
    MUST(strlen(owner) < OWNER_SIZE);
    if (owner_nest(owner, uuid, token))
        MUST(!owner_fault(token) && owner_nests_in(token, owner));
    owner_beside(owner, uuid, token);
    MUST(!owner_fault(token) && !owner_nests_in(token, owner));
}

/* Characters by which a text plays tricks: controls, and those that turn the direction of
 * writing. */
static bool is_trick(uint32_t c)
{
    return c < ' ' || (c >= 0x7f && c < 0xa0) || c == UTF8_INVALID ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void check_shown(const char *text)
{
    size_t size = UTF8_ESCAPED_SIZE(strlen(text));
    char *shown = malloc(size), *repaired = malloc(size);

    MUST(shown && repaired);
    utf8_escape(text, shown, size);
    utf8_repair(text, repaired, size);
    for (const char *at = shown; *at;)
        MUST(!is_trick(utf8_next(&at)));
    for (const char *at = repaired; *at;)
        MUST(utf8_next(&at) != UTF8_INVALID);
    MUST(utf8_width(shown) <= strlen(shown) && utf8_fit(shown, utf8_width(shown)) == strlen(shown));
    free(shown);
    free(repaired);
}

static void check_percent(const char *text)
{
    size_t size = 3 * strlen(text) + 1;
    char *coded = malloc(size), *back = malloc(size);

    MUST(coded && back);
    size_t length = percent_encode(text, "/", coded, size);
    MUST(length == strlen(coded) && !strpbrk(coded, " \t\n/"));
    MUST(percent_decode(coded, length, back, size) == PERCENT_FINE && strcmp(back, text) == 0);
    percent_decode(text, strlen(text), back, 4);
    MUST(strlen(back) < 4);
    free(coded);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_key(text);
    check_owner(text);
    check_shown(text);
    check_percent(text);
    free(text);
    return 0;
}
