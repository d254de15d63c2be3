#include "store/url_parts.h"

#include <string.h>

#include "base/decimal.h"
#include "base/percent.h"
#include "base/text.h"
#include "net/resolve.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define SOCKET_PATH_MAX 107 /* sun_path without its NUL, see unix(7) */

#define BAD_PORT "has a port that is not a number from 1 to 65535"

/* -- parsing --------------------------------------------------------------------------------- */

const char *url_take_number(const char *text, int least, int most, int *out, const char *fault)
{
    int64_t number;

    if (!decimal_parse(text, least, most, &number))
        return fault;
    *out = (int)number;
    return NULL;
}

/* The decoded text is never longer, so it has room. */
const char *url_decode(char *start, const char *end)
{
    size_t length = (size_t)(end - start);

    switch (percent_decode(start, length, start, length + 1)) {
    case PERCENT_DAMAGED: return "has a '%' without two hexadecimal digits (write %25 for it)";
    case PERCENT_NUL: return "has a %00 in it";
    case PERCENT_FINE: break;
    }
    return NULL;
}

/* Whether what looks like HOST:PORT/PATH is rather USER:PASSWORD@HOST with a '/' in the PASSWORD:
 * there is an '@' behind the '/', and what stands before that is not a port. */
static bool has_slash_in_password(const char *text)
{
    size_t host = strcspn(text, "/");
    const char *colon = memrchr(text, ':', host);
    size_t digits = colon ? strspn(colon + 1, DIGITS) : 0;

    return colon && strchr(text + host, '@') &&
           (colon == text || digits == 0 || colon + 1 + digits != text + host);
}

const char *url_take_userinfo(struct url *url, char **rest)
{
    char *start = *rest;
    char *at = memrchr(start, '@', strcspn(start, "/"));
    const char *fault;

    if (!at)
        return has_slash_in_password(start) ? "has a '/' in its password (write %2F for it)" : NULL;
    if (at == start)
        return "has neither a user nor a password before its '@'";
    char *colon = memchr(start, ':', (size_t)(at - start));
    if ((fault = url_decode(start, colon ? colon : at)) ||
        (colon && (fault = url_decode(colon + 1, at))))
        return fault;
    url->user = *start ? start : NULL;
    url->password = colon ? colon + 1 : "";
    *rest = at + 1;
    return NULL;
}

/* Checks what stands in brackets, in place: an IPv6 address, with a zone as in fe80::1%25eth0 (RFC
 * 6874) or, as people paste it, fe80::1%eth0; getaddrinfo() wants the bare '%'. Returns what is
 * wrong with the URL, or NULL. */
static const char *check_ipv6(char *host)
{
    char *zone = host + strspn(host, DIGITS "abcdefABCDEF:.");

    if (!strchr(host, ':'))
        return "has no IPv6 address in its [ ]";
    if (*zone == '\0')
        return NULL;
    size_t skip = strncmp(zone, "%25", 3) == 0 ? 3 : 1;
    size_t length = strlen(zone + skip);
    if (*zone != '%' || length == 0 || strspn(zone + skip, DIGITS LETTERS "._-") != length)
        return "has no IPv6 address in its [ ]";
    memmove(zone + 1, zone + skip, length + 1);
    return NULL;
}

/* Returns what is wrong with the URL where this is its host; NULL: nothing. */
static const char *check_name(const char *host)
{
    if (*host == '\0')
        return "has no host";
    if (host[strspn(host, DIGITS LETTERS "._-")])
        return "has a character in its host that no host name has";
    return host_is_name(host) ? NULL : "has a host that is not a host name";
}

const char *url_take_host(struct url *url, char *text, int default_port)
{
    struct url_host *to = &url->hosts[url->host_count++];
    bool bracket = *text == '[';
    char *host = bracket ? text + 1 : text;
    char *end = host + strcspn(host, bracket ? "]" : ":");
    char *port = end;
    const char *fault;

    if (strchr(text, ','))
        return "has several hosts (of a quorum, each is a URL; cluster:// and sentinel:// take "
               "them)";
    if (bracket && *end == '\0')
        return "has a '[' without a ']'";
    if (bracket)
        port++;
    if (*port && *port != ':')
        return "has something other than :PORT after its ']'";
    if (*port && strchr(port + 1, ':'))
        return bracket ? BAD_PORT : "has too many ':' (write an IPv6 address in [ ])";

    to->port = default_port;
    if (*port && (fault = url_take_number(port + 1, 1, 65535, &to->port, BAD_PORT)))
        return fault;
    *end = '\0';
    to->name = host;
    return bracket ? check_ipv6(host) : check_name(host);
}

const char *url_take_hosts(struct url *url, char *text, int default_port)
{
    const char *fault = NULL;

    while (text && !fault) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = '\0';
        if (url->host_count == URL_HOSTS_MAX)
            return "has more than 16 hosts";
        fault = url_take_host(url, text, default_port);
        text = comma;
    }
    return fault;
}

const char *url_take_authority(struct url *url, char **rest, char **path)
{
    const char *fault = url_take_userinfo(url, rest);

    if (fault)
        return fault;
    if (strpbrk(*rest, "?#"))
        return "has a query or a fragment (a database of Redis is written /DB)";
    char *slash = strchr(*rest, '/');
    if (slash)
        *slash++ = '\0';
    *path = slash;
    return NULL;
}

const char *url_take_path(struct url *url, char *text, char **query)
{
    const char *fault;

    if (*text && *text != '/')
        return "has a path that does not start with '/' (write unix:///PATH)";
    if (strchr(text, '#'))
        return "has a '#' in its path (write %23 for it)";
    char *end = text + strcspn(text, "?");
    *query = *end ? end + 1 : NULL;
    if ((fault = url_decode(text, end)))
        return fault;
    if (*text == '\0' || strcmp(text, "/") == 0)
        return "has no path";
    if (strlen(text) > SOCKET_PATH_MAX)
        return "has a path longer than 107 bytes";
    url->path = text;
    return NULL;
}

/* -- printing -------------------------------------------------------------------------------- */

void url_append_encoded(const char *text, const char *special, char *out, size_t size)
{
    size_t used = strlen(out);

    percent_encode(text, special, out + used, size - used);
}

void url_append_hosts(const struct url *url, char *out, size_t size)
{
    for (size_t i = 0; i < url->host_count; i++) {
        const struct url_host *host = &url->hosts[i];
        int address = (int)strcspn(host->name, "%"); /* its length, without a zone */
        const char *zone = host->name[address] ? host->name + address + 1 : NULL;
        text_append(out, size, "%s", i ? "," : "");
        if (strchr(host->name, ':'))
            text_append(out, size, "[%.*s%s%s]:%d", address, host->name, zone ? "%25" : "",
                        zone ? zone : "", host->port);
        else
            text_append(out, size, "%s:%d", host->name, host->port);
    }
}
