#include "lives/names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lives/replication.h"
#include "lives/sentinels.h"
#include "lives/server.h"

/* How many lives have one with a name, of those with one server. */
#define NAMES_EVERY 6
/* Longer than a look-up is waited for. */
#define SILENCE (30 * SEC)

struct naming naming;

void names_choose(void)
{
    bool used = replication.servers ? !one_in(4) && !sentinels_here.used : one_in(NAMES_EVERY);

    naming = (struct naming){.used = used && server_count == 1};
    naming.takes = chance_below(CHOOSE(1, 5, 10, 2000) * MS);
    if (one_in(3))
        naming.nowhere = one_in(3) ? NOWHERE_SILENT : NOWHERE;
}

bool names_are_slow(void)
{
    return naming.used && (naming.takes > 10 * MS || naming.nowhere == NOWHERE_SILENT);
}

/* As freeaddrinfo() frees it: with its address in one piece. */
static struct addrinfo *address_new(int number, int port)
{
    struct {
        struct addrinfo info;
        struct sockaddr_in address;
    } *one = calloc(1, sizeof *one);

    one->address.sin_family = AF_INET;
    one->address.sin_port = htons((uint16_t)port);
    one->address.sin_addr.s_addr = htonl(0x0a000000 + (uint32_t)number + 1);
    one->info.ai_family = AF_INET;
    one->info.ai_addr = (struct sockaddr *)&one->address;
    one->info.ai_addrlen = sizeof one->address;
    return &one->info;
}

int names_look_up(const char *host, const char *service, struct addrinfo **found, int64_t *until)
{
    static const int faults[NAMES_AWAY] = {EAI_AGAIN, EAI_NONAME, EAI_AGAIN};
    int port = atoi(service);

    *until = world.now + chance_below(naming.takes);
    if (strcmp(host, NAME_OF_SERVER) != 0)
        return EAI_NONAME;
    if (world.now < naming.away_until) {
        *until += naming.away == NAMES_SILENT ? SILENCE : 0;
        return faults[naming.away];
    }
    *found = address_new(naming.server, port);
    if (naming.nowhere) {
        struct addrinfo *server = *found;
        *found = address_new(naming.nowhere, port);
        (*found)->ai_next = server;
    }
    return 0;
}
