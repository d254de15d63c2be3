/* Addresses of stores: how they are read, refused and shown. */
#include "store/url.h"

#include "base/strbuf.h"
#include "store/store_kind.h"

#include "tap.h"

static const struct {
    const char *text, *wanted, *shown;
} good[] = {
    {"redis://localhost", "redis localhost:6379", "redis://localhost:6379/0"},
    {"redis://localhost/", "redis localhost:6379", "redis://localhost:6379/0"},
    {"redis://127.0.0.1:6379/0", "redis 127.0.0.1:6379", "redis://127.0.0.1:6379/0"},
    {"redis://h:1/7", "redis h:1 db=7", "redis://h:1/7"},
    {"redis://h:65535/999999", "redis h:65535 db=999999", "redis://h:65535/999999"},
    {"redis://h:06379/007", "redis h:6379 db=7", "redis://h:6379/7"},
    {"redis://My_Host-1.example.", "redis My_Host-1.example.:6379",
     "redis://My_Host-1.example.:6379/0"},
    {"redis://:pw@h", "redis password=pw h:6379", "redis://h:6379/0"},
    {"redis://:@h", "redis password= h:6379", "redis://h:6379/0"},
    {"redis://u:pw@h:7/2", "redis user=u password=pw h:7 db=2", "redis://h:7/2"},
    {"redis://u:@h", "redis user=u password= h:6379", "redis://h:6379/0"},
    {"redis://u@h", "redis user=u password= h:6379", "redis://h:6379/0"},
    {"redis://u%3Ap@h", "redis user=u:p password= h:6379", "redis://h:6379/0"},
    {"redis://u:p@ss@h", "redis user=u password=p@ss h:6379", "redis://h:6379/0"},
    {"redis://:@@@h", "redis password=@@ h:6379", "redis://h:6379/0"},
    {"redis://:a:b:c@h", "redis password=a:b:c h:6379", "redis://h:6379/0"},
    {"redis://:a?b#c@h", "redis password=a?b#c h:6379", "redis://h:6379/0"},
    {"redis://%75%3a:p%40%2F%3A%25@h", "redis user=u: password=p@/:% h:6379", "redis://h:6379/0"},
    {"redis://:%2500@h", "redis password=%00 h:6379", "redis://h:6379/0"},
    {"redis://:\xc3\xa9 \x01\xff@h", "redis password=\xc3\xa9 \x01\xff h:6379", "redis://h:6379/0"},
    {"redis://[::1]", "redis ::1:6379", "redis://[::1]:6379/0"},
    {"redis://[::1]/", "redis ::1:6379", "redis://[::1]:6379/0"},
    {"redis://[2001:DB8::1]:7000/3", "redis 2001:DB8::1:7000 db=3", "redis://[2001:DB8::1]:7000/3"},
    {"redis://[::ffff:127.0.0.1]", "redis ::ffff:127.0.0.1:6379",
     "redis://[::ffff:127.0.0.1]:6379/0"},
    {"redis://u:p@ss@[::1]:5", "redis user=u password=p@ss ::1:5", "redis://[::1]:5/0"},
    {"redis://[fe80::1%25eth0]", "redis fe80::1%eth0:6379", "redis://[fe80::1%25eth0]:6379/0"},
    {"redis://[fe80::1%eth0]:7", "redis fe80::1%eth0:7", "redis://[fe80::1%25eth0]:7/0"},
    {"unix:///run/r.sock", "unix path=/run/r.sock", "unix:///run/r.sock"},
    {"unix:///run/r.sock?db=2", "unix path=/run/r.sock db=2", "unix:///run/r.sock?db=2"},
    {"unix:///run/r.sock?db=0", "unix path=/run/r.sock", "unix:///run/r.sock"},
    {"unix:///run/r@a:b.sock", "unix path=/run/r@a:b.sock", "unix:///run/r@a:b.sock"},
    {"unix://:pw@/run/r.sock", "unix password=pw path=/run/r.sock", "unix:///run/r.sock"},
    {"unix://u:p@w@/r@x?db=9", "unix user=u password=p@w path=/r@x db=9", "unix:///r@x?db=9"},
    {"unix:///a%20b%3Fc%23%25%0a", "unix path=/a b?c#%\n", "unix:///a%20b%3Fc%23%25%0A"},
    {"unix:///a%2Fb", "unix path=/a/b", "unix:///a/b"},
    {"unix:////x", "unix path=//x", "unix:////x"},
    {"unix:///[::1]:5", "unix path=/[::1]:5", "unix:///[::1]:5"},
    {"valkey://u:p@h/2", "redis user=u password=p h:6379 db=2", "redis://h:6379/2"},
    {"valkeys://[::1]:7", "redis+tls ::1:7", "rediss://[::1]:7/0"},
    {"rediss://u:p@h/2", "redis+tls user=u password=p h:6379 db=2", "rediss://h:6379/2"},
    {"local:", "local", "local:"},
    {"sentinel://h/m", "sentinel h:26379 master=m", "sentinel://h:26379/m/0"},
    {"sentinels://:pw@h:1,[::1]:2,10.0.0.1/my%2Fmaster/3",
     "sentinel+tls password=pw h:1 ::1:2 10.0.0.1:26379 master=my/master db=3",
     "sentinels://h:1,[::1]:2,10.0.0.1:26379/my%2Fmaster/3"},
    {"cluster://u:pw@h,i:7001/", "cluster user=u password=pw h:6379 i:7001",
     "cluster://h:6379,i:7001"},
    {"clusters://h", "cluster+tls h:6379", "clusters://h:6379"},
    {"zookeeper://h,[::1]:2182", "zookeeper h:2181 ::1:2182", "zookeeper://h:2181,[::1]:2182"},
    {"zookeepers://u:pw@h/locks/j%25/", "zookeeper+tls user=u password=pw h:2181 path=locks/j%",
     "zookeepers://h:2181/locks/j%25"},
    {"postgresql://u:p?w@h/a%2fb", "postgresql user=u password=p?w h:5432 database=a/b",
     "postgresql://h:5432/a%2Fb"},
    {"postgres://u@h/d", "postgresql user=u password= h:5432 database=d", "postgresql://h:5432/d"},
    {"postgresql://u:p@a,b:5433,[::1]/d?table=t",
     "postgresql user=u password=p a:5432 b:5433 ::1:5432 database=d table=t",
     "postgresql://a:5432,b:5433,[::1]:5432/d?table=t"},
    {"mariadbs://a,a:1/d", "mariadb+tls a:3306 a:1 database=d", "mariadbs://a:3306,a:1/d"},
    {"mysql://u@/d?socket=/s", "mysql user=u password= path=/s database=d", "mysql:///d?socket=/s"},
    {"zookeeper://u@h", "zookeeper user=u password= h:2181", "zookeeper://h:2181"},
    {"mysqls://h:1/d?table=Locks_2", "mysql+tls h:1 database=d table=Locks_2",
     "mysqls://h:1/d?table=Locks_2"},
    {"mariadb:///d?socket=/run/my%26sql&table=t", "mariadb path=/run/my&sql database=d table=t",
     "mariadb:///d?socket=/run/my%26sql&table=t"},
    {"postgresql://u:@/d?host=/run/pg&port=5433",
     "postgresql user=u password= path=/run/pg database=d",
     "postgresql:///d?host=/run/pg&port=5433"},
    {"etcd://h", "etcd h:2379 database=", "etcd://h:2379"},
    {"etcds://u:p@a:1,[::1]/x%2Fy", "etcd+tls user=u password=p a:1 ::1:2379 database=x/y",
     "etcds://a:1,[::1]:2379/x/y"},
    {"etcd://u:?@h?margin=2s", "etcd user=u password=? h:2379 database= margin=2s",
     "etcd://h:2379?margin=2s"},
    {"etcd://h/x?margin=never", "etcd h:2379 database=x margin=never",
     "etcd://h:2379/x?margin=never"},
    {"exec:x", "exec database=", "exec:x"},
    {"git+ssh://git@h:22/a/b.git", "git+ssh database=ssh://git@h:22/a/b.git",
     "git+ssh://git@h:22/a/b.git"},
    {"git+file:///a/b.git", "git+file database=file:///a/b.git", "git+file:///a/b.git"},
    {"exec:a-b/c://d/%20?e#f", "exec database=c://d/%20?e#f", "exec:a-b/c://d/%20?e#f"},
};

#define NO_SCHEME "has no scheme (write redis://HOST or unix:///PATH)"
#define SUPPORTED "(rlock help options lists all)"
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
#define QUERY     "has a query or a fragment (a database of Redis is written /DB)"
#define NO_PATH   "has no path"
#define RELATIVE  "has a path that does not start with '/' (write unix:///PATH)"
#define HASH      "has a '#' in its path (write %23 for it)"
#define NO_MASTER "has no master's name (write sentinel://HOST:PORT/MASTER)"
#define OTHER     "has a query other than ?db=N"

static const struct {
    const char *fault;
    const char *const *texts;
} bad[] = {
    {"is empty", INPUTS("")},
    {"has no name of a program (write exec:NAME/REST)",
     INPUTS("exec:", "exec:/x", "exec:../x", "exec:a.b", "exec://a")},
    {"has no repository", INPUTS("git+file://")},
    {"has a space or a control character", INPUTS("exec:a/b c", "exec:a/b\n")},
    {"has a password, which a driver has to get in another way",
     INPUTS("exec:a/b://u:p@h/c", "git+https://u:p@h/c")},
    {NO_SCHEME, INPUTS(" ", "localhost", "localhost:6379", "redis:", "redis:/h", "redis:h",
                       "local:x", "/run/r.sock")},
    {"has an empty part in its path", INPUTS("zookeeper://h//a")},
    {"has a '.' or '..' in its path", INPUTS("zookeeper://h/a/../b")},
    {"has a password without a user", INPUTS("zookeeper://:pw@h")},
    {NO_HOST, INPUTS("zookeeper://h,/a", "redis://", "redis:///", "redis:///0", "redis://:6379",
                     "redis://:pw@", "redis://:pw@/0", "redis://u:pw@:6379/0", "sentinel:///m",
                     "sentinel://h,/m", "cluster://", "cluster://h,")},
    {"has an unknown scheme " SUPPORTED,
     INPUTS("://", "://h", "abcdefghijklmnopqrstu://h", ":pw@h://x", "\x1b[2J://x", "%s%n://x",
            "\xff://x")},
    {"has an unknown scheme (did you mean redis://?)",
     INPUTS("REDIS://h", " redis://h", "red is://h")},
    {"has the unknown scheme 'x' " SUPPORTED, INPUTS("x://h")},
    {"has the unknown scheme 'foo' " SUPPORTED, INPUTS("foo://:pw@h")},
    {"has the unknown scheme 'valkeyss' (did you mean valkeys://?)", INPUTS("valkeyss://h")},
    {"has the unknown scheme 'postgress' (did you mean postgres://?)", INPUTS("postgress://h/d")},
    {"has the unknown scheme 'redis+tls.v-1' " SUPPORTED, INPUTS("redis+tls.v-1://h")},
    {"has the unknown scheme 'abcdefghijklmnopqrst' " SUPPORTED,
     INPUTS("abcdefghijklmnopqrst://h")},
    {NO_NAME, INPUTS("redis://.", "rediss://..", "rediss://.h", "rediss://h..", "rediss://-h",
                     "sentinels://h,./m")},
    {BAD_HOST, INPUTS("redis://h h", "redis://h ", "redis://h\n", "redis://%6c", "redis://h%00",
                      "redis://h\xc3\xa9", "redis://\x1b[2J", "redis://h]", "redis://h\\x")},
    {BAD_PORT,
     INPUTS("redis://h:", "redis://h:/0", "redis://h:0", "redis://h:65536", "redis://h:-1",
            "redis://h:+1", "redis://h: 1", "redis://h:1 ", "redis://h:1x", "redis://h:0x50",
            "redis://h:redis", "redis://h:4294967297", "redis://h:99999999999999999999999",
            "redis://[::1]:", "redis://[::1]:0", "redis://[::1]:1:2", "sentinel://h,i:0/m")},
    {"has a '/' in its password (write %2F for it)",
     INPUTS("redis://:p/w@h", "redis://:12/3@h", "redis://u:p/w@h:6379/0", "sentinel://u:a/b@h/m",
            "unix://:p/w@/r.sock")},
    {"is in quotes; write it without them", INPUTS("\"redis://h\"", "'redis://h'", "\"redis://h")},
    {COLONS, INPUTS("redis://::1", "redis://::1:6379", "redis://h:1:2")},
    {BAD_DB, INPUTS("redis://h/x", "redis://h/1000000", "redis://h/-1", "redis://h/+1",
                    "redis://h/ 1", "redis://h/1 ", "redis://h/1/", "redis://h//1", "redis://h//",
                    "redis://h/1.5", "redis://h/%31", "redis://h/18446744073709551616",
                    "sentinel://h/m/x", "sentinel://h/m/0/1", "unix:///r?db=", "unix:///r?db=x",
                    "unix:///r?db=-1", "unix:///r?db=1000000", "unix:///r?db=1&db=2",
                    "unix:///r?db=1?db=2", "unix:///r?db=1/")},
    {QUERY,
     INPUTS("redis://h?", "redis://h?db=1", "redis://h/?db=1", "redis://h/0?db=1", "redis://h#",
            "redis://h/0#x", "redis://u:p@h/0?x", "sentinel://h/m?x", "mysql://h/d#")},
    {NOBODY, INPUTS("redis://@h")},
    {BAD_CODE, INPUTS("redis://u%@h", "redis://:p%@h", "redis://:p%4@h", "redis://:p%zz@h",
                      "redis://u%:p@h", "sentinel://h/m%", "unix://:%zz@/r.sock", "unix:///r%",
                      "unix:///r%2", "unix:///r%?db=1")},
    {NUL_CODE, INPUTS("redis://:%00@h", "redis://u%00:p@h", "unix:///r%00", "unix:///r%00.sock")},
    {"has a '[' without a ']'", INPUTS("redis://[::1", "redis://[", "redis://[/0]")},
    {BAD_IPV6, INPUTS("redis://[]", "redis://[localhost]", "redis://[127.0.0.1]", "redis://[::g]",
                      "redis://[::1%]", "redis://[::1%25]", "redis://[::1%25e 0]",
                      "redis://[::1%25e%]", "redis://[%25:]")},
    {"has something other than :PORT after its ']'",
     INPUTS("redis://[[::1]]", "redis://[::1]x", "redis://[::1]6379")},
    {"has the unknown scheme 'unixs' (did you mean unix://?)", INPUTS("unixs:///r")},
    {"has the unknown scheme 'local' (did you mean local:?)", INPUTS("local://")},
    {NO_MASTER, INPUTS("sentinel://h", "sentinel://h/", "sentinel://h//0")},
    {"has a path (a cluster has one database only)", INPUTS("cluster://h/0")},
    {"has no database's name (write SCHEME://HOST:PORT/DATABASE)", INPUTS("mysql://h")},
    {"has no host",
     INPUTS("mysql:///d", "postgresql://a,,b/d", "mysql://a,/d", "postgresql://,a/d")},
    {"has a host twice",
     INPUTS("postgresql://a,b,A/d", "mysql://a:3306,a/d", "postgresqls://[::1],[::1]:5432/d")},
    {"has a query other than ?table=NAME or, without HOST, ?socket=PATH",
     INPUTS("mysql://h/d?", "mysql://h/d?table=t&x", "mysql://h/d?host=/run", "mysql://h/d?Table=t",
            "mysql://h/d?table", "mariadb:///d?socket=/s&charset=utf8")},
    {"has a query other than ?table=NAME or, without HOST, ?host=DIR&port=PORT",
     INPUTS("postgresql://h/d?port=1", "postgresql:///d?port=1&host=/run",
            "postgres://h/d?application_name=x")},
    {"has a query about TLS (postgresqls:// is with TLS, postgresql:// without)",
     INPUTS("postgresql://h/d?sslmode=require", "postgres://h/d?table=t&sslrootcert=/ca",
            "postgresqls://h/d?sslmode=verify-full", "postgresql://h/d?sslmode=disable")},
    {"has a query about a time limit (there is the setting connect-timeout)",
     INPUTS("postgresql://h/d?connect_timeout=3", "mysql://h/d?connectTimeout=3000")},
    {"has a query about the kind of server (it must be one that takes writes)",
     INPUTS("postgresql://h/d?target_session_attrs=read-write",
            "postgresql://h/d?targetServerType=primary")},
    {"has a query with a user (write USER@ in front of HOST)", INPUTS("mysql://h/d?user=u")},
    {"has a query with a password (write USER:PASSWORD@ in front of HOST)",
     INPUTS("postgresql://h/d?password=p")},
    {"has a query about TLS (mysqls:// is with TLS, mysql:// without)",
     INPUTS("mysql://h/d?ssl-mode=REQUIRED", "mysql://h/d?tls", "mariadb://h/d?useSSL=true")},
    {"has a ?table= that is not of letters, digits and '_'",
     INPUTS("mysql://h/d?table=", "mysql://h/d?table=a-b", "mysql://h/d?table=a%5fb")},
    {"has a ?margin= that is neither a duration nor \"never\"",
     INPUTS("etcd://h?margin=", "etcd://h?margin=-1s", "etcd://h/x?margin=always")},
    {"has a query other than ?margin=DURATION or ?margin=never",
     INPUTS("etcd://h?", "etcd://h?margin", "etcd://h/x?table=t")},
    {"has a ?table= longer than 53 characters", INPUTS("mysql://h/d?table=" FIFTY "1234")},
    {"has a path of a Unix socket that does not start with '/'", INPUTS("mysql:///d?socket=run")},
    {"has a '%' without two hexadecimal digits (write %25 for it)", INPUTS("mysql:///d?socket=/%")},
    {"has a path of a Unix socket that is too long", INPUTS("mysql:///d?socket=/" FIFTY FIFTY)},
    {"has a host, and the path of a Unix socket as well",
     INPUTS("mysql://h/d?socket=/run", "mysql://h,i/d?socket=/run")},
    {"has a Unix socket, which takes no TLS", INPUTS("mysqls:///d?socket=/run")},
    {"has a ?port= that is not a number from 1 to 65535",
     INPUTS("postgresql:///d?host=/run&port=0")},
    {"has more than 16 hosts", INPUTS("cluster://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
                                      "mysql://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/d")},
    {NO_PATH, INPUTS("unix://", "unix:///", "unix:///?db=1", "unix://:pw@", "unix://:pw@/")},
    {RELATIVE,
     INPUTS("unix://run/r.sock", "unix://r.sock", "unix://localhost/run/r.sock", "unix://./r.sock",
            "unix://:pw@r.sock", "unix://?db=1", "unix://%2Frun/r.sock")},
    {HASH, INPUTS("unix:///r#x", "unix:///r?db=1#x")},
    {OTHER,
     INPUTS("unix:///r?", "unix:///r?x", "unix:///r?db", "unix:///r?DB=1", "unix:///r?x=1&db=1")},
};

#define NO_SPAN ((size_t)-1)

static const struct {
    const char *text;
    const char *password; /* its bytes as given */
} spans[] = {
    {"redis://:pw@h", "pw"},
    {"redis://u:pw@h/0", "pw"},
    {"redis://u:p@w@h/0", "p@w"},
    {"redis://:p%40w@h", "p%40w"},
    {"redis://u:a:b@h:1", "a:b"},
    {"redis://:@h", ""},
    {"unix://:pw@/a:b@c", "pw"},
    {"rediss://:pw@h", "pw"},
    {"valkeys://:pw@h", "pw"},
    {"sentinel://u:pw@h:1,i:2/m/0", "pw"},
    /* refused ones: rather too much */
    {"redis://:p%zz@h", "p%zz"},
    {"redis://:p/w@h", "p/w"},
    {"redis://:p@s/w@h/0", "p@s/w"},
    {"redis://u:pw@", "pw"},
    {"redis://secret@h:x", "secret"},
    {"\xff\x01://u:\x1b@h", "\x1b"},
    {"redis://:pw@redis://:pw@h", "pw@redis://:pw"},
};

static const char *const *const no_spans =
    INPUTS("redis://h", "redis://h:1/2", "redis://[::1]:1", "unix:///a:b@c", "", "localhost",
           ":pw@h", "://", "redis://@h", "sentinel://h:1,i:2/m/0", "local:", "redis://u@h");

/* All of the URL but its text; "none" if it is empty. The caller frees. */
static char *describe(const struct url *url)
{
    struct strbuf out = {0};
    const struct {
        const char *name, *value;
    } after[] = {{"path", url->path},
                 {"master", url->master},
                 {"database", url->database},
                 {"table", url->table},
                 {"margin", url->margin}};

    strbuf_printf(&out, "%s%s", url->kind ? url->kind->scheme : "none", url->tls ? "+tls" : "");
    if (url->user)
        strbuf_printf(&out, " user=%s", url->user);
    if (url->password)
        strbuf_printf(&out, " password=%s", url->password);
    for (size_t i = 0; i < url->host_count; i++)
        strbuf_printf(&out, " %s:%d", url->hosts[i].name, url->hosts[i].port);
    for (size_t i = 0; i < COUNT(after); i++)
        if (after[i].value)
            strbuf_printf(&out, " %s=%s", after[i].name, after[i].value);
    if (url->db)
        strbuf_printf(&out, " db=%d", url->db);
    return strbuf_detach(&out);
}

/* A parsed URL is described as wanted. */
static void check(const struct url *url, const char *wanted, const char *what, const char *text)
{
    char *got = describe(url);

    tap_is(got, wanted, what, text);
    free(got);
}

/* Each address is read, shown without its password, and what is shown leads to the same place. */
static void test_good(void)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct url url, again;
        char fault[300] = "", shown[200];

        if (!url_parse(good[i].text, &url, fault, sizeof(fault))) {
            tap_is(fault, NULL, "url_parse", good[i].text);
            continue;
        }
        check(&url, good[i].wanted, "url_parse", good[i].text);
        url_print(&url, shown, sizeof(shown));
        tap_is(shown, good[i].shown, "url_print of", good[i].text);
        url.user = url.password = NULL;
        if (tap_ok(url_parse(shown, &again, fault, sizeof(fault)), "which can be parsed")) {
            char *place = describe(&url);
            check(&again, place, "and is the same place", shown);
            free(place);
            url_free(&again);
        }
        url_free(&url);
    }
}

/* A URL is refused with that message, and nothing of it is left. */
static void test_bad(const char *text, const char *wanted)
{
    struct url url;
    char fault[300] = "nothing said";

    memset(&url, 'x', sizeof(url));
    bool parsed = url_parse(text, &url, fault, sizeof(fault));
    tap_is(parsed ? "accepted" : fault, wanted, "url_parse", text);
    if (!parsed)
        check(&url, url.text ? "without a text" : "none", "and leaves the url empty", text);
    url_free(&url);
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

/* Addresses at the limits of their parts' lengths are read; those beyond, and of a million
 * bytes, are refused in words that fit their room. */
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

/* The part of an address that is its password, NULL if it has none. */
static void test_span(const char *text, const char *wanted)
{
    size_t start = NO_SPAN, length = NO_SPAN;
    char *password = NULL;

    if (url_password_span(text, &start, &length))
        password = strndup(text + start, length);
    tap_is(password, wanted, "url_password_span", text);
    free(password);
}

int main(void)
{
    test_good();
    for (size_t i = 0; i < COUNT(bad); i++)
        EACH(text, bad[i].texts)
            test_bad(*text, bad[i].fault);
    test_sizes();
    for (size_t i = 0; i < COUNT(spans); i++)
        test_span(spans[i].text, spans[i].password);
    EACH(text, no_spans)
        test_span(*text, NULL);
    return tap_done();
}
