#include "memory_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/store.h"

static struct memory_records mine, *here = &mine;
static struct memory_watch watch;
static struct unit_message *messages;
static size_t message_count;

void memory_records_use(struct memory_records *records, const struct memory_watch *told)
{
    here = records;
    watch = *told;
}

void memory_records_clear(struct memory_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        free(records->all[i].name);
        free(records->all[i].text);
    }
    free(records->all);
    *records = (struct memory_records){0};
}

static bool memory_open(const struct host_target *target, const char *table,
                        struct host_fault *fault)
{
    (void)target, (void)table, (void)fault;
    return true;
}

static struct memory_kind *find(const char *name)
{
    for (size_t i = 0; i < here->count; i++)
        if (strcmp(here->all[i].name, name) == 0)
            return &here->all[i];
    return NULL;
}

static void load(struct unit_key *key)
{
    char *name = record_print_name(key->name);
    const struct memory_kind *found = find(name);

    if (found && !record_read(&key->record, found->text, strlen(found->text)))
        abort();
    key->record.version = found ? found->version : 0;
    free(name);
}

static enum host_outcome memory_load(struct unit *unit, struct host_fault *fault)
{
    (void)fault;
    unit->now_us = clock_wall() / 1000;
    for (size_t i = 0; i < unit->count; i++)
        load(&unit->keys[i]);
    return HOST_DONE;
}

void memory_records_reach(struct unit *unit, struct slice name, enum unit_use use)
{
    size_t before = unit->count;

    unit_add(unit, name, use);
    unit->reads_only &= use == UNIT_READS;
    if (unit->count > before)
        load(&unit->keys[before]);
}

static void keep(const struct unit_key *key)
{
    char *name = record_print_name(key->name);
    struct memory_kind *found = find(name);

    if (!found) {
        found = MEM_APPEND(here->all, here->count);
        *found = (struct memory_kind){.name = mem_strdup(name)};
    }
    free(found->text);
    found->text = record_print(&key->record);
    found->version = key->record.version + 1;
    if (watch.changed)
        watch.changed(name, &key->record);
    free(name);
}

static enum host_outcome memory_commit(struct unit *unit, struct host_fault *fault)
{
    (void)fault;
    for (size_t i = 0; i < unit->count; i++)
        if (unit->keys[i].record.changed)
            keep(&unit->keys[i]);
    if (watch.committed)
        watch.committed();
    for (size_t i = 0; i < unit->message_count; i++)
        *MEM_APPEND(messages, message_count) = (struct unit_message){
            slice_duplicate(unit->messages[i].channel), slice_duplicate(unit->messages[i].text)};
    return HOST_DONE;
}

static void memory_abandon(void)
{
}

static bool is_alive(const struct memory_kind *one)
{
    struct record record = {0};

    if (!record_read(&record, one->text, strlen(one->text)))
        abort();
    bool alive = record.type && (!record.expires || record.expires > clock_wall() / NS_PER_MS);
    record_clear(&record);
    return alive;
}

static bool memory_list(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                        struct host_fault *fault)
{
    (void)fault;
    for (size_t i = 0; i < here->count; i++) {
        char *name = mem_strdup(here->all[i].name);
        size_t size = strlen(name);
        if (!record_read_name(name, &size))
            abort();
        if (is_alive(&here->all[i]) && size >= prefix.size &&
            memcmp(name, prefix.at, prefix.size) == 0)
            each(arg, (struct slice){name, size});
        free(name);
    }
    return true;
}

static bool memory_hear(void)
{
    for (size_t i = 0; i < message_count; i++) {
        host_tell(messages[i].channel, messages[i].text);
        slice_free(&messages[i].channel);
        slice_free(&messages[i].text);
    }
    message_count = 0;
    return true;
}

static int memory_rest(enum host_ears ears, int *ms)
{
    (void)ears;
    return *ms = -1;
}

static bool memory_make(const char *user, struct host_fault *fault)
{
    (void)user, (void)fault;
    return true;
}

const struct host_store memory_records_store = {.open = memory_open,
                                                .load = memory_load,
                                                .commit = memory_commit,
                                                .abandon = memory_abandon,
                                                .list = memory_list,
                                                .poll_fd = memory_rest,
                                                .read_messages = memory_hear,
                                                .make = memory_make};
