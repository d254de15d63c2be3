#include "store/cluster/layer.h"

static struct store *below(struct store *layer)
{
    return ((struct store_layer *)(void *)layer)->below;
}

void layer_force(struct store *layer, const struct force_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store_force(below(layer), request, until, done, arg);
}

void layer_survey(struct store *layer, const struct survey_request *request, struct moment until,
                  store_done *done, void *arg)
{
    store_survey(below(layer), request, until, done, arg);
}

void layer_latch(struct store *layer, const struct latch_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store_latch(below(layer), request, until, done, arg);
}

void layer_adjust(struct store *layer, const struct adjust_request *request, struct moment until,
                  store_done *done, void *arg)
{
    store_adjust(below(layer), request, until, done, arg);
}

void layer_mark(struct store *layer, const struct mark_request *request, struct moment until,
                store_done *done, void *arg)
{
    store_mark(below(layer), request, until, done, arg);
}

void layer_poked(void *above)
{
    store_poke(above);
}

void layer_handed(void *above, const struct answer *grant)
{
    store_hand(above, grant);
}
