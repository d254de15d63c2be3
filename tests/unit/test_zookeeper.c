/* ZooKeeper's messages, the nodes of locks, and who holds a lock by the names of its children. */

#include "base/clock.h"
#include "store/zookeeper/operation.h"
#include "store/zookeeper/store_kind.h"
#include "tap.h"

#define A "0000000a-0000-4000-8000-000000000000"
#define B "0000000b-0000-4000-8000-000000000000"
#define C "0000000c-0000-4000-8000-000000000000"
#define D "0000000d-0000-4000-8000-000000000000"

#define LOCK(uuid, number)  "_c_" uuid "-lock-" number
#define WRITE(uuid, number) "_c_" uuid "-__WRIT__" number
#define READ(uuid, number)  "_c_" uuid "-__READ__" number

#define NAMES_MAX 8

/* -- keys as nodes ----------------------------------------------------------------------------- */

static const struct {
    const char *key, *name;
} paths[] = {
    {"backup", "backup"},
    {"a:b.c", "a:b.c"},
    {"a/b", "a%2Fb"},
    {"a%b", "a%25b"},
    {".", "%2E"},
    {"..", "%2E."},
    {"...", "..."},
    {"zookeeper", "%7Aookeeper"},
    {"zookeepers", "zookeepers"},
    {"h\xc3\xa9", "h\xc3\xa9"},
    {"\xed\x9f\xbf", "\xed\x9f\xbf"},     /* U+D7FF */
    {"\xee\x80\x80", "%EE%80%80"},        /* U+E000 */
    {"\xf0\x9f\x94\x92", "%F0%9F%94%92"}, /* a surrogate pair in Java */
};

/* A KEY becomes the name of a node that ZooKeeper accepts, and is read back from that; other names
 * lead to no KEY. */
static void test_paths(void)
{
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct jute_text name = {paths[i].name, strlen(paths[i].name)};
        char *path = zk_path_of_key("/f", paths[i].key), *key = zk_path_to_key(name);
        bool there = strncmp(path, "/f/", 3) == 0 && strcmp(path + 3, paths[i].name) == 0;
        if (!tap_ok(there && key && strcmp(key, paths[i].key) == 0, "node of %s", paths[i].key))
            tap_note("%s, back: %s", path, key ? key : "none");
        free(path);
        free(key);
    }
    EACH(name, INPUTS("%2", "%41", "a b", "%2f", "")) {
        char *key = zk_path_to_key((struct jute_text){*name, strlen(*name)});
        tap_ok(!key, "no key's: '%s'", *name);
        free(key);
    }
}

/* -- who holds a lock -------------------------------------------------------------------------- */

/* For each child, in the order of the list: 'H' for one that holds the lock, and otherwise the
 * index of the child that is in its way. */
static const struct {
    const char *what;
    const char *judged; /* in the order of numbers */
    size_t holders;
    const char *names[NAMES_MAX + 1];
} queues[] = {
    ROW("none", "", 0, {NULL}),
    ROW("a writer's two nodes are one", "HH", 1, {LOCK(A, "0000000000"), WRITE(A, "0000000001")}),
    ROW("the second waits for the first", "HH1-", 1,
        {WRITE(B, "0000000003"), LOCK(B, "0000000002"), LOCK(A, "0000000000"),
         WRITE(A, "0000000001")}),
    ROW("readers share", "HH", 2, {READ(A, "0000000000"), READ(B, "0000000001")}),
    ROW("a reader behind a writer behind a reader", "H0-2", 1,
        {READ(A, "0000000000"), LOCK(B, "0000000001"), WRITE(B, "0000000002"),
         READ(C, "0000000003")}),
    ROW("a writer behind readers", "HH1", 2,
        {READ(A, "0000000000"), READ(B, "0000000001"), LOCK(C, "0000000002")}),
    ROW("nested in a writer: before the waiters", "HHHH3", 2,
        {LOCK(A, "0000000000"), WRITE(A, "0000000001"), LOCK(C, "0000000002"),
         LOCK(B, "0000000000"), WRITE(B, "0000000000")}),
    ROW("numbers that overflow", "H01", 1,
        {LOCK(A, "2147483647"), LOCK(B, "-2147483648"), LOCK(C, "-2147483647")}),
    ROW("negative numbers of nine digits", "H01", 1,
        {WRITE(A, "-000000002"), WRITE(B, "-000000001"), WRITE(C, "0000000000")}),
    ROW("kazoo's and go-zookeeper's", "H0", 1,
        {"0000000a0000400080000000000000ff__lock__0000000000",
         "_c_0000000b0000400080000000000000ff-lock-0000000001"}),
    ROW("without a UUID", "H0", 1, {"lock-0000000000", "lock-0000000001"}),
    ROW("names of no contender", "H", 1, {"jobs", "locks", "lock-12", LOCK(A, "0000000007")}),
};

static struct jute_in bytes_of(const struct strbuf *out)
{
    return (struct jute_in){out->text, out->text + out->size, false};
}

/* Names up to NULL as the reply about a node's children. */
static struct zk_reply put_children(const char *const *names, struct strbuf *out)
{
    int32_t count = 0;

    while (names[count])
        count++;
    jute_put_int(out, count);
    for (int32_t i = 0; i < count; i++)
        jute_put_string(out, names[i]);
    return (struct zk_reply){.body = bytes_of(out)};
}

static void judge(const struct zk_queue *queue, char *judged)
{
    for (size_t i = 0; i < queue->count; i++) {
        const struct zk_contender *one = &queue->all[i], *other = zk_queue_in_the_way(queue, one);
        judged[i] = one->holds             ? 'H'
                    : !one->first_of_party ? '-'
                    : !other               ? '?'
                                           : (char)('0' + (other - queue->all));
    }
    judged[queue->count] = '\0';
}

/* The names of a lock's children tell who holds it, who waits, and who is foreign. */
static void test_queues(void)
{
    for (size_t i = 0; i < COUNT(queues); i++) {
        struct strbuf out = {0};
        struct zk_reply reply = put_children(queues[i].names, &out);
        struct zk_queue queue;
        char judged[NAMES_MAX + 1] = "";
        bool sound = zk_queue_read(&reply, ZK_PLAIN, &queue) == ZK_OK;
        judge(&queue, judged);
        if (!tap_ok(sound && strcmp(judged, queues[i].judged) == 0 &&
                        zk_queue_holders(&queue) == queues[i].holders,
                    "%s", queues[i].what))
            tap_note("%s, %zu holders", judged, zk_queue_holders(&queue));
        zk_queue_free(&queue);
        strbuf_free(&out);
    }
}

static const char *const *const a_and_b = INPUTS(LOCK(A, "0000000000"), LOCK(B, "0000000001"));

/* An ancestor in the queue is one that holds the lock and whose token begins the other's. */
static void test_ancestors(void)
{
    struct strbuf out = {0};
    struct zk_reply reply = put_children(a_and_b, &out);
    struct zk_queue queue;

    zk_queue_read(&reply, ZK_PLAIN, &queue);
    const struct zk_contender *one = zk_queue_ancestor(&queue, C "." A "." D);
    tap_ok(one && strcmp(one->uuid, A) == 0, "an ancestor that holds it");
    tap_ok(!zk_queue_ancestor(&queue, B "." D), "one that waits is none");
    tap_ok(!zk_queue_ancestor(&queue, A), "oneself is none");
    tap_ok(zk_queue_position(&queue, zk_queue_find(&queue, B)) == 1, "the first that waits");
    zk_queue_free(&queue);
    strbuf_free(&out);
}

/* -- what is in a node ------------------------------------------------------------------------- */

/* The data of a contender's node are read back as printed; a foreign program's are not taken
 * for them. */
static void test_data(void)
{
    struct zk_node_data data = {.mode = LOCK_SHARED, .fence = 77, .lease = 30 * NS_PER_SEC}, back;

    strcpy(data.owner, A "." B);
    memset(data.password, 0xe1, sizeof data.password);
    data.ancestors[0] = 12;
    data.ancestors[2] = INT64_MAX;
    data.who = "host user 12 make -";
    data.who_size = strlen(data.who);
    char *text = zk_node_data_print(&data);
    bool parsed = zk_node_data_parse((struct jute_text){text, strlen(text)}, &back);
    tap_ok(parsed && strcmp(back.owner, data.owner) == 0 && back.mode == data.mode &&
               back.fence == 77 && back.lease == data.lease &&
               memcmp(back.password, data.password, sizeof data.password) == 0 &&
               memcmp(back.ancestors, data.ancestors, sizeof data.ancestors) == 0 &&
               back.who_size == data.who_size && memcmp(back.who, data.who, data.who_size) == 0,
           "data comes back");
    free(text);
    tap_ok(!zk_node_data_parse((struct jute_text){"10.0.0.1", 8}, &back), "Curator's is not ours");
    tap_ok(!zk_node_data_parse((struct jute_text){"", 0}, &back), "nor is nothing");
}

/* -- semaphores -------------------------------------------------------------------------------- */

/* slots: that of each lease; 0: it is of another program, '-': it has gone. */
static const struct {
    const char *what, *slots;
    unsigned taken, slot;
} rooms[] = {
    {"none", "", 0, 1},
    {"the lowest slot that is free", "13", 2, 2},
    {"those that are taken need not be in order", "321", 3, 4},
    {"an owner that nests has its holder's slot", "1122", 2, 3},
    {"other programs have none, but count", "0200", 4, 1},
    {"a lease that has gone does not count", "-1-", 1, 2},
};

static void put_lease(struct strbuf *out, char slot)
{
    struct zk_node_data data = {
        .mode = LOCK_LIMIT, .limit = 3, .slot = (unsigned)(slot - '0'), .owner = A, .who = ""};
    char *text = slot == '0' ? strdup("10.0.0.1") : zk_node_data_print(&data);

    jute_put_string(out, text);
    for (int i = 0; i < 4 + 1 + 1 + 1; i++) /* the node's state */
        jute_put_long(out, 0);
    for (int i = 0; i < 3; i++)
        jute_put_int(out, 0);
    free(text);
}

/* How many leases of a semaphore are taken, and the lowest slot that is free, by the data of their
 * nodes. */
static void test_rooms(void)
{
    for (size_t i = 0; i < COUNT(rooms); i++) {
        struct strbuf outs[NAMES_MAX] = {{0}};
        struct zk_reply replies[NAMES_MAX] = {{0}};
        size_t count = strlen(rooms[i].slots);
        for (size_t j = 0; j < count; j++) {
            put_lease(&outs[j], rooms[i].slots[j]);
            replies[j].error = rooms[i].slots[j] == '-' ? ZK_NO_NODE : ZK_OK;
            replies[j].body = bytes_of(&outs[j]);
        }
        struct zk_room room = zk_leases_room(replies, count);
        bool ours = strpbrk(rooms[i].slots, "123");
        if (!tap_ok(room.taken == rooms[i].taken && room.slot == rooms[i].slot &&
                        room.limit == (ours ? 3 : 0),
                    "%s", rooms[i].what))
            tap_note("%u taken, slot %u, limit %u", room.taken, room.slot, room.limit);
        for (size_t j = 0; j < count; j++)
            strbuf_free(&outs[j]);
    }
}

/* Data of a node with a mode or a fence that is none is refused. */
static void test_damaged(const char *what, const char *mode, const char *fence)
{
    struct zk_node_data back;
    char text[200];

    snprintf(text, sizeof text, "rlock/1 %s %s %s 9000 00000000000000000000000000000000 -", A, mode,
             fence);
    tap_ok(!zk_node_data_parse((struct jute_text){text, strlen(text)}, &back), "no %s: %s %s", what,
           mode, fence);
}

/* -- messages ---------------------------------------------------------------------------------- */

/* A frame is read when all of it is there; a negative or too large length is an error. */
static void test_frames(void)
{
    static const char whole[] = {0, 0, 0, 2, 'a', 'b', 'c'};
    static const char negative[] = {-1, -1, -1, -1}, large[] = {127, 0, 0, 0};
    struct jute_in frame;

    tap_ok(jute_frame(whole, 7, &frame) == 6 && frame.end - frame.at == 2, "a frame");
    tap_ok(jute_frame(whole, 5, &frame) == 0 && jute_frame(whole, 3, &frame) == 0, "a part of one");
    tap_ok(jute_frame(negative, 4, &frame) < 0 && jute_frame(large, 4, &frame) < 0,
           "lengths that are none");
}

/* A transaction's reply, as 3.8 sends it. */
static void test_multi(void)
{
    struct strbuf out = {0};
    struct zk_result result;
    size_t index;

    jute_put_int(&out, 1);
    jute_put_bool(&out, false);
    jute_put_int(&out, 0);
    jute_put_string(&out, "/k/n");
    for (int i = 0; i < 2; i++) {
        jute_put_int(&out, -1);
        jute_put_bool(&out, false);
        jute_put_int(&out, i ? -2 : -101);
        jute_put_int(&out, i ? -2 : -101);
    }
    jute_put_int(&out, -1);
    jute_put_bool(&out, true);
    jute_put_int(&out, -1);
    struct zk_reply reply = {.body = bytes_of(&out)};
    struct jute_in in = reply.body;
    tap_ok(zk_next_result(&in, &result) && result.path.size == 4, "the path of what was created");
    tap_ok(zk_multi_error(&reply, &index) == ZK_NO_NODE && index == 1, "which operation failed");
    reply.body.end -= 9;
    tap_ok(zk_multi_error(&reply, &index) == ZK_NO_NODE, "the same without an end");
    reply.body.end = reply.body.at + 11;
    tap_ok(zk_multi_error(&reply, &index) == ZK_MARSHALLING, "a transaction that is cut");
    strbuf_free(&out);
}

/* A session is read from the server's greeting, with and without the byte for read-only; a
 * greeting that is cut is refused. */
static void test_connected(void)
{
    struct strbuf out = {0};
    struct zk_identity session = {0};
    int32_t timeout;

    jute_put_int(&out, 0);
    jute_put_int(&out, 4000);
    jute_put_long(&out, 42);
    jute_put_buffer(&out, "0123456789abcdef", ZK_PASSWORD_SIZE);
    struct jute_in in = bytes_of(&out);
    tap_ok(zk_read_connected(&in, &session, &timeout) && session.id == 42 && timeout == 4000,
           "a session, of a server that does not say whether it is read-only");
    in = bytes_of(&out);
    in.end--;
    tap_ok(!zk_read_connected(&in, &session, &timeout), "one that is cut");
    memset(out.text + 4, 0, 4);
    in = bytes_of(&out);
    tap_ok(zk_read_connected(&in, &session, &timeout) && session.id == 0, "one that has ended");
    strbuf_free(&out);
}

/* -- siblings ---------------------------------------------------------------------------------- */

/* A contender of a family: W writes, R reads; the orders of its ancestors, if it has some. */
#define KIN(holds, id, order, ...)                                                                 \
    {                                                                                              \
        .data = {.owner = (id), .mode = (holds), .ancestors = {__VA_ARGS__}}, .since = (order)     \
    }
#define W(owner, order)           KIN(LOCK_EXCLUSIVE, owner, order, 0)
#define R(owner, order)           KIN(LOCK_SHARED, owner, order, 0)
#define WITHIN(owner, order, ...) KIN(LOCK_EXCLUSIVE, owner, order, __VA_ARGS__)

static const struct {
    const char *what;
    size_t own;
    int in_the_way; /* -1: none */
    struct zk_nested all[4];
} families[] = {
    ROW("an ancestor", 1, -1, {W(A, 1), W(A "." B, 2)}),
    ROW("a descendant", 0, -1, {W(A, 1), W(A "." B, 2)}),
    ROW("an ancestor sibling", 2, 1, {W(A, 1), W(A "." B, 2), W(A "." C, 3)}),
    ROW("a younger sibling", 1, -1, {W(A, 1), W(A "." B, 2), W(A "." C, 3)}),
    ROW("two readers", 2, -1, {W(A, 1), R(A "." B, 2), R(A "." C, 3)}),
    ROW("a reader and a writer", 2, 1, {W(A, 1), R(A "." B, 2), W(A "." C, 3)}),
    ROW("who is within an ancestor sibling", 1, 2,
        {W(A "." B, 2), W(A "." C, 3), WITHIN(A "." B "." D, 5, 1, 2)}),
    ROW("who waits for one's own ancestor", 2, -1,
        {W(A "." B, 2), W(A "." C, 3), WITHIN(A "." B "." D, 5, 1, 2)}),
    ROW("who is within an ancestor sibling that has gone", 0, 1,
        {W(A "." C, 3), WITHIN(A "." B "." D, 5, 1, 2)}),
    ROW("who waited for one's own ancestor, which has gone", 1, -1,
        {W(A "." C, 3), WITHIN(A "." B "." D, 5, 1, 2)}),
    ROW("who came before, when there was no ancestor", 1, 0,
        {W(A "." C, 3), WITHIN(A "." B "." D, 5, 1)}),
    ROW("one of another family", 1, -1, {W(D, 1), W(A "." B, 2)}),
    ROW("siblings further in", 1, 2,
        {W(A "." B, 2), WITHIN(A "." B "." C, 7, 1, 2), WITHIN(A "." B "." D, 6, 1, 2)}),
};

/* Which relative is in the way of an owner that nests: an older sibling, or who is within one,
 * unless both read. */
static void test_families(void)
{
    for (size_t i = 0; i < COUNT(families); i++) {
        const struct zk_nested *all = families[i].all;
        size_t count = 0;
        while (count < COUNT(families[i].all) && *all[count].data.owner)
            count++;
        const struct zk_nested *other = zk_nested_in_the_way(all, count, families[i].own);
        int seen = other ? (int)(other - all) : -1;
        if (!tap_ok(seen == families[i].in_the_way, "in the way of a relative: %s",
                    families[i].what))
            tap_note("%d", seen);
    }
}

/* -- surveys ----------------------------------------------------------------------------------- */

struct looked {
    size_t views, holders, waiters;
    bool unread;
    int64_t age_ms;
};

static void look_at(void *arg, const struct lock_view *view)
{
    struct looked *looked = arg;

    looked->views++;
    looked->holders = view->holder_count;
    looked->waiters = view->waiter_count;
    looked->unread = view->holder_count > 0 && view->holders[0].unread;
    looked->age_ms = view->holder_count > 0 ? view->holders[0].age_ms : 0;
}

static void told(void *arg, const struct answer *answer)
{
    struct answer *copy = arg;

    *copy = *answer;
}

/* The lock of A, for which B waits; of A's node the server says "error" when its data is asked for.
 * The replies come without a server. Returns whether the survey is answered. */
static bool survey(int error, const char *pattern, struct looked *looked)
{
    const struct survey_request request = {
        .patterns = &pattern, .pattern_count = 1, .each = look_at, .each_arg = looked};
    const struct url url = {.kind = &zookeeper_kind, .hosts = {{"127.0.0.1", 1}}, .host_count = 1};
    const struct store_address address = {.urls = &url, .url_count = 1, .prefix = "f"};
    struct strbuf key = {0}, children = {0}, data = {0};
    struct answer answer = {.verdict = VERDICT_REFUSED};
    struct loop *loop = loop_new();
    char fault[100];
    struct store *base = store_open(loop, &address, fault, sizeof fault);
    struct zk_store *store = zk_store_of(base);
    struct zk_reply list = put_children(INPUTS("k"), &key);
    const struct zk_reply branches[] = {
        put_children(a_and_b, &children), {.error = ZK_NO_NODE}, {.error = ZK_NO_NODE}};

    *looked = (struct looked){0};
    put_lease(&data, '1');
    const struct zk_reply replies[] = {{.error = error}, {.body = bytes_of(&data)}};
    const struct zk_reply *const answers[] = {&list, branches, replies};
    store_start(base, &(struct operation){.verb = VERB_SURVEY,
                                          .survey = &request,
                                          .until = MOMENT_NEVER,
                                          .done = told,
                                          .arg = &answer});
    for (size_t i = strchr(pattern, '*') ? 0 : 1; i < 3; i++) {
        zk_session_send_nowait(store->session); /* ends the step under way */
        store->hear(store, answers[i]);
    }
    store_close(base);
    loop_free(loop);
    strbuf_free(&key);
    strbuf_free(&children);
    strbuf_free(&data);
    return answer.verdict == VERDICT_GRANTED;
}

/* A lock that changes while it is looked at: a node that has gone or may not be read is left
 * out or shown without its age; any other error ends the survey. */
static void test_surveys(void)
{
    struct looked looked;

    tap_ok(survey(ZK_NO_NODE, "*", &looked) && looked.views == 1 && looked.holders == 0 &&
               looked.waiters == 1,
           "a lock that ends during the look has no holder");
    tap_ok(survey(ZK_NO_AUTH, "k", &looked) && looked.holders == 1 && looked.unread &&
               looked.age_ms == 0,
           "a holder whose node may not be read has no age");
    tap_ok(!survey(ZK_MARSHALLING, "k", &looked) && looked.views == 0,
           "any other error ends the survey");
}

int main(void)
{
    test_paths();
    test_queues();
    test_ancestors();
    test_families();
    test_data();
    test_rooms();
    EACH(fence, INPUTS("", "x", "7:", "7:x", "7:1:", "7;1", "7:-1",
                       "7:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17"))
        test_damaged("ancestors", "shared", *fence);
    EACH(mode, INPUTS("limit", "limit:3", "limit:0:1", "limit:3:x"))
        test_damaged("mode", *mode, "0");
    test_surveys();
    test_frames();
    test_multi();
    test_connected();
    return tap_done();
}
