/* Addresses of lock stores. */
#include "url.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "percent.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyz"

#define SUPPORTED "(redis, rediss, unix, sentinel, cluster and local are known)"

#define REDIS_PORT      6379
#define SENTINEL_PORT   26379
#define DB_MAX          999999
#define SOCKET_PATH_MAX 107 /* sun_path without its NUL, see unix(7) */

#define BAD_PORT "has a port that is not a number from 1 to 65535"
#define BAD_DB   "has a database that is not a number from 0 to 999999"

/* The functions below take the address apart in place, in url->text, and return NULL or what is
 * wrong with it. Faults are constants: nothing of the text may get into a message. */

static const char *take_number(const char *text, int least, int most, int *out, const char *fault)
{
    int number = 0;

    if (*text == '\0')
        return fault;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return fault;
        number = number * 10 + (*text - '0');
        if (number > most)
            return fault;
    }
    *out = number;
    return number < least ? fault : NULL;
}

/* The decoded text is never longer, and the byte behind it is a separator that is done with. */
static const char *decode(char *start, const char *end)
{
    size_t length = (size_t)(end - start);

    switch (percent_decode(start, length, start, length + 1)) {
    case PERCENT_DAMAGED: return "has a '%' without two hexadecimal digits (write %25 for it)";
    case PERCENT_NUL: return "has a %00 in it";
    case PERCENT_FINE: break;
    }
    return NULL;
}

/* Takes USER:PASS@ off *rest, if there. It ends at the last '@' before the path, as passwords are
 * pasted with theirs not encoded. A word without ':' may be meant as a password by one and as a user
 * by another program: refused. */
static const char *take_userinfo(struct url *url, char **rest)
{
    char *start = *rest;
    char *at = memrchr(start, '@', strcspn(start, "/"));
    const char *fault;

    if (!at)
        return NULL;
    char *colon = memchr(start, ':', (size_t)(at - start));
    if (!colon)
        return "has no ':' before its '@' (write USER:PASSWORD@, or USER:@ and the password "
               "elsewhere)";
    if ((fault = decode(start, colon)) || (fault = decode(colon + 1, at)))
        return fault;
    url->user = *start ? start : NULL;
    url->password = colon + 1;
    *rest = at + 1;
    return NULL;
}

/* An IPv6 address, with a zone as in fe80::1%25eth0 (RFC 6874) or, as people paste it, fe80::1%eth0;
 * getaddrinfo() wants the bare '%'. */
static const char *check_ipv6(char *host)
{
    char *zone = host + strspn(host, DIGITS "abcdefABCDEF:.");

    if (!strchr(host, ':'))
        return "has no IPv6 address in its [ ]";
    if (*zone == '\0')
        return NULL;
    size_t skip = strncmp(zone, "%25", 3) == 0 ? 3 : 1;
    size_t length = strlen(zone + skip);
    if (*zone != '%' || length == 0 ||
        strspn(zone + skip, DIGITS LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-") != length)
        return "has no IPv6 address in its [ ]";
    memmove(zone + 1, zone + skip, length + 1);
    return NULL;
}

static const char *check_name(const char *host)
{
    if (*host == '\0')
        return "has no host";
    if (host[strspn(host, DIGITS LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-")])
        return "has a character in its host that no host name has";
    return NULL;
}

/* HOST[:PORT], up to the end of "text". */
static const char *take_host(struct url_host *to, char *text, int default_port)
{
    bool bracket = *text == '[';
    char *host = text + bracket;
    char *end = host + strcspn(host, bracket ? "]" : ":");
    char *port = end;
    const char *fault;

    if (bracket && *end == '\0')
        return "has a '[' without a ']'";
    if (bracket)
        port++;
    if (*port && *port != ':')
        return "has something other than :PORT after its ']'";
    if (*port && strchr(port + 1, ':'))
        return bracket ? BAD_PORT : "has too many ':' (write an IPv6 address in [ ])";

    to->port = default_port;
    if (*port && (fault = take_number(port + 1, 1, 65535, &to->port, BAD_PORT)))
        return fault;
    *end = '\0';
    to->name = host;
    return bracket ? check_ipv6(host) : check_name(host);
}

/* HOST[:PORT][,HOST[:PORT]...], up to the end of "text". */
static const char *take_hosts(struct url *url, char *text, int default_port)
{
    const char *fault = NULL;

    while (text && !fault) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = '\0';
        if (url->host_count == URL_HOSTS_MAX)
            return "has more than 16 hosts";
        fault = take_host(&url->hosts[url->host_count++], text, default_port);
        text = comma;
    }
    return fault;
}

/* What all but unix have: the user, and no query. *path is what follows the first '/', NULL if there is
 * none. */
static const char *take_authority(struct url *url, char **rest, char **path)
{
    const char *fault = take_userinfo(url, rest);

    if (fault)
        return fault;
    if (strpbrk(*rest, "?#"))
        return "has a query or a fragment (a database is written /DB)";
    char *slash = strchr(*rest, '/');
    if (slash)
        *slash++ = '\0';
    *path = slash;
    return NULL;
}

static const char *parse_redis(struct url *url, char *rest)
{
    char *db;
    const char *fault = take_authority(url, &rest, &db);

    url->host_count = 1;
    if (fault || (fault = take_host(&url->hosts[0], rest, REDIS_PORT)))
        return fault;
    return db && *db ? take_number(db, 0, DB_MAX, &url->db, BAD_DB) : NULL;
}

static const char *parse_sentinel(struct url *url, char *rest)
{
    char *master;
    const char *fault = take_authority(url, &rest, &master);

    if (fault || (fault = take_hosts(url, rest, SENTINEL_PORT)))
        return fault;
    if (!master || *master == '\0' || *master == '/')
        return "has no master's name (write sentinel://HOST:PORT/MASTER)";
    char *end = master + strcspn(master, "/");
    const char *db = *end ? end + 1 : "";
    *end = '\0';
    if (*db && (fault = take_number(db, 0, DB_MAX, &url->db, BAD_DB)))
        return fault;
    url->master = master;
    return decode(master, end);
}

static const char *parse_cluster(struct url *url, char *rest)
{
    char *path;
    const char *fault = take_authority(url, &rest, &path);

    if (fault || (fault = take_hosts(url, rest, REDIS_PORT)))
        return fault;
    return path && *path ? "has a path (a cluster has one database only)" : NULL;
}

static const char *parse_unix(struct url *url, char *rest)
{
    const char *fault = take_userinfo(url, &rest);

    if (fault)
        return fault;
    if (*rest && *rest != '/')
        return "has a path that does not start with '/' (write unix:///PATH)";
    if (strchr(rest, '#'))
        return "has a '#' in its path (write %23 for it)";
    char *end = rest + strcspn(rest, "?");
    if (*end && strncmp(end, "?db=", 4) != 0)
        return "has a query other than ?db=N";
    if (*end && (fault = take_number(end + 4, 0, DB_MAX, &url->db, BAD_DB)))
        return fault;
    if ((fault = decode(rest, end)))
        return fault;
    if (*rest == '\0' || strcmp(rest, "/") == 0)
        return "has no path";
    if (strlen(rest) > SOCKET_PATH_MAX)
        return "has a path longer than 107 bytes";
    url->path = rest;
    return NULL;
}

static const struct {
    const char *scheme, *secure; /* as it is over TLS, NULL: it never is */
    const char *(*parse)(struct url *url, char *rest);
} schemes[] = {
    {"redis", "rediss", parse_redis},
    {"unix", NULL, parse_unix},
    {"sentinel", "sentinels", parse_sentinel},
    {"cluster", "clusters", parse_cluster},
};

/* What stands before "://" may be anything: only what looks like a scheme is quoted. */
static void say_unknown(const char *scheme, char *fault, size_t size)
{
    size_t length = strspn(scheme, LETTERS DIGITS "+.-");

    if (scheme[length] == '\0' && length >= 1 && length <= 20)
        snprintf(fault, size, "has the unknown scheme '%s' " SUPPORTED, scheme);
    else
        snprintf(fault, size, "has an unknown scheme " SUPPORTED);
}

/* "text" is SCHEME, NUL, and what follows its "://". */
static bool parse_parts(struct url *url, char *rest, char *fault, size_t size)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        url->tls = schemes[i].secure && strcmp(url->text, schemes[i].secure) == 0;
        if (!url->tls && strcmp(url->text, schemes[i].scheme) != 0)
            continue;
        url->scheme = schemes[i].scheme;
        const char *wrong = schemes[i].parse(url, rest);
        snprintf(fault, size, "%s", wrong ? wrong : "");
        return !wrong;
    }
    say_unknown(url->text, fault, size);
    return false;
}

bool url_parse(const char *text, struct url *url, char *fault, size_t size)
{
    const char *mark = strstr(text, "://");
    const char *wrong = *text == '\0' ? "is empty"
                        : !mark       ? "has no scheme (write redis://HOST or unix:///PATH)"
                                      : "does not fit into memory";

    *url = (struct url){0};
    if (strcmp(text, "local:") == 0) {
        url->scheme = "local";
        return true;
    }
    if (!mark || !(url->text = strdup(text))) {
        snprintf(fault, size, "%s", wrong);
        return false;
    }
    url->text[mark - text] = '\0';
    if (parse_parts(url, url->text + (mark - text) + strlen("://"), fault, size))
        return true;
    url_free(url);
    return false;
}

void url_free(struct url *url)
{
    free(url->text);
    *url = (struct url){0};
}

static void append(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}

static void append_encoded(char *out, size_t size, const char *text, const char *special)
{
    size_t used = strlen(out);
    percent_encode(text, special, out + used, size - used);
}

static void append_host(char *out, size_t size, const struct url_host *host)
{
    int address = (int)strcspn(host->name, "%");
    const char *zone = host->name[address] ? host->name + address + 1 : NULL;

    if (strchr(host->name, ':'))
        append(out, size, "[%.*s%s%s]:%d", address, host->name, zone ? "%25" : "",
               zone ? zone : "", host->port);
    else
        append(out, size, "%s:%d", host->name, host->port);
}

char *url_print(const struct url *url, char *out, size_t size)
{
    if (size == 0)
        return out;
    out[0] = '\0';
    if (strcmp(url->scheme, "local") == 0) {
        append(out, size, "local:");
        return out;
    }
    append(out, size, "%s%s://", url->scheme, url->tls ? "s" : "");
    for (size_t i = 0; i < url->host_count; i++) {
        append(out, size, "%s", i ? "," : "");
        append_host(out, size, &url->hosts[i]);
    }
    if (url->path) {
        append_encoded(out, size, url->path, "?#");
        if (url->db)
            append(out, size, "?db=%d", url->db);
    } else if (url->master) {
        append(out, size, "/");
        append_encoded(out, size, url->master, "/?#");
        append(out, size, "/%d", url->db);
    } else if (strcmp(url->scheme, "cluster") != 0) {
        append(out, size, "/%d", url->db);
    }
    return out;
}

/* Where url_parse() refuses the text, a '/' within the password may be the reason, or the scheme has
 * rules of its own: then all up to the very last '@' counts, rather too much than too little. */
bool url_password_span(const char *text, size_t *start, size_t *length)
{
    struct url url;
    char fault[128];
    const char *mark = strstr(text, "://");

    if (!mark)
        return false;
    const char *first = mark + strlen("://");
    size_t reach = strlen(first);
    if (url_parse(text, &url, fault, sizeof(fault))) {
        reach = strcspn(first, "/");
        url_free(&url);
    }
    const char *at = memrchr(first, '@', reach);
    if (!at)
        return false;
    const char *colon = memchr(first, ':', (size_t)(at - first));
    if (!colon && at == first)
        return false;
    /* Without ':' too: redis-cli takes such a word for the password. */
    const char *from = colon ? colon + 1 : first;
    *start = (size_t)(from - text);
    *length = (size_t)(at - from);
    return true;
}
