/* Start reading at zk_queue_read(), which makes contenders of the children of a node, and at
 * zk_queue_in_the_way(), which says whom one of them waits for. To keep something more in the data
 * of a node, change zk_node_data_print() and zk_node_data_parse(). */
#include "store/zookeeper/queue.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "base/percent.h"
#include "base/utf8.h"
#include "lock/key.h"

#define DIGITS 10 /* of a node's number, which has zeroes in front */

/* -- keys as nodes ----------------------------------------------------------------------------- */

/* Every byte of a key may become three. */
#define KEY_NAME_SIZE (3 * KEY_MAX_BYTES + 13)

char *zk_path_join(const char *node, const char *child)
{
    return strbuf_print("%s/%s", node, child);
}

/* Writes a KEY as a node's name. A character that such a name cannot have, and the first one of a
 * name that is ZooKeeper's own, becomes %XX for each of its bytes. */
static void print_name(const char *key, char name[KEY_NAME_SIZE])
{
    /* A node of ours cannot have these names as they are. */
    bool written = strcmp(key, ".") == 0 || strcmp(key, "..") == 0 || strcmp(key, "zookeeper") == 0;
    char *to = name;

    while (*key && to + 3 * 4 < name + KEY_NAME_SIZE) {
        const char *from = key;
        /* Characters that a node's name may have, by PathUtils.validatePath() of ZooKeeper, which
         * looks at UTF-16 and refuses surrogates. A '/' would make it another lock's child, and
         * children of a lock are taken for contenders; '%' is for what is written otherwise. */
        uint32_t c = utf8_next(&key);
        bool fits = c > 0x1f && c != '/' && c != '%' && (c < 0x7f || c > 0x9f) && c < 0xd800;
        for (; from < key; from++)
            to += sprintf(to, fits && !written ? "%c" : "%%%02X",
                          fits && !written ? *from : (unsigned char)*from);
        written = false;
    }
    *to = '\0';
}

char *zk_path_of_key(const char *folder, const char *key)
{
    char name[KEY_NAME_SIZE];

    print_name(key, name);
    return zk_path_join(folder, name);
}

char *zk_path_to_key(struct jute_text name)
{
    char *key = mem_zeroed(name.size + 1), again[KEY_NAME_SIZE];
    bool sound = name.size < KEY_NAME_SIZE &&
                 percent_decode(name.bytes, name.size, key, name.size + 1) == PERCENT_FINE &&
                 !key_fault(key);

    if (sound) /* a name that print_name() would not write is another program's */
        print_name(key, again);
    if (sound && strlen(again) == name.size && memcmp(again, name.bytes, name.size) == 0)
        return key;
    free(key);
    return NULL;
}

char *zk_path_folder(const char *url_path, const char *prefix)
{
    if (url_path)
        return zk_path_join("", url_path);
    return zk_path_of_key("", prefix ? prefix : "rlock");
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Reads the number that a node's name ends with, as "%010d" prints it. False: there is none. After
 * 2^31 creations it is negative: a '-' in front of the digits is a sign if it is one of the ten
 * characters, or follows a whole word, as in "lock--2147483648"; otherwise it ends a word. */
static bool read_number(const char *name, size_t size, int32_t *number)
{
    size_t start = size;
    int64_t value;

    while (start > 0 && size - start < DIGITS && name[start - 1] >= '0' && name[start - 1] <= '9')
        start--;
    size_t digits = size - start;
    bool negative = start >= 2 && name[start - 1] == '-' &&
                    (digits == DIGITS - 1 || name[start - 2] == '-' || name[start - 2] == '_');
    if (digits + negative < DIGITS ||
        !decimal_read(name + start, digits, -(int64_t)INT32_MIN, &value))
        return false;
    *number = (int32_t)(negative ? -value : value);
    return negative || value <= INT32_MAX;
}

/* Reads 32 hexadecimal digits, perhaps with hyphens, that the name begins with, behind "_c_", as a
 * UUID with hyphens; "" if there are none. */
static void read_uuid(const char *name, char uuid[OWNER_UUID_SIZE])
{
    size_t used = 0;

    name += strncmp(name, "_c_", 3) == 0 ? 3 : 0;
    while (used < OWNER_UUID_SIZE - 1) {
        bool hyphen = used == 8 || used == 13 || used == 18 || used == 23;
        if (hyphen)
            uuid[used++] = '-';
        else if (percent_digit(*name) >= 0)
            uuid[used++] = (char)tolower((unsigned char)*name);
        else
            break;
        name += !hyphen || *name == '-';
    }
    if (used < OWNER_UUID_SIZE - 1)
        used = 0;
    uuid[used] = '\0';
}

/* For qsort(): the order of creation. Names decide between those that nest, which share a
 * number. */
static int by_order(const void *a, const void *b)
{
    const struct zk_contender *left = a, *right = b;

    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Whether both nodes are the same party's. Without a UUID, a node is a party of its own. */
static bool same_party(const struct zk_contender *a, const struct zk_contender *b)
{
    return a == b || (*a->uuid && strcmp(a->uuid, b->uuid) == 0);
}

/* Sets first_of_party and holds. Every node is judged by the first one of its party, so that both
 * nodes of a writer count as one. */
static void judge_parties(struct zk_queue *queue, enum zk_branch branch)
{
    for (size_t i = 0; i < queue->count; i++) {
        struct zk_contender *one = &queue->all[i];
        const struct zk_contender *first = *one->uuid ? zk_queue_find(queue, one->uuid) : one;
        one->first_of_party = first == one;
        if (branch != ZK_PLAIN)
            one->holds = branch == ZK_LEASES;
        else
            one->holds = one->first_of_party ? !zk_queue_in_the_way(queue, one) : first->holds;
    }
}

/* Whether the name is that word. */
static bool is_word(struct jute_text name, const char *word)
{
    return name.size == strlen(word) && memcmp(name.bytes, word, name.size) == 0;
}

int zk_queue_read(const struct zk_reply *children, enum zk_branch branch, struct zk_queue *queue)
{
    struct zk_names names;
    struct jute_text name;

    *queue = (struct zk_queue){0};
    int error = zk_read_children(children, &names);
    if (error != ZK_OK)
        return error;
    size_t size = (size_t)(names.in.end - names.in.at) + names.left;
    queue->all = mem_zeroed((names.left + 1) * sizeof *queue->all);
    queue->text = mem_zeroed(size + 1);
    char *to = queue->text;
    while (zk_next_name(&names, &name)) {
        struct zk_contender *one = &queue->all[queue->count];
        queue->semaphore |= is_word(name, "leases") || is_word(name, "locks");
        if (memchr(name.bytes, '\0', name.size) ||
            !read_number(name.bytes, name.size, &one->number))
            continue;
        one->name = memcpy(to, name.bytes, name.size);
        to += name.size + 1;
        one->reader = strstr(one->name, "__READ__") || strstr(one->name, "__rlock__");
        /* Numbers overflow, so they are ordered by their distance from the first. */
        one->order = (int32_t)((uint32_t)one->number - (uint32_t)queue->all[0].number);
        read_uuid(one->name, one->uuid);
        queue->count++;
    }
    qsort(queue->all, queue->count, sizeof *queue->all, by_order);
    judge_parties(queue, branch);
    if (!names.in.damaged)
        return ZK_OK;
    zk_queue_free(queue);
    return ZK_MARSHALLING;
}

void zk_queue_free(struct zk_queue *queue)
{
    free(queue->all);
    free(queue->text);
    *queue = (struct zk_queue){0};
}

/* -- judging ----------------------------------------------------------------------------------- */

const struct zk_contender *zk_queue_next_of(const struct zk_queue *queue, const char *uuid,
                                            const struct zk_contender *at)
{
    for (size_t i = at ? (size_t)(at - queue->all) + 1 : 0; i < queue->count; i++)
        if (strcmp(queue->all[i].uuid, uuid) == 0)
            return &queue->all[i];
    return NULL;
}

const struct zk_contender *zk_queue_find(const struct zk_queue *queue, const char *uuid)
{
    return zk_queue_next_of(queue, uuid, NULL);
}

const struct zk_contender *zk_queue_in_the_way(const struct zk_queue *queue,
                                               const struct zk_contender *own)
{
    const struct zk_contender *nearest = NULL;

    for (size_t i = 0; i < queue->count && queue->all[i].order < own->order; i++) {
        const struct zk_contender *other = &queue->all[i];
        if (!same_party(own, other) && !(own->reader && other->reader))
            nearest = other;
    }
    return nearest;
}

const struct zk_contender *zk_queue_named(const struct zk_queue *queue, const char *name)
{
    for (size_t i = 0; i < queue->count; i++)
        if (strcmp(queue->all[i].name, name) == 0)
            return &queue->all[i];
    return NULL;
}

const struct zk_contender *zk_queue_ancestor(const struct zk_queue *queue, const char *owner)
{
    char uuid[OWNER_UUID_SIZE];

    for (const char *dot; (dot = strchr(owner, '.')); owner = dot + 1) {
        snprintf(uuid, sizeof uuid, "%.*s", (int)(dot - owner), owner);
        const struct zk_contender *one = zk_queue_find(queue, uuid);
        if (one && one->holds)
            return one;
    }
    return NULL;
}

const struct zk_contender *zk_queue_oldest(const struct zk_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        if (queue->all[i].first_of_party && queue->all[i].holds)
            return &queue->all[i];
    return NULL;
}

size_t zk_queue_holders(const struct zk_queue *queue)
{
    size_t holders = 0;

    for (size_t i = 0; i < queue->count; i++)
        holders += queue->all[i].first_of_party && queue->all[i].holds;
    return holders;
}

size_t zk_queue_position(const struct zk_queue *queue, const struct zk_contender *own)
{
    size_t waiting = 0;

    for (size_t i = 0; i < queue->count; i++) {
        waiting += queue->all[i].first_of_party && !queue->all[i].holds;
        if (own && same_party(&queue->all[i], own))
            break;
    }
    return waiting;
}

/* -- what is in a node ------------------------------------------------------------------------- */

#define MARK "rlock/1"

#define ANCESTORS_SIZE (OWNER_DEPTH * 21 + 1) /* ":" and a number each */

char *zk_node_data_print(const struct zk_node_data *data)
{
    char password[2 * ZK_PASSWORD_SIZE + 1], limit[32] = "", ancestors[ANCESTORS_SIZE] = "";
    char *end = ancestors;
    int count = OWNER_DEPTH;

    for (size_t i = 0; i < ZK_PASSWORD_SIZE; i++)
        sprintf(password + 2 * i, "%02x", (unsigned char)data->password[i]);
    if (data->mode == LOCK_LIMIT)
        snprintf(limit, sizeof limit, ":%u:%u", data->limit, data->slot);
    while (count > 0 && data->ancestors[count - 1] == 0)
        count--;
    for (int i = 0; i < count; i++)
        end += sprintf(end, ":%" PRId64, data->ancestors[i]);
    return strbuf_print(MARK " %s %s%s %" PRIu64 "%s %" PRId64 " %s %.*s", data->owner,
                        lock_mode_name(data->mode), limit, data->fence, ancestors,
                        data->lease / NS_PER_MS, password, (int)data->who_size, data->who);
}

/* Reads the mode of a node; a semaphore's is followed by ":LIMIT:SLOT". False: it is none. */
static bool read_mode(const char *word, struct zk_node_data *data)
{
    int64_t limit, slot;

    for (data->mode = LOCK_EXCLUSIVE; data->mode < LOCK_LIMIT; data->mode++)
        if (strcmp(word, lock_mode_name(data->mode)) == 0)
            return true;
    const char *name = lock_mode_name(LOCK_LIMIT);
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0)
        return false;
    word += length;
    if (*word++ != ':' || !decimal_take(&word, LOCK_LIMIT_MAX, &limit) || *word++ != ':' ||
        !decimal_take(&word, LOCK_LIMIT_MAX, &slot) || *word || limit == 0)
        return false;
    data->limit = (unsigned)limit;
    data->slot = (unsigned)slot;
    return true;
}

/* Reads the password of a session, which is printed in hexadecimal digits. False: it is none. */
static bool read_password(const char *hex, char password[ZK_PASSWORD_SIZE])
{
    for (size_t i = 0; i < ZK_PASSWORD_SIZE; i++) {
        int high = percent_digit(hex[2 * i]), low = high < 0 ? -1 : percent_digit(hex[2 * i + 1]);
        if (low < 0)
            return false;
        password[i] = (char)(16 * high + low);
    }
    return hex[(size_t)2 * ZK_PASSWORD_SIZE] == '\0';
}

/* Takes the first word off the text, with the space behind it. False if it does not fit into
 * "word". */
static bool take_word(struct jute_text *text, char *word, size_t size)
{
    const char *space = memchr(text->bytes, ' ', text->size);
    size_t length = space ? (size_t)(space - text->bytes) : text->size;

    if (length >= size || memchr(text->bytes, '\0', length))
        return false;
    memcpy(word, text->bytes, length);
    word[length] = '\0';
    text->bytes += length + (space != NULL);
    text->size -= length + (space != NULL);
    return true;
}

/* Takes the word FENCE off the text, or FENCE:CZXID:… of an owner that nests. False: it is none. */
static bool take_fence(struct jute_text *text, struct zk_node_data *data)
{
    char word[24 + ANCESTORS_SIZE];
    const char *at = word;
    int64_t fence;

    if (!take_word(text, word, sizeof word) || !decimal_take(&at, INT64_MAX, &fence))
        return false;
    data->fence = (uint64_t)fence;
    for (size_t i = 0; *at; i++)
        if (i == OWNER_DEPTH || *at++ != ':' || !decimal_take(&at, INT64_MAX, &data->ancestors[i]))
            return false;
    return true;
}

bool zk_node_data_parse(struct jute_text text, struct zk_node_data *data)
{
    char mark[sizeof MARK], mode[32] = "", lease[24], password[2 * ZK_PASSWORD_SIZE + 1] = "";
    int64_t lease_ms;

    *data = (struct zk_node_data){.who = ""};
    if (!take_word(&text, mark, sizeof mark) || strcmp(mark, MARK) != 0 ||
        !take_word(&text, data->owner, sizeof data->owner) || owner_fault(data->owner) ||
        !take_word(&text, mode, sizeof mode) || !read_mode(mode, data) ||
        !take_fence(&text, data) || !take_word(&text, lease, sizeof lease) ||
        !decimal_parse(lease, 0, INT64_MAX / NS_PER_MS, &lease_ms) ||
        !take_word(&text, password, sizeof password) || !read_password(password, data->password))
        return false;
    data->lease = lease_ms * NS_PER_MS;
    data->who = text.bytes;
    data->who_size = text.size;
    return true;
}

/* Returns the ms from one time to another; 0 if that is the earlier one, as clocks differ, or not a
 * time, as a server may say anything. */
static int64_t span_ms(int64_t from, int64_t to)
{
    int64_t ms;

    return __builtin_sub_overflow(to, from, &ms) || ms < 0 ? 0 : ms;
}

void zk_read_party(const struct zk_contender *contender, struct jute_text text,
                   const struct zk_stat *stat, int64_t now_ms, struct lock_party *party)
{
    struct zk_node_data data;
    bool ours = zk_node_data_parse(text, &data);
    char host[IDENTITY_WORD_MAX + 1];

    *party = (struct lock_party){.mode = contender->reader ? LOCK_SHARED : LOCK_EXCLUSIVE,
                                 .count = 1,
                                 .fence = (uint64_t)stat->czxid};
    strcpy(party->owner, contender->uuid);
    party->unread = stat->czxid == 0; /* the node may not be read */
    if (party->unread)
        return;
    party->since_ms = stat->ctime_ms;
    party->age_ms = span_ms(stat->ctime_ms, now_ms);
    party->heard_ms = span_ms(stat->mtime_ms, now_ms);
    if (!ours) { /* Curator writes the host's address, others their name */
        snprintf(host, sizeof host, "%.*s", (int)text.size, text.bytes);
        identity_set(party->who.host, host);
        return;
    }
    strcpy(party->owner, data.owner);
    identity_parse(data.who, data.who_size, &party->who);
    party->waited_ms = identity_noted(data.who, data.who_size, LOCK_NOTE_WAITED);
    party->mode = data.mode == LOCK_LIMIT ? LOCK_LIMIT : party->mode;
    party->slot = data.slot;
    party->fence = data.fence ? data.fence : party->fence;
    /* The data is written with each renewal. */
    if (data.lease / NS_PER_MS > party->heard_ms)
        party->left_ms = data.lease / NS_PER_MS - party->heard_ms;
}

const char *zk_owner_uuid(const char *owner)
{
    const char *dot = strrchr(owner, '.');

    return dot ? dot + 1 : owner;
}

/* -- those that nest in the same holder -------------------------------------------------------- */

/* Returns how many bytes of both owners are the path of their innermost common ancestor and its
 * dot. */
static size_t shared_path(const char *a, const char *b)
{
    size_t shared = 0;

    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            shared = i + 1;
    return shared;
}

/* Returns when the eldest came (a zxid) of "one" and those of its ancestors that are further in
 * than the first "path" bytes of its token. An ancestor counts as it was when "one" came: whether
 * it has gone meanwhile changes nothing, so that all see the same order at all times. */
static int64_t eldest_arrival(const struct zk_nested *one, size_t path)
{
    int64_t since = one->since;
    size_t depth = 0;

    for (size_t i = 0; one->data.owner[i]; i++) {
        if (one->data.owner[i] != '.' || depth == OWNER_DEPTH)
            continue;
        int64_t ancestor = one->data.ancestors[depth++];
        if (i > path && ancestor > 0 && ancestor < since)
            since = ancestor;
    }
    return since;
}

const struct zk_nested *zk_nested_in_the_way(const struct zk_nested *all, size_t count, size_t own)
{
    const struct zk_nested *self = &all[own], *last = NULL;
    const char *owner = self->data.owner;

    for (size_t i = 0; i < count; i++) {
        const struct zk_nested *other = &all[i];
        bool both_read = self->data.mode == LOCK_SHARED && other->data.mode == LOCK_SHARED;
        if (both_read || strcmp(owner, other->data.owner) == 0 ||
            owner_nests_in(owner, other->data.owner) || owner_nests_in(other->data.owner, owner))
            continue;
        size_t path = shared_path(owner, other->data.owner);
        if (path == 0)
            continue; /* of another family */
        bool before = eldest_arrival(other, path) < eldest_arrival(self, path);
        if (before && (!last || other->since > last->since))
            last = other;
    }
    return last;
}

/* -- the leases of a semaphore ----------------------------------------------------------------- */

/* For qsort(): the numbers of slots. */
static int by_number(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;

    return (left > right) - (left < right);
}

struct zk_room zk_leases_room(const struct zk_reply *data, size_t count)
{
    struct zk_room room = {.slot = 1};
    unsigned *slots = mem_zeroed((count + 1) * sizeof *slots); /* of rlock's leases */
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        struct jute_text text = {"", 0};
        struct zk_stat stat;
        struct zk_node_data one;
        if (data[i].error == ZK_NO_NODE) {
            room.gone = true;
            continue;
        }
        bool ours = zk_read_data(&data[i], &text, &stat) == ZK_OK &&
                    zk_node_data_parse(text, &one) && one.slot > 0;
        if (ours)
            slots[used++] = one.slot;
        else /* Curator's, or not to be read */
            room.taken++;
        if (ours && !room.limit)
            room.limit = one.limit;
    }
    qsort(slots, used, sizeof *slots, by_number);
    for (size_t i = 0; i < used; i++) {
        room.taken += i == 0 || slots[i] != slots[i - 1]; /* once for those of one slot */
        room.slot += slots[i] == room.slot;               /* the next one may be free */
    }
    free(slots);
    return room;
}
