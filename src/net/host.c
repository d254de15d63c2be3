/* Names and addresses of hosts. */
#include "net/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define LETTERS          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define LABEL_LENGTH_MAX 63
#define NAME_LENGTH_MAX  253 /* without the last '.' */

bool host_is_name(const char *text)
{
    const char *label = text;

    do {
        size_t length = strspn(label, LETTERS);
        bool ends = label[length] == '\0';
        if (length == 0 || length > LABEL_LENGTH_MAX || label[0] == '-' ||
            label[length - 1] == '-' || (!ends && label[length] != '.'))
            return false;
        label += length + !ends;
    } while (*label);
    size_t length = (size_t)(label - text);
    return length - (label[-1] == '.') <= NAME_LENGTH_MAX;
}

bool host_is_address(const char *text)
{
    struct in6_addr address;

    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}
