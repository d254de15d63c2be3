#include "cli/status_line.h"

#include "cli/say.h"

#define QUIET_NS  (1 * NS_PER_SEC) /* a shorter wait is not worth a line */
#define REDRAW_NS (1 * NS_PER_SEC)
#define REPEAT_NS (60 * NS_PER_SEC)

int64_t status_line_show(struct status_line *status_line)
{
    bool redraw = say_on_terminal();
    char line[800];

    if (status_line->silent)
        return 0;
    status_line->begun = true;
    status_line->compose(status_line->arg, redraw ? say_columns() : SIZE_MAX, line, sizeof line);
    status_line->shown = !redraw || say_status(line);
    if (!redraw)
        say_warning("%s", line);
    return redraw ? REDRAW_NS : REPEAT_NS;
}

/* Shows the line again, when its figures have changed. */
static void show_again(struct loop_timer *timer)
{
    struct status_line *status_line = timer->owner;
    int64_t pause = status_line_show(status_line);

    loop_arm(status_line->loop, timer, moment_plus(loop_now(status_line->loop), pause));
}

void status_line_init(struct status_line *status_line, struct loop *loop, bool silent,
                      status_line_compose *compose, void *arg)
{
    *status_line =
        (struct status_line){.loop = loop, .silent = silent, .compose = compose, .arg = arg};
    status_line->timer = (struct loop_timer){.fire = show_again, .owner = status_line};
}

void status_line_begin(struct status_line *status_line)
{
    if (!status_line->begun && !status_line->silent)
        loop_arm(status_line->loop, &status_line->timer,
                 moment_plus(loop_now(status_line->loop), QUIET_NS));
    status_line->begun = true;
}

void status_line_wipe(struct status_line *status_line)
{
    if (status_line->begun && !status_line->silent && say_on_terminal())
        say_status("");
}

void status_line_end(struct status_line *status_line)
{
    loop_disarm(status_line->loop, &status_line->timer);
    status_line_wipe(status_line);
    status_line->begun = false;
}
