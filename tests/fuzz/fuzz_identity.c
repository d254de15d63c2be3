/* The line about a holder that others wrote into the store: whatever it is, it is shown, and
 * written again the same. */
#include "base/utf8.h"
#include "cli/describe.h"
#include "fuzz.h"
#include "lock/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct identity who, again;
    char plain[DESCRIBE_PARTY_SIZE], shown[UTF8_ESCAPED_SIZE(sizeof plain)];

    memset(&who, 0, sizeof who);
    memset(&again, 0, sizeof again);
    identity_parse(text, size, &who);
    utf8_escape(describe_party(&who, plain, sizeof plain), shown, sizeof shown);
    for (const char *at = shown; *at;) {
        uint32_t c = utf8_next(&at);
        MUST(c != UTF8_INVALID && c >= ' ' && c != 0x7f);
    }
    char *line = identity_print(&who);
    identity_parse(line, strlen(line), &again);
    MUST(strcmp(who.host, again.host) == 0 && strcmp(who.user, again.user) == 0);
    MUST(strcmp(who.command, again.command) == 0 && strcmp(who.label, again.label) == 0);
    MUST(who.pid == again.pid);
    MUST(identity_noted(text, size, "waited") >= 0);
    char *noted = identity_note(line, "waited", 7);
    MUST(identity_noted(noted, strlen(noted), "waited") == 7);
    free(noted);
    free(line);
    free(text);
    return 0;
}
