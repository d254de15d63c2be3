/* Decimal numbers of others, and those in a server's replies: which text is which number.
 * H130 */
#include "base/decimal.h"
#include "rules/reply.h"
#include "store/redis/doctor/checkup.h"
#include "store/redis/greeting.h"

#include "replies.h"
#include "tap.h"

#define MOST       REDIS_NUMBER_MAX
#define DIGITS_50  "99999999999999999999999999999999999999999999999999"
#define DIGITS_400 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50

static const struct {
    const char *text;
    int64_t most;
    int64_t read, size; /* -1: none */
} texts[] = {
    {"0", MOST, 0, 0},
    {"7", MOST, 7, 7},
    {"007", MOST, 7, 7},
    {"10", 9, -1, 9},
    {"9", 9, 9, 9},
    {"0", 0, 0, 0},
    {"1", 0, -1, 0},
    {"9007199254740991", MOST, MOST, MOST},
    {"9007199254740992", MOST, -1, MOST},
    {"9223372036854775807", INT64_MAX, INT64_MAX, INT64_MAX},
    {"9223372036854775808", INT64_MAX, -1, INT64_MAX},
    {"18446744073709551616", INT64_MAX, -1, INT64_MAX},
    {DIGITS_400, INT64_MAX, -1, INT64_MAX},
};

/* All functions that read a number agree about a text, and none reads more than "most". */
static void test_text(const char *text, int64_t most, int64_t wanted, int64_t size)
{
    const char *rest = text;
    int64_t read = -1, taken = -1, parsed = -1, none = -1;
    size_t digits = strspn(text, "0123456789");

    /* "none": where the least number allowed is just above this one. */
    decimal_read(text, strlen(text), most, &read);
    decimal_parse(text, read > 0 ? read : 0, most, &parsed);
    decimal_parse(text, read < INT64_MAX ? read + 1 : 0, most, &none);
    bool took = decimal_take(&rest, most, &taken);
    tap_ok(read == wanted && parsed == read && none == (read == INT64_MAX ? read : -1) &&
               decimal_size(text, most) == size && rest == text + (took ? digits : 0) &&
               took == (taken >= 0) && (read < 0 || taken == read),
           "text %s", tap_show(text));
}

/* -- in replies ------------------------------------------------------------------------------ */

/* The only element of a list, as each of the readers takes it. */
static const struct {
    const char *element;
    int64_t whole, count, span, clock;
    size_t index; /* of 3 */
} elements[] = {
    {":0", 0, 0, 0, 0, 0},
    {":1", 1, 1, 1, 1, 0},
    {":3", 3, 3, 3, 3, 2},
    {":4", 4, 4, 4, 4, 0},
    {":-1", -1, 0, 0, 0, 0},
    {":-9223372036854775808", -1, 0, 0, 0, 0},
    {":9007199254740991", MOST, MOST, REDIS_SPAN_MAX, MOST, 0},
    {":9007199254740992", -1, MOST, REDIS_SPAN_MAX, MOST + 1, 0},
    {":9007199254740993", -1, MOST, REDIS_SPAN_MAX, 0, 0},
    {":9223372036854775807", -1, MOST, REDIS_SPAN_MAX, 0, 0},
    {"$1\r\n7", -1, 0, 0, 0, 0},
    {"$-1", -1, 0, 0, 0, 0},
    {"+7", -1, 0, 0, 0, 0},
    {"*1\r\n:7", -1, 0, 0, 0, 0},
};

/* The same element of a reply, as each reader of numbers takes it: numbers that are too large
 * or none become the value that is safe for that reader. */
static void test_elements(void)
{
    for (size_t i = 0; i < COUNT(elements); i++) {
        char text[60];
        snprintf(text, sizeof text, "*1\r\n%s\r\n", elements[i].element);
        redisReply *reply = reply_of(text, strlen(text));
        tap_ok(redis_reply_whole(reply, 0) == elements[i].whole &&
                   redis_reply_count(reply, 0) == elements[i].count &&
                   redis_reply_span(reply, 0) == elements[i].span &&
                   redis_reply_clock(reply, 0) == elements[i].clock &&
                   redis_reply_index(reply, 0, 3) == elements[i].index &&
                   redis_reply_says(reply, 0, 3) == (elements[i].whole == 3) &&
                   redis_reply_whole(reply, 1) == -1 && redis_reply_count(reply, 1) == 0,
               "element %s", tap_show(elements[i].element));
        freeReplyObject(reply);
    }
}

static const struct {
    int64_t us; /* -1: none */
    const char *const *replies;
} times[] = {
    {1700000000123456, INPUTS("*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n")},
    {0, INPUTS("*2\r\n$1\r\n0\r\n$1\r\n0\r\n")},
    {9007199254739999999, INPUTS("*2\r\n$13\r\n9007199254739\r\n$6\r\n999999\r\n")},
    {-1, INPUTS("*2\r\n$13\r\n9007199254740\r\n$1\r\n0\r\n",
                "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n",
                "*2\r\n$400\r\n" DIGITS_400 "\r\n$1\r\n0\r\n", "*2\r\n$2\r\n-1\r\n$1\r\n0\r\n",
                "*2\r\n$0\r\n\r\n$1\r\n0\r\n", "*2\r\n$1\r\n7\r\n$7\r\n1000000\r\n",
                "*2\r\n$1\r\n7\r\n$2\r\n-1\r\n", "*2\r\n:7\r\n:7\r\n", "*1\r\n$1\r\n7\r\n",
                "*3\r\n$1\r\n7\r\n$1\r\n0\r\n$1\r\n0\r\n", "-ERR\r\n")},
};

/* The reply to TIME in us; -1 for each reply that is not a time. */
static void test_times(void)
{
    for (size_t i = 0; i < COUNT(times); i++)
        EACH(text, times[i].replies) {
            redisReply *reply = reply_of(*text, strlen(*text));
            tap_ok(redis_reply_time(reply) == times[i].us, "TIME %s", tap_show(*text));
            freeReplyObject(reply);
        }
}

/* INFO's and CONFIG GET's. */
static const struct {
    const char *text;
    int64_t number;
} facts[] = {
    {"0", 0},       {"100", 100},       {"9223372036854775807", MOST},
    {"", UNTOLD},   {"-5", UNTOLD},     {"-9223372036854775808", UNTOLD},
    {"x", UNTOLD},  {DIGITS_400, MOST}, {"18446744073709551615", MOST},
    {"1x", UNTOLD},
};

/* A number in INFO and in CONFIG GET: one that is too large counts as the largest, and what is not
 * a number as not told. */
static void test_facts(void)
{
    for (size_t i = 0; i < COUNT(facts); i++) {
        struct server_facts info = {.figures = untold_figures}, setting = info;
        char lines[600], text[700];
        snprintf(lines, sizeof lines, "run_id:x\r\nuptime_in_seconds:%s\r\n", facts[i].text);
        snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(lines), lines);
        redisReply *reply = reply_of(text, strlen(text));
        redis_facts_info(&info, reply);
        freeReplyObject(reply);
        snprintf(text, sizeof text, "*2\r\n$1\r\nx\r\n$%zu\r\n%s\r\n", strlen(facts[i].text),
                 facts[i].text);
        reply = reply_of(text, strlen(text));
        redis_facts_setting(&setting, "maxmemory", reply);
        freeReplyObject(reply);
        tap_ok(info.figures.uptime_s == facts[i].number &&
                   setting.figures.maxmemory == facts[i].number,
               "INFO and CONFIG %s", tap_show(facts[i].text));
    }
}

/* The number of replicas in a greeting is bounded, and a number in place of their list is none. */
static void test_replicas(void)
{
    char *many = malloc(70000 * 5 + 100), *at = many;

    at += sprintf(at, "*3\r\n$6\r\nmaster\r\n:0\r\n*70000\r\n");
    for (int i = 0; i < 70000; i++)
        at += sprintf(at, "$-1\r\n");
    redisReply *reply = reply_of(many, strlen(many)), *none = reply_of_words("*3 master 0 *0"),
               *odd = reply_of_words("*3 master 0 9223372036854775807");
    tap_ok(redis_greeting_replicas(reply) == 65536, "more replicas than a server can have");
    tap_ok(redis_greeting_replicas(none) == 0 && redis_greeting_replicas(odd) == -1,
           "none, and a number instead of them");
    freeReplyObject(reply);
    freeReplyObject(none);
    freeReplyObject(odd);
    free(many);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(texts); i++)
        test_text(texts[i].text, texts[i].most, texts[i].read, texts[i].size);
    EACH(text, INPUTS("", "-1", "+1", " 1", "1 ", "1.5", "0x10", "1e3", "nan", "/", ":"))
        test_text(*text, MOST, -1, -1);
    test_elements();
    test_times();
    test_facts();
    test_replicas();
    return tap_done();
}
