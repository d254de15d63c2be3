/* Transitions of locks, a line each, as text for people and as JSON for programs; the names in JSON
 * are a contract, which rlock-events(1) documents. Pure but for the stream that is given. */
#ifndef RLOCK_CMD_RENDER_EVENTS_H
#define RLOCK_CMD_RENDER_EVENTS_H

#include <stdio.h>

#include "cli/json.h"
#include "cmd/transitions.h"

void render_event(FILE *out, const struct transition *event);
void render_event_json(FILE *out, const struct json_library *json, const struct transition *event);

#endif
