/* Addresses: after parsing, each can be printed and parsed again; no password is ever shown. */
#include "fuzz.h"
#include "store/url.h"

static void check_parsed(const struct url *url)
{
    char first[4096], second[4096], fault[200] = "";
    struct url again;

    url_print(url, first, sizeof first);
    if (strlen(first) == sizeof first - 1)
        return;
    MUST(url_parse(first, &again, fault, sizeof fault));
    MUST(urls_same_server(url, &again) && url->db == again.db && url->tls == again.tls);
    MUST(!again.user && !again.password);
    url_print(&again, second, sizeof second);
    MUST(strcmp(first, second) == 0);
    url_free(&again);
}

static void check_one(const char *text)
{
    struct url url;
    char fault[200] = "";
    size_t start, length;
    bool secret = url_password_span(text, &start, &length);

    MUST(!secret || start + length <= strlen(text));
    if (url_parse(text, &url, fault, sizeof fault)) {
        MUST(!url.password || !*url.password || secret);
        check_parsed(&url);
        url_free(&url);
    } else {
        MUST(*fault);
    }
}

static void check_several(const char *text)
{
    size_t start = 0, length = 0, from = 0;

    for (const char *word = text; (word = urls_word(word, &length)); word += length)
        MUST(length > 0 && word + length <= text + strlen(text));
    while (urls_password_span(text, from, &start, &length)) {
        MUST(start >= from && start + length <= strlen(text));
        from = start + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_one(text);
    check_several(text);
    free(text);
    return 0;
}
