#include "store/zookeeper/store_record.h"

#include <string.h>

#include "base/text.h"
#include "store/url_parts.h"

#define PORT 2181

/* Returns what is wrong with the path of a node, without the '/' in front; NULL: nothing. */
static const char *check_node(const char *path)
{
    size_t length;

    for (const char *part = path;; part += length + 1) {
        length = strcspn(part, "/");
        if (length == 0)
            return "has an empty part in its path";
        if (length <= 2 && strspn(part, ".") == length)
            return "has a '.' or '..' in its path";
        if (part[length] == '\0')
            return NULL;
    }
}

static const char *parse(struct url *url, char *rest)
{
    char *path;
    const char *fault = url_take_authority(url, &rest, &path);

    if (fault || (fault = url_take_hosts(url, rest, PORT)))
        return fault;
    if (url->password && !url->user)
        return "has a password without a user";
    if (!path || !*path)
        return NULL;
    size_t length = strlen(path);
    length -= path[length - 1] == '/';
    path[length] = '\0';
    url->path = path;
    fault = url_decode(path, path + length);
    return fault ? fault : check_node(path);
}

static void print(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    if (url->path) {
        text_append(out, size, "/");
        url_append_encoded(url->path, "?#", out, size);
    }
}

const struct store_record zookeeper_record = {.scheme = "zookeeper",
                                              .secure = "zookeepers",
                                              .name = "zookeeper://",
                                              .abilities = STORE_READERS | STORE_SEMAPHORES |
                                                           STORE_SEVERAL_KEYS | STORE_QUEUE |
                                                           STORE_FORCE | STORE_TOGETHER,
                                              .fails_over = true,
                                              .parse = parse,
                                              .print = print,
                                              .open = zookeeper_open,
                                              .check = zookeeper_check};
