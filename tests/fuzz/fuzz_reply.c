/* Any reply of a server, to any question: it is turned into an answer that makes sense, which can
 * be computed with and shown. */
#include "base/strbuf.h"
#include "cli/render.h"
#include "cmd/render_doctor.h"
#include "cmd/render_latch.h"

#include "fuzz.h"
#include "rules/answer.h"
#include "rules/latch.h"
#include "rules/reply.h"
#include "store/cluster/map.h"
#include "store/redis/greeting.h"
#include "store/redis/doctor/checkup.h"
#include "store/redis/store.h"

#include <hiredis/hiredis.h>

static struct strbuf paper;

static void check_answer(const struct answer *answer)
{
    MUST(answer->verdict <= VERDICT_UNKNOWN && answer->cause <= CAUSE_UNREACHABLE);
    MUST((answer->verdict == VERDICT_GRANTED) == (answer->cause == CAUSE_NONE));
    MUST(strnlen(answer->text, sizeof answer->text) < sizeof answer->text);
    /* The other causes say all there is to say. */
    MUST(*answer->text || (answer->cause != CAUSE_MISFIT && answer->cause < CAUSE_GRACE));
    MUST(answer->refused.left_ms >= 0 && answer->refused.left_ms <= REDIS_SPAN_MAX);
    MUST(answer->grace_ms >= 0 && answer->grace_ms <= REDIS_SPAN_MAX);
    MUST(answer->refused.key < LOCK_KEYS_MAX);
    MUST(answer->refused.position >= 0 && answer->refused.position <= REDIS_NUMBER_MAX);
    MUST(answer->refused.holders >= 0 && answer->refused.holders <= REDIS_NUMBER_MAX);
    for (size_t i = 0; answer->granted.grants && i < LOCK_KEYS_MAX; i++)
        MUST(answer->granted.grants[i].fence <= REDIS_NUMBER_MAX &&
             answer->granted.grants[i].slot <= LOCK_LIMIT_MAX);
}

static void try_script(const redisReply *reply)
{
    struct answer answer;
    struct redis_extra extra;

    redis_answer_script(reply, &answer, &extra);
    check_answer(&answer);
    MUST(extra.now_ms >= 0 && extra.now_ms <= REDIS_CLOCK_MAX);
    MUST(extra.seniority.memory_ms >= 0 && extra.seniority.memory_ms <= REDIS_SPAN_MAX);
    MUST(extra.seniority.service_ms >= 0 && extra.seniority.service_ms <= REDIS_SPAN_MAX);
    if (reply->type == REDIS_REPLY_ERROR)
        MUST(answer.verdict != VERDICT_GRANTED);
}

static void show(void *arg, const struct lock_view *view)
{
    const struct render_style style = {.color = true, .width = 100};

    (void)arg;
    MUST(view->fence <= REDIS_NUMBER_MAX && view->limit <= LOCK_LIMIT_MAX);
    render_table(&paper, view, 1, &style);
    render_long(&paper, view, 1, &style);
    strbuf_cut(&paper, 0);
}

static void try_inspect(const redisReply *reply)
{
    struct answer answer;

    redis_answer_inspect(reply, "key", show, NULL, &answer);
    check_answer(&answer);
}

static void try_latch(const redisReply *reply)
{
    struct answer answer;
    struct latch_ids ids = {0};
    int64_t now_ms;

    redis_latch_answer(reply, latch_ids_add, &ids, &answer, &now_ms);
    check_answer(&answer);
    MUST(now_ms >= 0 && now_ms <= REDIS_CLOCK_MAX);
    if (answer.verdict == VERDICT_GRANTED) {
        MUST(answer.granted.latch.left >= 0 &&
             answer.granted.latch.left <= answer.granted.latch.number);
        MUST(answer.granted.latch.ttl_ms > 0 && answer.granted.latch.ttl_ms <= REDIS_SPAN_MAX);
        render_latch(&paper, "key", &answer.granted.latch, &ids);
        strbuf_cut(&paper, 0);
    }
    latch_ids_free(&ids);
}

/* As the answer to each step. */
static void try_greeting(const redisReply *reply, bool member)
{
    const struct url url = {.kind = &redis_kind, .db = 1};
    struct redis_greeting greeting;
    struct answer answer;
    struct strbuf bytes = {0};

    redis_greeting_begin(&greeting, &url, "secret", member ? "rlock" : "", member, &bytes);
    strbuf_free(&bytes);
    for (int first = greeting.step; first < 8; first++) {
        answer = (struct answer){0};
        greeting.step = first;
        enum greeting_state state = redis_greeting_hear(&greeting, reply, &answer);
        MUST((state == GREETING_REFUSED) == (*answer.text != '\0'));
        MUST(greeting.clock_ms >= 0 && greeting.clock_ms <= REDIS_CLOCK_MAX);
        if (state == GREETING_DONE)
            break;
    }
}

static void try_facts(const redisReply *reply)
{
    const struct url url = {.kind = &redis_kind};
    const struct requirements requirements = {.url = &url, .prefix = "p", .lease = 30 * NS_PER_SEC};
    const struct render_style style = {.width = 80};
    static struct checked_server server;
    const struct checkup checkup = {.servers = &server, .count = 1};
    struct server_facts facts = {.reached = true};

    memset(&server, 0, sizeof server);
    redis_facts_hello(&facts, reply);
    redis_facts_info(&facts, reply);
    redis_facts_setting(&facts, "maxmemory", reply);
    redis_facts_setting(&facts, "save", reply);
    judge_server(&facts, &requirements, &server.diagnosis);
    render_doctor(&paper, &checkup, &style);
    strbuf_cut(&paper, 0);
}

/* Takes the reply as the nodes of a Cluster. */
static void try_cluster(const redisReply *reply)
{
    struct cluster_map *map = &(struct cluster_map){0};
    struct cluster_redirection redirection;

    cluster_map_read(map, reply, "asked");
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        size_t node = cluster_map_find(map, slot);
        MUST(node == CLUSTER_NOWHERE || node < map->node_count);
    }
    if (reply->type == REDIS_REPLY_ERROR && cluster_redirection_read(reply->str, &redirection))
        MUST(redirection.slot < CLUSTER_SLOTS && redirection.to.port > 0 &&
             redirection.to.port < 65536);
    cluster_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    MUST(reader);
    redisReaderFeed(reader, (const char *)data, size);
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        try_script(reply);
        try_inspect(reply);
        try_latch(reply);
        try_greeting(reply, false);
        try_greeting(reply, true);
        try_facts(reply);
        try_cluster(reply);
        freeReplyObject(reply);
        reply = NULL;
    }
    redisReaderFree(reader);
    return 0;
}
