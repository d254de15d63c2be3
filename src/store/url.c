/* Addresses of lock stores. */
#include "store/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/store_record.h"

#define NO_SCHEME         "has no scheme (write redis://HOST or unix:///PATH)"
#define SCHEME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789+.-"

/* The schemes that there are: "redis, rediss, unix and local are known". */
static void list_schemes(char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; stores[i]; i++) {
        const char *comma = i == 0 ? "" : stores[i + 1] ? ", " : " and ";
        text_append(out, size, "%s%s", comma, stores[i]->scheme);
        if (stores[i]->secure)
            text_append(out, size, ", %s", stores[i]->secure);
    }
    text_append(out, size, " are known");
}

/* Quotes the text before "://" only if it looks like a scheme. Returns out. */
static const char *say_unknown(const char *scheme, char *out, size_t size)
{
    size_t length = strspn(scheme, SCHEME_CHARACTERS);
    char known[256];

    list_schemes(known, sizeof known);
    if (scheme[length] == '\0' && length >= 1 && length <= 20)
        snprintf(out, size, "has the unknown scheme '%s' (%s)", scheme, known);
    else
        snprintf(out, size, "has an unknown scheme (%s)", known);
    return out;
}

/* "rest" is what follows "SCHEME://", NULL where the address is "SCHEME:". NULL: there is none. */
static const struct store_record *find_record(const char *scheme, const char *rest, bool *tls)
{
    *tls = false;
    for (size_t i = 0; stores[i]; i++) {
        *tls = stores[i]->secure && strcmp(scheme, stores[i]->secure) == 0;
        bool plain = strcmp(scheme, stores[i]->scheme) == 0 ||
                     (stores[i]->alias && strcmp(scheme, stores[i]->alias) == 0);
        if ((*tls || plain) && !stores[i]->parse == !rest)
            return stores[i];
    }
    return NULL;
}

/* Cuts the text behind the scheme. False if it has none. */
static bool split(char *text, char **rest)
{
    char *mark = strstr(text, "://");
    size_t length = strlen(text);

    *rest = mark ? mark + strlen("://") : NULL;
    if (!mark && length > 0 && text[length - 1] == ':')
        mark = text + length - 1;
    if (mark)
        *mark = '\0';
    return mark;
}

/* Returns what is wrong with url->text, NULL if nothing is; "words" is room for it. */
static const char *read_parts(struct url *url, char *words, size_t size)
{
    char *rest;
    bool tls;

    if (*url->text == '\0')
        return "is empty";
    if (!split(url->text, &rest))
        return NO_SCHEME;
    url->record = find_record(url->text, rest, &tls);
    url->tls = tls;
    if (!url->record)
        return rest ? say_unknown(url->text, words, size) : NO_SCHEME;
    return rest ? url->record->parse(url, rest) : NULL;
}

bool url_parse(const char *text, struct url *url, char *fault, size_t size)
{
    const char *wrong = "does not fit into memory";
    char words[320];

    *url = (struct url){0};
    url->text = strdup(text);
    if (url->text)
        wrong = read_parts(url, words, sizeof words);
    if (!wrong)
        return true;
    snprintf(fault, size, "%s", wrong);
    url_free(url);
    return false;
}

void url_free(struct url *url)
{
    free(url->text);
    *url = (struct url){0};
}

char *url_print(const struct url *url, char *out, size_t size)
{
    const struct store_record *record = url->record;

    if (size == 0)
        return out;
    out[0] = '\0';
    text_append(out, size, "%s:", url->tls ? record->secure : record->scheme);
    if (record->print) {
        text_append(out, size, "//");
        record->print(url, out, size);
    }
    return out;
}

/* Where url_parse() refuses the text, a '/' within the password may be the reason, or the scheme
 * has rules of its own: then all up to the very last '@' counts, rather too much than too
 * little. */
bool url_password_span(const char *text, size_t *start, size_t *length)
{
    struct url url;
    char fault[128];
    const char *mark = strstr(text, "://");

    if (!mark)
        return false;
    const char *first = mark + strlen("://");
    size_t reach = strlen(first);
    bool sound = url_parse(text, &url, fault, sizeof(fault));
    if (sound) {
        reach = strcspn(first, "/");
        url_free(&url);
    }
    const char *at = memrchr(first, '@', reach);
    if (!at)
        return false;
    const char *colon = memchr(first, ':', (size_t)(at - first));
    if (!colon && (at == first || sound))
        return false;
    const char *from = colon ? colon + 1 : first;
    *start = (size_t)(from - text);
    *length = (size_t)(at - from);
    return true;
}
