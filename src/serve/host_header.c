#include "serve/host_header.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 255

static bool is_address(int family, const char *text)
{
    struct in6_addr address; /* has room for either */

    return inet_pton(family, text, &address) == 1;
}

/* Drops the full stop at the end of a name, which means the same without. */
static void drop_stop(char *name)
{
    size_t length = strlen(name);

    if (length > 1 && name[length - 1] == '.')
        name[length - 1] = '\0';
}

bool host_header_is_known(const char *header, const char *const *names, size_t count)
{
    bool bracketed = *header == '[';
    size_t length = strcspn(header += bracketed, bracketed ? "]" : ":");
    const char *rest = header + length;
    char host[NAME_MAX_BYTES + 1];

    if (bracketed && *rest++ != ']')
        return false;
    if (*rest == ':') /* and then the port */
        rest += 1 + strspn(rest + 1, "0123456789");
    if (length == 0 || length >= sizeof host || *rest)
        return false;
    memcpy(host, header, length);
    host[length] = '\0';
    if (bracketed)
        return is_address(AF_INET6, host);
    drop_stop(host);
    bool known = is_address(AF_INET, host);
    for (size_t i = 0; !known && i < count; i++) {
        char name[NAME_MAX_BYTES + 1] = "";
        strncpy(name, names[i], sizeof name - 1);
        drop_stop(name);
        known = strcasecmp(host, name) == 0;
    }
    return known;
}

bool host_header_is_name(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > NAME_MAX_BYTES || strcmp(name, ".") == 0)
        return false;
    for (const char *c = name; *c; c++) {
        bool plain = (unsigned char)*c > ' ' && *c != 0x7f;
        if (!plain || strchr("/:@[]?#*\\\"", *c))
            return false;
    }
    return true;
}
