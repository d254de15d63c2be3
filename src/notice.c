/* When the line of a wait is shown. */
#include "notice.h"

#include "say.h"

#define PATIENCE_NS (1 * NS_PER_SEC) /* nobody wants to read of a shorter wait */
#define REDRAW_NS   (1 * NS_PER_SEC)
#define REPEAT_NS   (60 * NS_PER_SEC)

static void tell(struct loop_timer *timer)
{
    struct notice *notice = timer->owner;
    bool redraw = say_on_terminal();
    char line[800];

    notice->compose(notice->arg, line, sizeof line);
    if (redraw)
        say_status(line);
    else
        say_warning("%s", line);
    loop_arm(notice->loop, timer,
             moment_plus(loop_now(notice->loop), redraw ? REDRAW_NS : REPEAT_NS));
}

void notice_init(struct notice *notice, struct loop *loop, bool silent,
                 void (*compose)(void *arg, char *line, size_t size), void *arg)
{
    *notice = (struct notice){.loop = loop, .silent = silent, .compose = compose, .arg = arg};
    notice->timer = (struct loop_timer){.fire = tell, .owner = notice};
}

void notice_begin(struct notice *notice)
{
    if (!notice->begun && !notice->silent)
        loop_arm(notice->loop, &notice->timer, moment_plus(loop_now(notice->loop), PATIENCE_NS));
    notice->begun = true;
}

void notice_wipe(struct notice *notice)
{
    if (notice->begun && !notice->silent && say_on_terminal())
        say_status("");
}

void notice_end(struct notice *notice)
{
    loop_disarm(notice->loop, &notice->timer);
    notice_wipe(notice);
    notice->begun = false;
}
