/* What the doctor found, as text and JSON. */
#include "render_doctor.h"

#include <string.h>

#include "clock.h"
#include "mem.h"
#include "utf8.h"

#define RESET "\033[0m"

/* Errors are the server's words. */
static void print_findings(FILE *out, const struct diagnosis *diagnosis,
                           const struct render_style *style)
{
    static const char *const colors[] = {"\033[32m", "", "\033[33m", "\033[31m"};
    char text[UTF8_ESCAPED_SIZE(sizeof diagnosis->findings->text)];
    char advice[UTF8_ESCAPED_SIZE(sizeof diagnosis->findings->advice)];

    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];
        bool color = style->color && *colors[finding->level];
        fprintf(out, "  %s%-7s%s  %-11s  %s%s%s\n", color ? colors[finding->level] : "",
                level_name(finding->level), color ? RESET : "", finding->check,
                utf8_escape(finding->text, text, sizeof text), *finding->advice ? " -> " : "",
                utf8_escape(finding->advice, advice, sizeof advice));
    }
}

void render_doctor(FILE *out, const struct patient *patients, size_t count,
                   const struct diagnosis *whole, const struct render_style *style)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\n", patients[i].name);
        print_findings(out, &patients[i].diagnosis, style);
    }
    if (count > 1 && whole->count > 0)
        fprintf(out, "together\n");
    print_findings(out, whole, style);
}

/* -- JSON ------------------------------------------------------------------------------------ */

/* 0, 1 and 69 as words. */
static const char *verdict_name(enum level level)
{
    return level < LEVEL_WARNING ? "fit" : level == LEVEL_WARNING ? "warnings" : "unfit";
}

static json_t *findings_of(const struct json_library *json, const struct diagnosis *diagnosis)
{
    json_t *array = json->array();

    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];
        json_t *object = json->object();
        json_put_text(json, object, "check", finding->check);
        json_put_text(json, object, "level", level_name(finding->level));
        json_put_text(json, object, "text", finding->text);
        json_put_text(json, object, "advice", finding->advice);
        json->array_append_new(array, object);
    }
    return array;
}

static void put_unless_untold(const struct json_library *json, json_t *object, const char *name,
                              int64_t value, int64_t untold)
{
    if (value == untold)
        json_put_null(json, object, name);
    else
        json_put_number(json, object, name, value);
}

static void put_latency(const struct json_library *json, json_t *object, const char *name,
                        int64_t ns)
{
    put_unless_untold(json, object, name, ns < 0 ? UNTOLD : ns / 1000, UNTOLD);
}

static json_t *server_object(const struct json_library *json, const struct patient *patient)
{
    const struct server_facts *facts = &patient->facts;
    json_t *object = json->object();

    json_put_text(json, object, "url", patient->name);
    json_put_text(json, object, "verdict", verdict_name(patient->diagnosis.worst));
    json_put_text(json, object, "software", facts->software);
    json_put_text(json, object, "version", facts->version);
    put_latency(json, object, "latency_us", facts->ping_median_ns);
    put_latency(json, object, "latency_max_us", facts->ping_max_ns);
    put_unless_untold(json, object, "uptime_s", facts->uptime_s, UNTOLD);
    put_unless_untold(json, object, "clock_ahead_ms", facts->ahead_ms, INT64_MIN);
    put_unless_untold(json, object, "replicas", facts->replicas, UNTOLD);
    json->object_set_new(object, "findings", findings_of(json, &patient->diagnosis));
    return object;
}

char *render_doctor_json(const struct json_library *json, const struct patient *patients,
                         size_t count, const struct diagnosis *whole, enum level verdict)
{
    json_t *object = json->object();
    json_t *servers = json->array();

    for (size_t i = 0; i < count; i++)
        json->array_append_new(servers, server_object(json, &patients[i]));
    json_put_text(json, object, "verdict", verdict_name(verdict));
    json->object_set_new(object, "servers", servers);
    json->object_set_new(object, "findings", findings_of(json, whole));
    return mem_checked(json_print(json, object));
}
