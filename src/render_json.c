/* Locks as JSON for programs. */
#include "render_json.h"

#include "mem.h"
#include "render.h"

static void put_since(const struct json_library *json, json_t *object, int64_t ms)
{
    char text[32];
    json_put_text(json, object, "since", render_time(ms, text));
}

static void put_unless_zero(const struct json_library *json, json_t *object, const char *name,
                            json_int_t value)
{
    if (value)
        json_put_number(json, object, name, value);
    else
        json_put_null(json, object, name);
}

static void put_identity(const struct json_library *json, json_t *object,
                         const struct identity *who)
{
    json_put_text(json, object, "host", who->host);
    json_put_text(json, object, "user", who->user);
    put_unless_zero(json, object, "pid", who->pid);
    json_put_text(json, object, "command", who->command);
    json_put_text(json, object, "label", who->label);
}

static json_t *holder_object(const struct json_library *json, const struct lock_party *holder)
{
    json_t *object = json->object();

    json_put_text(json, object, "owner", holder->owner);
    put_identity(json, object, &holder->who);
    json_put_text(json, object, "mode", lock_mode_name(holder->mode));
    json_put_number(json, object, "count", holder->count);
    put_unless_zero(json, object, "slot", holder->slot);
    json_put_number(json, object, "fence", (json_int_t)holder->fence);
    put_since(json, object, holder->since_ms);
    json_put_number(json, object, "lease_left_ms", holder->left_ms);
    return object;
}

static json_t *waiter_object(const struct json_library *json, const struct lock_party *waiter,
                             size_t position)
{
    json_t *object = json->object();

    json_put_text(json, object, "owner", waiter->owner);
    json_put_number(json, object, "position", (json_int_t)position);
    json_put_text(json, object, "mode", lock_mode_name(waiter->mode));
    put_identity(json, object, &waiter->who);
    put_since(json, object, waiter->since_ms);
    return object;
}

static json_t *lock_object(const struct json_library *json, const struct lock_view *lock)
{
    json_t *object = json->object();
    json_t *holders = json->array();
    json_t *waiters = json->array();

    json_put_text(json, object, "key", lock->key);
    json_put_text(json, object, "mode", lock->holder_count ? lock_mode_name(lock->mode) : NULL);
    put_unless_zero(json, object, "limit", lock->holder_count ? lock->limit : 0);
    put_unless_zero(json, object, "fence", (json_int_t)lock->fence);
    for (size_t i = 0; i < lock->holder_count; i++)
        json->array_append_new(holders, holder_object(json, &lock->holders[i]));
    for (size_t i = 0; i < lock->waiter_count; i++)
        json->array_append_new(waiters, waiter_object(json, &lock->waiters[i], i + 1));
    json->object_set_new(object, "holders", holders);
    json->object_set_new(object, "waiters", waiters);
    return object;
}

char *render_json(const struct json_library *json, const struct lock_view *locks, size_t count)
{
    json_t *array = json->array();

    for (size_t i = 0; i < count; i++)
        json->array_append_new(array, lock_object(json, &locks[i]));
    return mem_checked(json_print(json, array));
}
