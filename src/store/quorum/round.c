#include "store/quorum/round.h"

void quorum_round_begin(struct quorum_round *round, enum quorum_rule rule, int64_t lease,
                        struct moment until)
{
    round->number++;
    round->begun = loop_now(round->loop);
    round->until = until;
    quorum_begin(&round->votes, rule, round->count, lease / NS_PER_MS);
    quorum_round_close_at(round, until);
}

void quorum_round_end(struct quorum_round *round)
{
    round->number++;
    loop_disarm(round->loop, &round->timer);
}

void quorum_round_ask(struct quorum_round *round, struct quorum_node *node,
                      struct quorum_order order)
{
    order.round = round->number;
    order.until = round->until;
    quorum_node_order(node, order);
}

void quorum_round_ask_all(struct quorum_round *round, enum store_verb task)
{
    for (size_t i = 0; i < round->count; i++)
        quorum_round_ask(round, &round->nodes[i], (struct quorum_order){.task = task});
}

void quorum_round_cast(struct quorum_round *round, const struct quorum_node *node, enum vote vote,
                       const struct quorum_reply *reply)
{
    quorum_cast(&round->votes, (size_t)(node - round->nodes), vote, reply ? reply->report : NULL,
                reply ? reply->answer : NULL);
}

void quorum_round_close_at(struct quorum_round *round, struct moment due)
{
    loop_arm(round->loop, &round->timer, due);
}

void quorum_round_close_in(struct quorum_round *round, int64_t ns)
{
    struct moment due = moment_plus(loop_now(round->loop), ns);

    quorum_round_close_at(round, moment_min(round->timer.due, due));
}

int64_t quorum_round_elapsed(const struct quorum_round *round)
{
    return moment_until(round->begun, loop_now(round->loop));
}

int64_t quorum_round_extra_time(const struct quorum_round *round)
{
    int64_t elapsed = quorum_round_elapsed(round);

    return elapsed > QUORUM_EXTRA_NS ? elapsed : QUORUM_EXTRA_NS;
}
