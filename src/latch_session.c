/* Errands of a command, its signals, and what it says it waits for. */
#include "latch_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "terminal.h"

/* -- what the user reads --------------------------------------------------------------------- */

static void compose(void *arg, char *line, size_t size)
{
    const struct latch_session *session = arg;
    const struct answer *answer = &session->end.answer;

    if (answer->verdict == VERDICT_GRANTED)
        snprintf(line, size, "waiting for latch %.120s: %" PRId64 " of %" PRId64 " left",
                 session->key, answer->latch.left, answer->latch.number);
    else
        snprintf(line, size, "waiting for latch %.120s, which is not set yet", session->key);
}

static void on_waiting(void *arg, const struct answer *answer)
{
    struct latch_session *session = arg;

    session->end.answer = *answer;
    notice_begin(&session->notice);
}

static void on_trouble(void *arg, const char *why)
{
    const struct latch_session *session = arg;
    say_warning("%s: %s", session->key, why);
}

static void on_over(void *arg, const struct errand_end *end)
{
    struct latch_session *session = arg;

    session->end = *end;
    loop_stop(session->query.loop);
}

/* -- signals --------------------------------------------------------------------------------- */

static void on_signal(void *owner, int signo)
{
    struct latch_session *session = owner;

    if (!session->errand && session->signalled) {
        session->signalled(session->arg, signo);
    } else if (signo == SIGTSTP) {
        notice_wipe(&session->notice);
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo)) {
        session->signal = signo;
        loop_stop(session->query.loop);
    }
}

bool latch_session_catch(struct latch_session *session)
{
    sigset_t caught;

    child_block_signals(&session->inherited);
    child_choose_signals(&caught);
    say_set_job(getpgrp());
    return loop_signals(session->query.loop, &caught, on_signal, session) == 0;
}

/* -- errands --------------------------------------------------------------------------------- */

bool latch_session_open(struct latch_session *session, const char *key,
                        const struct store_address *address, char *fault, size_t size)
{
    *session = (struct latch_session){.key = key};
    if (!query_open(&session->query, address, fault, size))
        return false;
    notice_init(&session->notice, session->query.loop, say_verbosity() == SAY_QUIET, compose,
                session);
    return true;
}

void latch_session_close(struct latch_session *session)
{
    query_close(&session->query);
}

bool latch_session_do(struct latch_session *session, const struct errand_plan *plan)
{
    static const struct errand_events events = {on_waiting, on_trouble, on_over};
    struct loop *loop = session->query.loop;

    session->errand = errand_start(loop, session->query.store, plan, &events, session);
    if (loop_run(loop) < 0) {
        session->end = (struct errand_end){
            ERRAND_FAILED, {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE}};
        snprintf(session->end.answer.text, sizeof session->end.answer.text,
                 "cannot wait for the store: %s", strerror(errno));
    }
    notice_end(&session->notice);
    if (session->signal) {
        store_close(session->query.store);
        session->query.store = NULL;
    }
    errand_free(session->errand);
    session->errand = NULL;
    return session->signal == 0;
}
