/* Asking the Sentinels of a URL, and hearing all of them. */
#include "sentinel_facts.h"
#include "loop.h"
#include "sentinels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void heard(void *arg, const struct sentinel_vote *vote)
{
    (void)vote;
    loop_stop(arg);
}

static void ask(struct loop *loop, struct tls *tls, const struct store_address *address,
                struct sentinel_facts *facts)
{
    const struct url *url = address->urls;
    struct sentinels *sentinels = sentinels_new(loop, url, tls);

    sentinels_ask_all(sentinels, url->password ? url->password : address->password,
                      moment_plus(moment_now(), address->connect_timeout), heard, loop);
    loop_run(loop);
    facts->count = sentinels_count(sentinels);
    for (size_t i = 0; i < facts->count; i++) {
        facts->hosts[i] = *sentinels_host(sentinels, i);
        facts->words[i] = *sentinels_word(sentinels, i);
    }
    sentinels_free(sentinels);
}

bool sentinel_facts_ask(const struct store_address *address, struct sentinel_facts *facts,
                        char *fault, size_t size)
{
    struct tls *tls = address->urls->tls ? tls_new(&address->tls, fault, size) : NULL;
    struct loop *loop = loop_new();

    *facts = (struct sentinel_facts){0};
    if (!loop)
        snprintf(fault, size, "cannot wait for the Sentinels: %s", strerror(errno));
    bool able = loop && (tls || !address->urls->tls);
    if (able)
        ask(loop, tls, address, facts);
    tls_discard(tls);
    if (loop)
        loop_free(loop);
    return able;
}
