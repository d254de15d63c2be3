#include <string.h>

#include "base/text.h"
#include "store/redis/checkup.h"
#include "store/redis/store.h"
#include "store/url_parts.h"

#define SENTINEL_PORT 26379
#define DB_MAX        999999
#define BAD_DB        "has a database that is not a number from 0 to 999999"

/* Parses [USERINFO@]HOST[:PORT][/DB] of a URL in place. Returns why it is wrong, or NULL. */
static const char *parse_redis(struct url *url, char *rest)
{
    char *db;
    const char *fault = url_take_authority(url, &rest, &db);

    if (fault || (fault = url_take_host(url, rest, REDIS_PORT)))
        return fault;
    return db && *db ? url_take_number(db, 0, DB_MAX, &url->db, BAD_DB) : NULL;
}

static void print_redis(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    text_append(out, size, "/%d", url->db);
}

/* Parses [USERINFO@]/PATH[?db=DB] of a URL in place. Returns why it is wrong, or NULL. */
static const char *parse_unix(struct url *url, char *rest)
{
    char *query;
    const char *fault = url_take_userinfo(url, &rest);

    if (fault || (fault = url_take_path(url, rest, &query)) || !query)
        return fault;
    if (strncmp(query, "db=", 3) != 0)
        return "has a query other than ?db=N";
    return url_take_number(query + 3, 0, DB_MAX, &url->db, BAD_DB);
}

/* The inverse of parse_unix(), without the password. */
static void print_unix(const struct url *url, char *out, size_t size)
{
    url_append_encoded(url->path, "?#", out, size);
    if (url->db)
        text_append(out, size, "?db=%d", url->db);
}

/* Parses HOSTS/MASTER[/DB] of a URL in place. Returns why it is wrong, or NULL. */
static const char *parse_sentinel(struct url *url, char *rest)
{
    char *master;
    const char *fault = url_take_authority(url, &rest, &master);

    if (fault || (fault = url_take_hosts(url, rest, SENTINEL_PORT)))
        return fault;
    if (!master || *master == '\0' || *master == '/')
        return "has no master's name (write sentinel://HOST:PORT/MASTER)";
    char *end = master + strcspn(master, "/");
    const char *db = *end ? end + 1 : "";
    *end = '\0';
    if (*db && (fault = url_take_number(db, 0, DB_MAX, &url->db, BAD_DB)))
        return fault;
    url->master = master;
    return url_decode(master, end);
}

/* The inverse of parse_sentinel(), without the password. */
static void print_sentinel(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    text_append(out, size, "/");
    url_append_encoded(url->master, "/?#", out, size);
    text_append(out, size, "/%d", url->db);
}

char *redis_schema(const struct store_address *address, const char *user, size_t i)
{
    if (!user || i > 0)
        return NULL;
    return rights_command(user, address->prefix, address->urls->kind->is_sharded);
}

const char *const redis_mirrors[] = {"string", "redisson", NULL};

#define REDIS_RECORD                                                                               \
    .abilities = REDIS_ABILITIES, .mirrors = redis_mirrors, .schema = redis_schema,                \
    .open = store_redis_open, .check = redis_check

const struct store_kind redis_kind = {.scheme = "redis",
                                      .secure = "rediss",
                                      .alias = "valkey",
                                      .secure_alias = "valkeys",
                                      .name = "redis://",
                                      .parse = parse_redis,
                                      .print = print_redis,
                                      .open_member = store_redis_open_member,
                                      REDIS_RECORD};

const struct store_kind unix_kind = {.scheme = "unix",
                                     .name = "unix://",
                                     .parse = parse_unix,
                                     .print = print_unix,
                                     .open_member = store_redis_open_member,
                                     REDIS_RECORD};

const struct store_kind sentinel_kind = {.scheme = "sentinel",
                                         .secure = "sentinels",
                                         .name = "sentinel://",
                                         .fails_over = true,
                                         .tls_by_settings = true,
                                         .parse = parse_sentinel,
                                         .print = print_sentinel,
                                         REDIS_RECORD};
