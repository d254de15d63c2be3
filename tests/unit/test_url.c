/* Addresses of stores: how they are read, refused and shown. */
#include "store/url.h"
#include "store/cluster/store_record.h"
#include "store/hosted/store_record.h"
#include "store/local/store_record.h"
#include "store/redis/store_record.h"
#include "store/zookeeper/store_record.h"

#include <stdlib.h>

#include "tap.h"

static const struct {
    const char *text;
    struct url url; /* without .text */
    const char *shown;
} good[] = {
    {"redis://localhost",
     {.hosts = {{"localhost", 6379}}, .host_count = 1},
     "redis://localhost:6379/0"},
    {"redis://localhost/",
     {.hosts = {{"localhost", 6379}}, .host_count = 1},
     "redis://localhost:6379/0"},
    {"redis://127.0.0.1:6379/0",
     {.hosts = {{"127.0.0.1", 6379}}, .host_count = 1},
     "redis://127.0.0.1:6379/0"},
    {"redis://h:1/7", {.hosts = {{"h", 1}}, .host_count = 1, .db = 7}, "redis://h:1/7"},
    {"redis://h:65535/999999",
     {.hosts = {{"h", 65535}}, .host_count = 1, .db = 999999},
     "redis://h:65535/999999"},
    {"redis://h:06379/007", {.hosts = {{"h", 6379}}, .host_count = 1, .db = 7}, "redis://h:6379/7"},
    {"redis://My_Host-1.example.",
     {.hosts = {{"My_Host-1.example.", 6379}}, .host_count = 1},
     "redis://My_Host-1.example.:6379/0"},
    {"redis://:pw@h",
     {.password = "pw", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:@h", {.password = "", .hosts = {{"h", 6379}}, .host_count = 1}, "redis://h:6379/0"},
    {"redis://u:pw@h:7/2",
     {.user = "u", .password = "pw", .hosts = {{"h", 7}}, .host_count = 1, .db = 2},
     "redis://h:7/2"},
    {"redis://u:@h",
     {.user = "u", .password = "", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://u@h",
     {.user = "u", .password = "", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://u%3Ap@h",
     {.user = "u:p", .password = "", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://u:p@ss@h",
     {.user = "u", .password = "p@ss", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:@@@h",
     {.password = "@@", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:a:b:c@h",
     {.password = "a:b:c", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:a?b#c@h",
     {.password = "a?b#c", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://%75%3a:p%40%2F%3A%25@h",
     {.user = "u:", .password = "p@/:%", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:%2500@h",
     {.password = "%00", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://:\xc3\xa9 \x01\xff@h",
     {.password = "\xc3\xa9 \x01\xff", .hosts = {{"h", 6379}}, .host_count = 1},
     "redis://h:6379/0"},
    {"redis://[::1]", {.hosts = {{"::1", 6379}}, .host_count = 1}, "redis://[::1]:6379/0"},
    {"redis://[::1]/", {.hosts = {{"::1", 6379}}, .host_count = 1}, "redis://[::1]:6379/0"},
    {"redis://[2001:DB8::1]:7000/3",
     {.hosts = {{"2001:DB8::1", 7000}}, .host_count = 1, .db = 3},
     "redis://[2001:DB8::1]:7000/3"},
    {"redis://[::ffff:127.0.0.1]",
     {.hosts = {{"::ffff:127.0.0.1", 6379}}, .host_count = 1},
     "redis://[::ffff:127.0.0.1]:6379/0"},
    {"redis://u:p@ss@[::1]:5",
     {.user = "u", .password = "p@ss", .hosts = {{"::1", 5}}, .host_count = 1},
     "redis://[::1]:5/0"},
    {"redis://[fe80::1%25eth0]",
     {.hosts = {{"fe80::1%eth0", 6379}}, .host_count = 1},
     "redis://[fe80::1%25eth0]:6379/0"},
    {"redis://[fe80::1%eth0]:7",
     {.hosts = {{"fe80::1%eth0", 7}}, .host_count = 1},
     "redis://[fe80::1%25eth0]:7/0"},
    {"unix:///run/r.sock", {.path = "/run/r.sock"}, "unix:///run/r.sock"},
    {"unix:///run/r.sock?db=2", {.path = "/run/r.sock", .db = 2}, "unix:///run/r.sock?db=2"},
    {"unix:///run/r.sock?db=0", {.path = "/run/r.sock"}, "unix:///run/r.sock"},
    {"unix:///run/r@a:b.sock", {.path = "/run/r@a:b.sock"}, "unix:///run/r@a:b.sock"},
    {"unix://:pw@/run/r.sock", {.password = "pw", .path = "/run/r.sock"}, "unix:///run/r.sock"},
    {"unix://u:p@w@/r@x?db=9",
     {.user = "u", .password = "p@w", .path = "/r@x", .db = 9},
     "unix:///r@x?db=9"},
    {"unix:///a%20b%3Fc%23%25%0a", {.path = "/a b?c#%\n"}, "unix:///a%20b%3Fc%23%25%0A"},
    {"unix:///a%2Fb", {.path = "/a/b"}, "unix:///a/b"},
    {"unix:////x", {.path = "//x"}, "unix:////x"},
    {"unix:///[::1]:5", {.path = "/[::1]:5"}, "unix:///[::1]:5"},
    {"rediss://u:p@h/2",
     {.tls = true, .user = "u", .password = "p", .hosts = {{"h", 6379}}, .host_count = 1, .db = 2},
     "rediss://h:6379/2"},
    {"local:", {.record = &local_record}, "local:"},
    {"sentinel://h/m",
     {.record = &sentinel_record, .hosts = {{"h", 26379}}, .host_count = 1, .master = "m"},
     "sentinel://h:26379/m/0"},
    {"sentinels://:pw@h:1,[::1]:2,10.0.0.1/my%2Fmaster/3",
     {.record = &sentinel_record,
      .tls = true,
      .password = "pw",
      .hosts = {{"h", 1}, {"::1", 2}, {"10.0.0.1", 26379}},
      .host_count = 3,
      .master = "my/master",
      .db = 3},
     "sentinels://h:1,[::1]:2,10.0.0.1:26379/my%2Fmaster/3"},
    {"cluster://u:pw@h,i:7001/",
     {.record = &cluster_record,
      .user = "u",
      .password = "pw",
      .hosts = {{"h", 6379}, {"i", 7001}},
      .host_count = 2},
     "cluster://h:6379,i:7001"},
    {"clusters://h",
     {.record = &cluster_record, .tls = true, .hosts = {{"h", 6379}}, .host_count = 1},
     "clusters://h:6379"},
    {"zookeeper://h,[::1]:2182",
     {.record = &zookeeper_record, .hosts = {{"h", 2181}, {"::1", 2182}}, .host_count = 2},
     "zookeeper://h:2181,[::1]:2182"},
    {"zookeepers://u:pw@h/locks/j%25/",
     {.record = &zookeeper_record,
      .tls = true,
      .user = "u",
      .password = "pw",
      .hosts = {{"h", 2181}},
      .host_count = 1,
      .path = "locks/j%"},
     "zookeepers://h:2181/locks/j%25"},
    {"postgresql://u:p?w@h/a%2fb",
     {.record = &postgresql_record,
      .user = "u",
      .password = "p?w",
      .hosts = {{"h", 5432}},
      .host_count = 1,
      .database = "a/b"},
     "postgresql://h:5432/a%2Fb"},
    {"postgres://u@h/d",
     {.record = &postgresql_record,
      .user = "u",
      .password = "",
      .hosts = {{"h", 5432}},
      .host_count = 1,
      .database = "d"},
     "postgresql://h:5432/d"},
    {"mysql://u@/d?socket=/s",
     {.record = &mysql_record, .user = "u", .password = "", .path = "/s", .database = "d"},
     "mysql:///d?socket=/s"},
    {"zookeeper://u@h",
     {.record = &zookeeper_record,
      .user = "u",
      .password = "",
      .hosts = {{"h", 2181}},
      .host_count = 1},
     "zookeeper://h:2181"},
    {"mysqls://h:1/d?table=Locks_2",
     {.record = &mysql_record,
      .tls = true,
      .hosts = {{"h", 1}},
      .host_count = 1,
      .database = "d",
      .table = "Locks_2"},
     "mysqls://h:1/d?table=Locks_2"},
    {"mariadb:///d?socket=/run/my%26sql&table=t",
     {.record = &mariadb_record, .path = "/run/my&sql", .database = "d", .table = "t"},
     "mariadb:///d?socket=/run/my%26sql&table=t"},
    {"postgresql://u:@/d?host=/run/pg&port=5433",
     {.record = &postgresql_record,
      .user = "u",
      .password = "",
      .path = "/run/pg",
      .database = "d"},
     "postgresql:///d?host=/run/pg&port=5433"},
};

#define NO_SCHEME "has no scheme (write redis://HOST or unix:///PATH)"
#define SUPPORTED                                                                                  \
    "(redis, rediss, unix, sentinel, sentinels, cluster, clusters, zookeeper, zookeepers, "        \
    "postgresql, postgresqls, mysql, mysqls, mariadb, mariadbs and local are known)"
#define NO_HOST   "has no host"
#define BAD_HOST  "has a character in its host that no host name has"
#define NO_NAME   "has a host that is not a host name"
#define BAD_PORT  "has a port that is not a number from 1 to 65535"
#define BAD_DB    "has a database that is not a number from 0 to 999999"
#define BAD_CODE  "has a '%' without two hexadecimal digits (write %25 for it)"
#define NUL_CODE  "has a %00 in it"
#define NOBODY    "has neither a user nor a password before its '@'"
#define COLONS    "has too many ':' (write an IPv6 address in [ ])"
#define BAD_IPV6  "has no IPv6 address in its [ ]"
#define FIFTY     "12345678901234567890123456789012345678901234567890"
#define QUERY     "has a query or a fragment (a database is written /DB)"
#define NO_PATH   "has no path"
#define RELATIVE  "has a path that does not start with '/' (write unix:///PATH)"
#define HASH      "has a '#' in its path (write %23 for it)"
#define NO_MASTER "has no master's name (write sentinel://HOST:PORT/MASTER)"
#define OTHER     "has a query other than ?db=N"

static const struct {
    const char *text;
    const char *fault;
} bad[] = {
    {"", "is empty"},
    {" ", NO_SCHEME},
    {"localhost", NO_SCHEME},
    {"localhost:6379", NO_SCHEME},
    {"redis:", NO_SCHEME},
    {"redis:/h", NO_SCHEME},
    {"redis:h", NO_SCHEME},
    {"local:x", NO_SCHEME},
    {"/run/r.sock", NO_SCHEME},
    {"zookeeper://h//a", "has an empty part in its path"},
    {"zookeeper://h/a/../b", "has a '.' or '..' in its path"},
    {"zookeeper://:pw@h", "has a password without a user"},
    {"zookeeper://h,/a", NO_HOST},
    {"://", "has an unknown scheme " SUPPORTED},
    {"://h", "has an unknown scheme " SUPPORTED},
    {"x://h", "has the unknown scheme 'x' " SUPPORTED},
    {"foo://:pw@h", "has the unknown scheme 'foo' " SUPPORTED},
    {"redis+tls.v-1://h", "has the unknown scheme 'redis+tls.v-1' " SUPPORTED},
    {"abcdefghijklmnopqrst://h", "has the unknown scheme 'abcdefghijklmnopqrst' " SUPPORTED},
    {"abcdefghijklmnopqrstu://h", "has an unknown scheme " SUPPORTED},
    {"REDIS://h", "has an unknown scheme " SUPPORTED},
    {" redis://h", "has an unknown scheme " SUPPORTED},
    {"red is://h", "has an unknown scheme " SUPPORTED},
    {":pw@h://x", "has an unknown scheme " SUPPORTED},
    {"\x1b[2J://x", "has an unknown scheme " SUPPORTED},
    {"%s%n://x", "has an unknown scheme " SUPPORTED},
    {"\xff://x", "has an unknown scheme " SUPPORTED},

    {"redis://", NO_HOST},
    {"redis://.", NO_NAME},
    {"rediss://..", NO_NAME},
    {"rediss://.h", NO_NAME},
    {"rediss://h..", NO_NAME},
    {"rediss://-h", NO_NAME},
    {"sentinels://h,./m", NO_NAME},
    {"redis:///", NO_HOST},
    {"redis:///0", NO_HOST},
    {"redis://:6379", NO_HOST},
    {"redis://:pw@", NO_HOST},
    {"redis://:pw@/0", NO_HOST},
    {"redis://u:pw@:6379/0", NO_HOST},
    {"redis://h h", BAD_HOST},
    {"redis://h ", BAD_HOST},
    {"redis://h\n", BAD_HOST},
    {"redis://h,i", BAD_HOST},
    {"redis://%6c", BAD_HOST},
    {"redis://h%00", BAD_HOST},
    {"redis://h\xc3\xa9", BAD_HOST},
    {"redis://\x1b[2J", BAD_HOST},
    {"redis://h]", BAD_HOST},
    {"redis://h\\x", BAD_HOST},
    {"redis://h:", BAD_PORT},
    {"redis://h:/0", BAD_PORT},
    {"redis://h:0", BAD_PORT},
    {"redis://h:65536", BAD_PORT},
    {"redis://h:-1", BAD_PORT},
    {"redis://h:+1", BAD_PORT},
    {"redis://h: 1", BAD_PORT},
    {"redis://h:1 ", BAD_PORT},
    {"redis://h:1x", BAD_PORT},
    {"redis://h:0x50", BAD_PORT},
    {"redis://h:redis", BAD_PORT},
    {"redis://h:4294967297", BAD_PORT},
    {"redis://h:99999999999999999999999", BAD_PORT},
    {"redis://::1", COLONS},
    {"redis://::1:6379", COLONS},
    {"redis://h:1:2", COLONS},
    {"redis://h/x", BAD_DB},
    {"redis://h/1000000", BAD_DB},
    {"redis://h/-1", BAD_DB},
    {"redis://h/+1", BAD_DB},
    {"redis://h/ 1", BAD_DB},
    {"redis://h/1 ", BAD_DB},
    {"redis://h/1/", BAD_DB},
    {"redis://h//1", BAD_DB},
    {"redis://h//", BAD_DB},
    {"redis://h/1.5", BAD_DB},
    {"redis://h/%31", BAD_DB},
    {"redis://h/18446744073709551616", BAD_DB},
    {"redis://h?", QUERY},
    {"redis://h?db=1", QUERY},
    {"redis://h/?db=1", QUERY},
    {"redis://h/0?db=1", QUERY},
    {"redis://h#", QUERY},
    {"redis://h/0#x", QUERY},
    {"redis://u:p@h/0?x", QUERY},
    {"redis://@h", NOBODY},
    {"redis://u%@h", BAD_CODE},
    {"redis://:p%@h", BAD_CODE},
    {"redis://:p%4@h", BAD_CODE},
    {"redis://:p%zz@h", BAD_CODE},
    {"redis://u%:p@h", BAD_CODE},
    {"redis://:%00@h", NUL_CODE},
    {"redis://u%00:p@h", NUL_CODE},
    {"redis://:p/w@h", BAD_PORT},
    {"redis://[::1", "has a '[' without a ']'"},
    {"redis://[", "has a '[' without a ']'"},
    {"redis://[/0]", "has a '[' without a ']'"},
    {"redis://[]", BAD_IPV6},
    {"redis://[localhost]", BAD_IPV6},
    {"redis://[127.0.0.1]", BAD_IPV6},
    {"redis://[::g]", BAD_IPV6},
    {"redis://[::1%]", BAD_IPV6},
    {"redis://[::1%25]", BAD_IPV6},
    {"redis://[::1%25e 0]", BAD_IPV6},
    {"redis://[::1%25e%]", BAD_IPV6},
    {"redis://[%25:]", BAD_IPV6},
    {"redis://[[::1]]", "has something other than :PORT after its ']'"},
    {"redis://[::1]x", "has something other than :PORT after its ']'"},
    {"redis://[::1]6379", "has something other than :PORT after its ']'"},
    {"redis://[::1]:", BAD_PORT},
    {"redis://[::1]:0", BAD_PORT},
    {"redis://[::1]:1:2", BAD_PORT},

    {"unixs:///r", "has the unknown scheme 'unixs' " SUPPORTED},
    {"local://", "has the unknown scheme 'local' " SUPPORTED},
    {"sentinel://h", NO_MASTER},
    {"sentinel://h/", NO_MASTER},
    {"sentinel://h//0", NO_MASTER},
    {"sentinel://h/m/x", BAD_DB},
    {"sentinel://h/m/0/1", BAD_DB},
    {"sentinel://h/m%", BAD_CODE},
    {"sentinel:///m", NO_HOST},
    {"sentinel://h,/m", NO_HOST},
    {"sentinel://h,i:0/m", BAD_PORT},
    {"sentinel://h/m?x", QUERY},
    {"cluster://", NO_HOST},
    {"cluster://h,", NO_HOST},
    {"cluster://h/0", "has a path (a cluster has one database only)"},
    {"mysql://h", "has no database's name (write SCHEME://HOST:PORT/DATABASE)"},
    {"mysql:///d", "has no host"},
    {"mysql://h/d#", QUERY},
    {"mysql://h/d?", "has a query that it does not take (write ?table=NAME)"},
    {"mysql://h/d?table=t&x", "has a query that it does not take (write ?table=NAME)"},
    {"mysql://h/d?table=", "has a ?table= that is not of letters, digits and '_'"},
    {"mysql://h/d?table=a-b", "has a ?table= that is not of letters, digits and '_'"},
    {"mysql://h/d?table=a%5fb", "has a ?table= that is not of letters, digits and '_'"},
    {"mysql://h/d?table=" FIFTY "1234", "has a ?table= longer than 53 characters"},
    {"mysql://h/d?host=/run", "has a query that it does not take (write ?table=NAME)"},
    {"mysql:///d?socket=run", "has a path of a Unix socket that does not start with '/'"},
    {"mysql:///d?socket=/%", "has a '%' without two hexadecimal digits (write %25 for it)"},
    {"mysql:///d?socket=/" FIFTY FIFTY, "has a path of a Unix socket that is too long"},
    {"mysql://h/d?socket=/run", "has a host, and the path of a Unix socket as well"},
    {"mysqls:///d?socket=/run", "has a Unix socket, which takes no TLS"},
    {"postgresql://h/d?port=1", "has a query that it does not take (write ?table=NAME)"},
    {"postgresql:///d?host=/run&port=0", "has a ?port= that is not a number from 1 to 65535"},
    {"cluster://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "has more than 16 hosts"},
    {"unix://", NO_PATH},
    {"unix:///", NO_PATH},
    {"unix:///?db=1", NO_PATH},
    {"unix://:pw@", NO_PATH},
    {"unix://:pw@/", NO_PATH},
    {"unix://run/r.sock", RELATIVE},
    {"unix://r.sock", RELATIVE},
    {"unix://localhost/run/r.sock", RELATIVE},
    {"unix://./r.sock", RELATIVE},
    {"unix://:pw@r.sock", RELATIVE},
    {"unix://?db=1", RELATIVE},
    {"unix://%2Frun/r.sock", RELATIVE},
    {"unix://:p/w@/r.sock", RELATIVE},
    {"unix://:%zz@/r.sock", BAD_CODE},
    {"unix:///r#x", HASH},
    {"unix:///r?db=1#x", HASH},
    {"unix:///r?", OTHER},
    {"unix:///r?x", OTHER},
    {"unix:///r?db", OTHER},
    {"unix:///r?DB=1", OTHER},
    {"unix:///r?x=1&db=1", OTHER},
    {"unix:///r?db=", BAD_DB},
    {"unix:///r?db=x", BAD_DB},
    {"unix:///r?db=-1", BAD_DB},
    {"unix:///r?db=1000000", BAD_DB},
    {"unix:///r?db=1&db=2", BAD_DB},
    {"unix:///r?db=1?db=2", BAD_DB},
    {"unix:///r?db=1/", BAD_DB},
    {"unix:///r%", BAD_CODE},
    {"unix:///r%2", BAD_CODE},
    {"unix:///r%?db=1", BAD_CODE},
    {"unix:///r%00", NUL_CODE},
    {"unix:///r%00.sock", NUL_CODE},
};

#define NO_SPAN ((size_t)-1)

static const struct {
    const char *text;
    const char *password; /* its bytes as given, NULL if none */
} spans[] = {
    {"redis://:pw@h", "pw"},
    {"redis://u:pw@h/0", "pw"},
    {"redis://u:p@w@h/0", "p@w"},
    {"redis://:p%40w@h", "p%40w"},
    {"redis://u:a:b@h:1", "a:b"},
    {"redis://:@h", ""},
    {"redis://h", NULL},
    {"redis://h:1/2", NULL},
    {"redis://[::1]:1", NULL},
    {"unix:///a:b@c", NULL},
    {"unix://:pw@/a:b@c", "pw"},
    {"", NULL},
    {"localhost", NULL},
    {":pw@h", NULL},
    {"://", NULL},
    {"redis://@h", NULL},
    {"rediss://:pw@h", "pw"},
    {"sentinel://u:pw@h:1,i:2/m/0", "pw"},
    {"sentinel://h:1,i:2/m/0", NULL},
    {"local:", NULL},
    {"redis://u@h", NULL},
    /* refused ones: rather too much */
    {"redis://:p%zz@h", "p%zz"},
    {"redis://:p/w@h", "p/w"},
    {"redis://:p@s/w@h/0", "p@s/w"},
    {"redis://u:pw@", "pw"},
    {"redis://secret@h:x", "secret"},
    {"\xff\x01://u:\x1b@h", "\x1b"},
    {"redis://:pw@redis://:pw@h", "pw@redis://:pw"},
};

static bool same_url(const struct url *a, const struct url *b, const struct store_record *record)
{
    bool same = a->host_count == b->host_count;

    for (size_t i = 0; same && i < a->host_count; i++)
        same = tap_same(a->hosts[i].name, b->hosts[i].name) && a->hosts[i].port == b->hosts[i].port;
    return same && a->record == record && tap_same(a->user, b->user) &&
           tap_same(a->password, b->password) && tap_same(a->path, b->path) &&
           tap_same(a->master, b->master) && tap_same(a->database, b->database) &&
           tap_same(a->table, b->table) && a->tls == b->tls && a->db == b->db;
}

static void test_good(void)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct url url, again;
        char fault[300] = "", shown[200];
        const struct store_record *record = good[i].url.record ? good[i].url.record
                                            : good[i].url.path ? &unix_record
                                                               : &redis_record;
        bool parsed = url_parse(good[i].text, &url, fault, sizeof(fault));

        if (!tap_ok(parsed && same_url(&url, &good[i].url, record), "url_parse %s",
                    tap_show(good[i].text))) {
            tap_note("fault %s, user %s, password %s", tap_show(fault), tap_show(url.user),
                     tap_show(url.password));
            tap_note("host %s, port %d", tap_show(url.hosts[0].name), url.hosts[0].port);
            tap_note("path %s, database %d", tap_show(url.path), url.db);
        }
        if (!parsed)
            continue;
        url_print(&url, shown, sizeof(shown));
        tap_is(shown, good[i].shown, "url_print of", good[i].text);
        url.user = url.password = NULL;
        if (tap_ok(url_parse(shown, &again, fault, sizeof(fault)), "which can be parsed")) {
            tap_ok(same_url(&again, &url, record), "and is the same place");
            url_free(&again);
        }
        url_free(&url);
    }
}

static void test_bad(void)
{
    static const struct url empty = {0};

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct url url;
        char fault[300] = "nothing said";
        memset(&url, 'x', sizeof(url));
        bool parsed = url_parse(bad[i].text, &url, fault, sizeof(fault));
        tap_is(parsed ? "accepted" : fault, bad[i].fault, "url_parse", bad[i].text);
        if (parsed)
            url_free(&url);
        else if (!same_url(&url, &empty, NULL) || url.text)
            tap_ok(false, "and leaves the url empty");
    }
}

/* An address "head" + n times 'x' + "tail". */
static char *stretch(const char *head, size_t n, const char *tail)
{
    size_t start = strlen(head);
    char *text = malloc(start + n + strlen(tail) + 1);

    if (!text)
        abort();
    memcpy(text, head, start);
    memset(text + start, 'x', n);
    strcpy(text + start + n, tail);
    return text;
}

static const struct {
    const char *head;
    size_t times;
    const char *tail;
    const char *fault; /* NULL: accepted */
} sizes[] = {
    {"unix:///", 106, "", NULL},
    {"unix:///", 106, "?db=3", NULL},
    {"unix:///", 107, "", "has a path longer than 107 bytes"},
    {"unix:///", 105, "%41", NULL},
    {"unix:///", 106, "%41", "has a path longer than 107 bytes"},
    {"unix:///", 1000000, "", "has a path longer than 107 bytes"},
    {"redis://:", 1000000, "@h", NULL},
    {"redis://", 1000000, "", NO_NAME},
    {"redis://", 63, "", NULL},
    {"redis://", 64, "", NO_NAME},
    {"redis://", 63, ".h.", NULL},
    {"redis://h:", 1000000, "", BAD_PORT},
    {"redis://h/", 1000000, "", BAD_DB},
    {"redis://h?", 1000000, "", QUERY},
    {"", 1000000, "", NO_SCHEME},
    {"", 1000000, "://h", "has an unknown scheme " SUPPORTED},
};

static void test_sizes(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *text = stretch(sizes[i].head, sizes[i].times, sizes[i].tail);
        struct url url;
        char fault[300], shown[40];
        bool parsed = url_parse(text, &url, fault, sizeof(fault));

        tap_is(parsed ? NULL : fault, sizes[i].fault, "url_parse", text);
        if (parsed) {
            for (size_t room = 1; room <= sizeof(shown); room++)
                url_print(&url, shown, room);
            tap_ok(strlen(shown) < sizeof(shown), "url_print keeps to its room");
            url_free(&url);
        }
        free(text);
    }
    struct url url;
    char fault[8];
    tap_ok(!url_parse("redis://h:x", &url, fault, sizeof(fault)) && tap_same(fault, "has a p"),
           "a fault is cut to its room");
}

static void test_spans(void)
{
    for (size_t i = 0; i < COUNT(spans); i++) {
        size_t start = NO_SPAN, length = NO_SPAN;
        char *password = NULL;
        if (url_password_span(spans[i].text, &start, &length))
            password = strndup(spans[i].text + start, length);
        tap_is(password, spans[i].password, "url_password_span", spans[i].text);
        free(password);
    }
}

int main(void)
{
    test_good();
    test_bad();
    test_sizes();
    test_spans();
    return tap_done();
}
