/* A store above another store: what it does not do itself it passes on, both ways. */
#ifndef RLOCK_STORE_CLUSTER_LAYER_H
#define RLOCK_STORE_CLUSTER_LAYER_H

#include "store/store.h"

/* Embedded first, as struct store is. */
struct store_layer {
    struct store base;
    struct store *below; /* the layer closes it */
};

/* Operations of a layer: the store below does the same. */
void layer_force(struct store *layer, const struct force_request *request, struct moment until,
                 store_done *done, void *arg);
void layer_survey(struct store *layer, const struct survey_request *request, struct moment until,
                  store_done *done, void *arg);
void layer_latch(struct store *layer, const struct latch_request *request, struct moment until,
                 store_done *done, void *arg);
void layer_adjust(struct store *layer, const struct adjust_request *request, struct moment until,
                  store_done *done, void *arg);
void layer_mark(struct store *layer, const struct mark_request *request, struct moment until,
                store_done *done, void *arg);

/* Events of a store below: "above", the struct store that listens, tells its own listener. */
void layer_poked(void *above);
void layer_handed(void *above, const struct answer *grant);

#endif
