#include "store/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/similar.h"
#include "base/text.h"
#include "store/store_kind.h"

#define NO_SCHEME         "has no scheme (write redis://HOST or unix:///PATH)"
#define SCHEME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789+.-"

#define KNOWN "(rlock help options lists all)" /* schemes */

/* Prints a hint behind an unknown scheme: the known one that is most similar, or else where all are
 * told. */
static void print_known(const char *scheme, char *out, size_t size)
{
    size_t slips = SLIPS_MANY;

    snprintf(out, size, KNOWN);
    for (size_t i = 0; stores[i]; i++) {
        const struct store_kind *kind = stores[i];
        const char *const names[] = {kind->scheme, kind->alias, kind->secure, kind->secure_alias};
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (names[j] && similar_is_nearer(scheme, strlen(scheme), names[j], &slips))
                snprintf(out, size, "(did you mean %s:%s?)", names[j],
                         kind->parse && !kind->is_bare ? "//" : "");
    }
}

/* Words the fault of a URL with an unknown scheme, the text before "://", which is quoted only if
 * it looks like one. Returns out. */
static const char *say_unknown(const char *scheme, char *out, size_t size)
{
    size_t length = strspn(scheme, SCHEME_CHARACTERS);
    char known[60];

    if (*scheme == '"' || *scheme == '\'') {
        snprintf(out, size, "is in quotes; write it without them");
        return out;
    }
    print_known(scheme, known, sizeof known);
    if (scheme[length] == '\0' && length >= 1 && length <= 20)
        snprintf(out, size, "has the unknown scheme '%s' %s", scheme, known);
    else
        snprintf(out, size, "has an unknown scheme %s", known);
    return out;
}

/* Whether the scheme is one of two words, either of which may be NULL. */
static bool is_either(const char *scheme, const char *one, const char *other)
{
    return (one && strcmp(scheme, one) == 0) || (other && strcmp(scheme, other) == 0);
}

/* Returns the kind of a URL's scheme, and in *tls whether that means TLS; NULL: there is none.
 * "rest" is what follows "SCHEME://", NULL where the address is "SCHEME:". */
static const struct store_kind *find_kind(const char *scheme, const char *rest, bool *tls)
{
    *tls = false;
    for (size_t i = 0; stores[i]; i++) {
        *tls = is_either(scheme, stores[i]->secure, stores[i]->secure_alias);
        bool plain = is_either(scheme, stores[i]->scheme, stores[i]->alias);
        bool has_rest = stores[i]->parse != NULL;
        if ((*tls || plain) && has_rest == (rest != NULL) && !stores[i]->is_bare)
            return stores[i];
    }
    return NULL;
}

/* Returns the kind of store of "SCHEME:REST", where REST may contain "://", and *rest within the
 * text. NULL: the text has another form. */
static const struct store_kind *find_bare(char *text, char **rest)
{
    size_t length = strcspn(text, ":");

    for (size_t i = 0; text[length] && stores[i]; i++) {
        if (stores[i]->is_bare && strlen(stores[i]->scheme) == length &&
            strncmp(text, stores[i]->scheme, length) == 0) {
            *rest = text + length + 1;
            return stores[i];
        }
    }
    return NULL;
}

/* Cuts the text behind the scheme; *rest: what follows "SCHEME://", NULL for "SCHEME:". False if it
 * has no scheme. */
static bool split_scheme(char *text, char **rest)
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

/* Reads url->text into the other members. Returns what is wrong with it, NULL if nothing is;
 * "words" is room for that. */
static const char *read_parts(struct url *url, char *words, size_t size)
{
    char *rest;
    bool tls;

    if (*url->text == '\0')
        return "is empty";
    if ((url->kind = find_bare(url->text, &rest)))
        return url->kind->parse(url, rest);
    if (!split_scheme(url->text, &rest))
        return NO_SCHEME;
    url->kind = find_kind(url->text, rest, &tls);
    url->tls = tls;
    if (!url->kind)
        return rest ? say_unknown(url->text, words, size) : NO_SCHEME;
    return rest ? url->kind->parse(url, rest) : NULL;
}

bool url_parse(const char *text, struct url *url, char *fault, size_t size)
{
    char words[400];

    *url = (struct url){.text = mem_strdup(text)};
    const char *wrong = read_parts(url, words, sizeof words);
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
    const struct store_kind *kind = url->kind;

    if (size == 0)
        return out;
    out[0] = '\0';
    text_append(out, size, "%s:", url->tls ? kind->secure : kind->scheme);
    if (kind->print) {
        text_append(out, size, "%s", kind->is_bare ? "" : "//");
        kind->print(url, out, size);
    }
    return out;
}

/* Where url_parse() refuses the text, a '/' within the password may be the reason, or the scheme
 * has rules of its own: then all up to the last '@' counts, rather too much than too little. */
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

/* -- several addresses in one text ------------------------------------------------------------- */

#define BLANKS " \t\r\n\v\f"

const char *urls_word(const char *text, size_t *length)
{
    text += strspn(text, BLANKS);
    *length = strcspn(text, BLANKS);
    return *length ? text : NULL;
}

/* Whether the word of that length looks like an address. */
static bool is_address(const char *word, size_t length)
{
    return memmem(word, length, "://", strlen("://")) != NULL;
}

/* Returns where an address (the word of that length) and the words behind it end, before the next
 * address: a password with a blank in it is wrong, but not to be shown either. */
static const char *end_of_address(const char *word, size_t length)
{
    const char *end = word + length;

    while ((word = urls_word(word + length, &length)) && !is_address(word, length))
        end = word + length;
    return end;
}

bool urls_password_span(const char *text, size_t from, size_t *start, size_t *length)
{
    /* Behind a password, what is left of its address has no other. */
    const char *at = text + from + (from ? strcspn(text + from, BLANKS) : 0);
    size_t size;
    bool found = false;

    while (!found && (at = urls_word(at, &size))) {
        if (is_address(at, size)) {
            size = (size_t)(end_of_address(at, size) - at);
            char *address = mem_checked(strndup(at, size));
            found = url_password_span(address, start, length);
            explicit_bzero(address, size);
            free(address);
        }
        if (found)
            *start += (size_t)(at - text);
        at += size;
    }
    return found;
}

void urls_blot(char *text)
{
    size_t start, length;

    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start + length)
        memset(text + start, '*', length);
}

char *urls_show(const char *text, char out[URLS_SHOWN_SIZE])
{
    char *shown = mem_strdup(text);

    urls_blot(shown); /* before it is cut: what is left would look like no password */
    text_copy(out, URLS_SHOWN_SIZE, shown);
    free(shown);
    return out;
}

/* Whether both texts are equal, or both NULL. */
static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether both names are of one host. localhost is this host, whatever a name service says. */
static bool same_host(const char *a, const char *b)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    bool known = strcasecmp(a, b) == 0, first = false, second = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        first |= strcasecmp(a, names[i]) == 0;
        second |= strcasecmp(b, names[i]) == 0;
    }
    return known || (first && second);
}

bool urls_same_server(const struct url *a, const struct url *b)
{
    if (a->kind != b->kind || !same_text(a->path, b->path) || !same_text(a->master, b->master) ||
        a->host_count != b->host_count)
        return false;
    for (size_t i = 0; i < a->host_count; i++)
        if (!same_host(a->hosts[i].name, b->hosts[i].name) || a->hosts[i].port != b->hosts[i].port)
            return false;
    return true;
}
