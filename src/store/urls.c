/* Several addresses in one text. */
#include "store/urls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define BLANKS " \t\r\n\v\f"

const char *urls_word(const char *text, size_t *length)
{
    text += strspn(text, BLANKS);
    *length = strcspn(text, BLANKS);
    return *length ? text : NULL;
}

static bool is_address(const char *word, size_t length)
{
    return memmem(word, length, "://", strlen("://")) != NULL;
}

/* An address and what follows it, up to the next one: a password with a blank in it is wrong,
 * but not to be shown either. Returns the end, without white space. */
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
    static const char ellipsis[] = "...";
    const size_t room = URLS_SHOWN_SIZE - sizeof ellipsis;
    char *shown = mem_strdup(text);

    urls_blot(shown); /* before it is cut: what is left would look like no password */
    snprintf(out, URLS_SHOWN_SIZE, "%.*s%s", (int)room, shown,
             strlen(shown) > room ? ellipsis : "");
    free(shown);
    return out;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* localhost is this host, whatever a name service says. */
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
    if (a->record != b->record || !same(a->path, b->path) || !same(a->master, b->master) ||
        a->host_count != b->host_count)
        return false;
    for (size_t i = 0; i < a->host_count; i++)
        if (!same_host(a->hosts[i].name, b->hosts[i].name) || a->hosts[i].port != b->hosts[i].port)
            return false;
    return true;
}
