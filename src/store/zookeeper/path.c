/* Keys as nodes. */
#include "store/zookeeper/path.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/percent.h"
#include "base/utf8.h"
#include "lock/key.h"

/* Every byte of a key may become three. */
#define NAME_SIZE (3 * KEY_MAX_BYTES + 13)

char *zk_path_join(const char *node, const char *child)
{
    return strbuf_print("%s/%s", node, child);
}

/* Characters that a node's name may have, by PathUtils.validatePath() of ZooKeeper, which looks at
 * UTF-16 and refuses surrogates. A '/' would make it another lock's child, and children of a lock
 * are taken for contenders; '%' is for what is written otherwise. */
static bool fits_into_name(uint32_t c)
{
    return c > 0x1f && c != '/' && c != '%' && (c < 0x7f || c > 0x9f) && c < 0xd800;
}

static void print_name(const char *key, char name[NAME_SIZE])
{
    /* A node of ours cannot have these names as they are. */
    bool written = strcmp(key, ".") == 0 || strcmp(key, "..") == 0 || strcmp(key, "zookeeper") == 0;
    char *to = name;

    while (*key && to + 3 * 4 < name + NAME_SIZE) {
        const char *from = key;
        bool fits = fits_into_name(utf8_next(&key));
        for (; from < key; from++)
            to += sprintf(to, fits && !written ? "%c" : "%%%02X",
                          fits && !written ? *from : (unsigned char)*from);
        written = false;
    }
    *to = '\0';
}

char *zk_path_of_key(const char *folder, const char *key)
{
    char name[NAME_SIZE];

    print_name(key, name);
    return zk_path_join(folder, name);
}

char *zk_path_to_key(struct jute_text name)
{
    char *key = mem_zeroed(name.size + 1), again[NAME_SIZE];
    bool sound = name.size < NAME_SIZE &&
                 percent_decode(name.bytes, name.size, key, name.size + 1) == PERCENT_FINE &&
                 !key_fault(key);

    if (sound)
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
