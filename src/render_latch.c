/* Latches as text and JSON. */
#include "render_latch.h"

#include <inttypes.h>

#include "clock.h"
#include "duration.h"
#include "key.h"
#include "mem.h"
#include "render.h"
#include "utf8.h"

void latch_ids_add(void *arg, const char *id)
{
    struct latch_ids *ids = arg;

    if (ids->count == ids->room) {
        ids->room = 2 * ids->room + 16;
        ids->ids = mem_checked(realloc(ids->ids, ids->room * sizeof *ids->ids));
    }
    ids->ids[ids->count++] = mem_strdup(id);
}

void latch_ids_free(struct latch_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        free(ids->ids[i]);
    free(ids->ids);
    *ids = (struct latch_ids){0};
}

void render_latch(FILE *out, const char *key, const struct latch_state *latch,
                  const struct latch_ids *ids)
{
    char since[32], left[32], id[UTF8_ESCAPED_SIZE(KEY_MAX_BYTES)];

    fprintf(out, "%s: %s, %" PRId64 " of %" PRId64 " left\n", key, latch->left ? "closed" : "open",
            latch->left, latch->number);
    fprintf(out, "  set      %s\n", render_time(latch->since_ms, since));
    fprintf(out, "  expires  in %s\n",
            duration_print(latch->ttl_ms * NS_PER_MS, left, sizeof left));
    for (size_t i = 0; i < ids->count; i++)
        fprintf(out, "  counted  %s\n", utf8_escape(ids->ids[i], id, sizeof id));
    if (latch->unnamed > 0)
        fprintf(out, "  counted  %" PRId64 " times without an id\n", latch->unnamed);
}

void render_latch_json(FILE *out, const struct json_library *json, const char *key,
                       const struct latch_state *latch, const struct latch_ids *ids)
{
    json_t *object = json->object();
    json_t *array = json->array();
    char text[3 * KEY_MAX_BYTES + 1];

    for (size_t i = 0; i < ids->count; i++)
        json->array_append_new(array, json->string(utf8_repair(ids->ids[i], text, sizeof text)));
    json_put_text(json, object, "key", key);
    json_put_text(json, object, "state", latch->left ? "closed" : "open");
    json_put_number(json, object, "count", latch->number);
    json_put_number(json, object, "left", latch->left);
    json->object_set_new(object, "ids", array);
    json_put_number(json, object, "unnamed", latch->unnamed > 0 ? latch->unnamed : 0);
    json_put_text(json, object, "since", render_time(latch->since_ms, text));
    json_put_number(json, object, "ttl_left_ms", latch->ttl_ms);
    char *line = mem_checked(json_print(json, object));
    fputs(line, out);
    free(line);
}
