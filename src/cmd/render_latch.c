#include "cmd/render_latch.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "cli/render.h"

void latch_ids_add(void *arg, const char *id)
{
    struct latch_ids *ids = arg;

    *MEM_APPEND(ids->ids, ids->count) = mem_strdup(id);
}

void latch_ids_free(struct latch_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        free(ids->ids[i]);
    free(ids->ids);
    *ids = (struct latch_ids){0};
}

static const char *latch_state(const struct latch_state *latch)
{
    return latch->left ? "closed" : "open";
}

void render_latch(struct strbuf *out, const char *key, const struct latch_state *latch,
                  const struct latch_ids *ids)
{
    strbuf_printf(out, "%s: %s, %" PRId64 " of %" PRId64 " left\n", key, latch_state(latch),
                  latch->left, latch->number);
    strbuf_printf(out, "  set      %s\n", UTC_TEXT(latch->since_ms));
    strbuf_printf(out, "  expires  in %s\n", MS_TEXT(latch->ttl_ms));
    for (size_t i = 0; i < ids->count; i++)
        render_line(out, "  counted  %s", ids->ids[i]);
    if (latch->unnamed > 0)
        strbuf_printf(out, "  counted  %" PRId64 " time%s without an id\n", latch->unnamed,
                      latch->unnamed == 1 ? "" : "s");
}

enum { LATCH_KEY, LATCH_STATE, LATCH_LEFT, LATCH_AGE, LATCH_EXPIRES, LATCH_COLUMNS };

void render_latches(struct strbuf *out, const struct lock_view *latches, size_t count, bool color)
{
    static const char *const titles[LATCH_COLUMNS] = {"KEY", "STATE", "LEFT", "AGE", "EXPIRES"};
    struct table table ENDED_BY(table_free) = {.columns = LATCH_COLUMNS, .colored = LATCH_STATE};

    table_add_titles(&table, titles);
    for (size_t i = 0; i < count; i++) {
        struct table_row *row = table_add(&table);
        const struct latch_state *latch = &latches[i].latch;
        table_set(row, LATCH_KEY, "%s", latches[i].key);
        table_set(row, LATCH_STATE, "%s", latch_state(latch));
        table_set(row, LATCH_LEFT, "%" PRId64 " of %" PRId64, latch->left, latch->number);
        table_set_duration(row, LATCH_AGE, latch->age_ms);
        table_set_duration(row, LATCH_EXPIRES, latch->ttl_ms);
        row->color = !color ? NULL : latch->left ? TABLE_YELLOW : TABLE_GREEN;
    }
    table_print(out, &table);
}

/* A latch as JSON, without the ids. */
static json_t *latch_object(const char *key, const struct latch_state *latch)
{
    json_t *object = jansson.object();

    json_put_text(object, "key", key);
    json_put_text(object, "state", latch_state(latch));
    json_put_number(object, "count", latch->number);
    json_put_number(object, "left", latch->left);
    json_put_text(object, "since", UTC_TEXT(latch->since_ms));
    json_put_number(object, "age_ms", latch->age_ms);
    json_put_number(object, "ttl_left_ms", latch->ttl_ms);
    return object;
}

void render_latch_json(struct strbuf *out, const char *key, const struct latch_state *latch,
                       const struct latch_ids *ids)
{
    json_t *object = latch_object(key, latch);
    json_t *array = jansson.array();
    char text[3 * KEY_MAX_BYTES + 1];

    for (size_t i = 0; i < ids->count; i++)
        jansson.array_append_new(array,
                                 jansson.string(utf8_repair(ids->ids[i], text, sizeof text)));
    jansson.object_set_new(object, "ids", array);
    json_put_number(object, "unnamed", latch->unnamed > 0 ? latch->unnamed : 0);
    json_write(out, object);
}

void render_latches_json(struct strbuf *out, const struct lock_view *latches, size_t count)
{
    json_t *array = jansson.array();

    for (size_t i = 0; i < count; i++)
        jansson.array_append_new(array, latch_object(latches[i].key, &latches[i].latch));
    json_write(out, array);
}
