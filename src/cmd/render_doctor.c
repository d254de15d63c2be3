#include "cmd/render_doctor.h"

#include "base/clock.h"
#include "base/mem.h"

#define RESET "\033[0m"

#define TEXT_AT 24 /* where the text begins in its line */

/* Returns what to do about a finding: the words of its hint, or its own; "": nothing. */
static const char *advice_of(const struct finding *finding)
{
    return finding->hint ? hint_words(CAUSE_NONE, finding->hint) : finding->advice;
}

/* Prints each finding, and its advice behind it, or on a line of its own where the window is too
 * narrow. */
static void print_findings(struct strbuf *out, const struct diagnosis *diagnosis,
                           const struct render_style *style)
{
    static const char *const colors[] = {"\033[32m", "", "\033[33m", "\033[31m"};

    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];
        bool color = style->color && *colors[finding->level];
        strbuf_printf(out, "  %s%-7s%s  %-11s  ", color ? colors[finding->level] : "",
                      level_name(finding->level), color ? RESET : "", finding->check);
        const char *advice = advice_of(finding);
        size_t start = out->size;
        strbuf_escape(out, "%s", finding->text);
        size_t used =
            TEXT_AT + utf8_width(out->text + start) + sizeof " -> " - 1 + utf8_width(advice);
        if (*advice && style->width > 0 && used > (size_t)style->width)
            strbuf_printf(out, "\n%*s-> ", TEXT_AT, "");
        else if (*advice)
            strbuf_puts(out, " -> ");
        render_line(out, "%s", advice);
    }
}

void render_doctor(struct strbuf *out, const struct checkup *checkup,
                   const struct render_style *style)
{
    for (size_t i = 0; i < checkup->count; i++) {
        strbuf_printf(out, "%s\n", checkup->servers[i].name);
        print_findings(out, &checkup->servers[i].diagnosis, style);
    }
    if (checkup->count > 1 && checkup->whole.count > 0)
        strbuf_puts(out, "together\n");
    print_findings(out, &checkup->whole, style);
}

/* The exit statuses 0, 1 and 69 as words. */
static const char *verdict_name(enum level level)
{
    return level < LEVEL_WARNING ? "fit" : level == LEVEL_WARNING ? "warnings" : "unfit";
}

/* Makes an array of the findings; the caller owns it. */
static json_t *findings_of(const struct diagnosis *diagnosis)
{
    json_t *array = jansson.array();

    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];
        json_t *object = jansson.object();
        json_put_text(object, "check", finding->check);
        json_put_text(object, "level", level_name(finding->level));
        json_put_text(object, "text", finding->text);
        json_put_text(object, "advice", advice_of(finding));
        jansson.array_append_new(array, object);
    }
    return array;
}

/* Makes the object of a server; the caller owns it. Figures that it has not told are null. */
static json_t *server_object(const struct checked_server *server)
{
    const struct server_figures *figures = &server->figures;
    json_t *object = jansson.object();

    json_put_text(object, "url", server->name);
    json_put_text(object, "verdict", verdict_name(server->diagnosis.worst));
    json_put_text(object, "software", figures->software);
    json_put_text(object, "version", figures->version);
    json_put_known(object, "latency_us", figures->ping_median_ns / 1000,
                   figures->ping_median_ns >= 0);
    json_put_known(object, "latency_max_us", figures->ping_max_ns / 1000,
                   figures->ping_max_ns >= 0);
    json_put_known(object, "uptime_s", figures->uptime_s, figures->uptime_s != UNTOLD);
    json_put_known(object, "clock_ahead_ms", figures->ahead_ms, figures->ahead_ms != INT64_MIN);
    json_put_known(object, "replicas", figures->replicas, figures->replicas != UNTOLD);
    json_put_known(object, "used_memory", figures->memory, figures->memory != UNTOLD);
    json_put_known(object, "maxmemory", figures->maxmemory, figures->maxmemory != UNTOLD);
    jansson.object_set_new(object, "findings", findings_of(&server->diagnosis));
    return object;
}

void render_doctor_json(struct strbuf *out, const struct checkup *checkup, enum level verdict)
{
    json_t *object = jansson.object();
    json_t *servers = jansson.array();

    for (size_t i = 0; i < checkup->count; i++)
        jansson.array_append_new(servers, server_object(&checkup->servers[i]));
    json_put_text(object, "verdict", verdict_name(verdict));
    jansson.object_set_new(object, "servers", servers);
    jansson.object_set_new(object, "findings", findings_of(&checkup->whole));
    json_write(out, object);
}
