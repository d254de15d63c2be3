/* rlock-top: locks on a full screen, with ncurses. `rlock top` executes it. */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "cli/lock_watch.h"
#include "cli/screen.h"
#include "cli/timeline.h"
#include "cmd/commands.h"
#include "os/terminal.h"
#include "top/rows.h"

#define EVERY (2 * NS_PER_SEC)
/* How long an answer may take before it is said that there is none. */
#define PATIENCE (1 * NS_PER_SEC)

enum {
    LINE_HEADING,
    LINE_FILTER,
    LINE_TITLES,
    LINE_ROWS,
    LINES_AROUND = LINE_ROWS + 2 /* and an empty one and the keys at the bottom */
};

enum { KEY_ESCAPE = 27, KEY_RETURN = '\r', KEY_WIPE = 'U' - '@', KEY_RUBOUT = 127 };
enum { COLOR_OF_TROUBLE = 1, COLOR_OF_WAITING };

static int take_away(void *arg);
static int pause_or_resume(void *arg);

struct top {
    struct call call;
    struct inherited inherited;
    struct terminal terminal;
    struct lock_watch locks;
    struct lock_watch full; /* of the lock in "detail", with its last runs */
    struct loop_io keys;
    SCREEN *screen; /* NULL: not on it yet */

    struct rows rows;
    bool typing;     /* a filter */
    bool helping;    /* the keys are shown */
    char *detail;    /* the KEY of the lock that is shown in full; NULL: all are shown as rows */
    char *pattern;   /* of "full", which finds one lock; kept while the store is asked */
    size_t scrolled; /* lines of it that are above the window */
    bool resting;    /* between two surveys, where loop_stop() only ends the pause */
    char *subject;   /* the KEY of the lock that a question is about; or NULL */
    /* Asks about it and acts, in a process of its own, on the screen that was there before. */
    int (*ask)(void *top);
    bool quit;
};

/* -- lines of the screen ----------------------------------------------------------------------- */

/* Puts a line on the screen, of that number from the top: a text of "length" bytes without control
 * characters, cut to the window. The whole line has the attributes. */
static void put_line(int line, attr_t attributes, const char *text, size_t length)
{
    char *plain FREED = mem_checked(strndup(text, length));

    if (line < 0 || line >= LINES)
        return;
    attrset(attributes);
    mvhline(line, 0, ' ' | attributes, COLS);
    mvaddnstr(line, 0, plain, (int)utf8_fit(plain, COLS > 0 ? (size_t)COLS : 0));
    attrset(A_NORMAL);
}

static void put_text(int line, attr_t attributes, const char *text)
{
    put_line(line, attributes, text, strlen(text));
}

/* Returns where the line of that number, from 0, begins, and its length in *length. NULL if there
 * are not so many. */
static const char *find_line(const char *text, size_t number, size_t *length)
{
    for (; number > 0 && *text; number--)
        text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
    *length = strcspn(text, "\n");
    return *text ? text : NULL;
}

static size_t room_for_rows(void)
{
    return LINES > LINES_AROUND ? (size_t)(LINES - LINES_AROUND) : 1;
}

/* -- what is on it ----------------------------------------------------------------------------- */

static bool fits_width(const char *text)
{
    return utf8_width(text) <= (size_t)COLS;
}

/* Draws the first line. In a narrow window the name goes first, and then the time: the number of
 * locks, or the trouble with the store, says more. */
static void draw_heading(const struct top *top)
{
    static const char title[] = "rlock top  ";
    attr_t trouble = top->locks.away ? COLOR_PAIR(COLOR_OF_TROUBLE) : A_NORMAL;
    struct strbuf heading ENDED_BY(strbuf_free) = {0};

    strbuf_puts(&heading, title);
    lock_watch_heading(&top->locks, &heading);
    const char *shown = heading.text, *rest;
    if (!fits_width(shown))
        shown += strlen(title);
    if (!fits_width(shown) && (rest = strstr(shown, "  ")))
        shown = rest + strspn(rest, " ");
    put_text(LINE_HEADING, A_BOLD | trouble, shown);
}

static const char *const orders[ROWS_ORDERS] = {
    [ROWS_BY_URGENCY] = "",
    [ROWS_BY_AGE] = "sorted by age  ",
    [ROWS_BY_WAITERS] = "sorted by waiters  ",
    [ROWS_BY_KEY] = "sorted by key  ",
};

/* Draws the order, if it is not that of the start, and the filter. */
static void draw_choice(const struct top *top)
{
    char filter[UTF8_ESCAPED_SIZE(ROWS_FILTER_SIZE)];
    char line[sizeof filter + 64];
    const char *order = orders[top->rows.order];

    utf8_escape(top->rows.filter, filter, sizeof filter);
    if (top->typing)
        snprintf(line, sizeof line, "%s/%s_", order, filter);
    else if (*filter)
        snprintf(line, sizeof line, "%s/%s  %zu of %zu", order, filter, top->rows.count,
                 top->locks.list.locks.count);
    else
        snprintf(line, sizeof line, "%s", order);
    put_text(LINE_FILTER, A_NORMAL, line);
}

/* Draws the table of the locks, as far as there is room: its first line is that of the titles. */
static void draw_rows(struct top *top)
{
    struct render_style style = {.width = COLS};
    struct rows *rows = &top->rows;
    struct strbuf table ENDED_BY(strbuf_free) = {0};
    size_t room = room_for_rows(), length;
    const char *line;

    if (rows->count == 0) {
        put_text(LINE_ROWS, A_NORMAL, *rows->filter ? "no locks match" : "no locks");
        return;
    }
    rows_scroll(rows, room);
    render_table(&table, rows->locks, rows->count, &style);
    if ((line = find_line(table.text, 0, &length)))
        put_line(LINE_TITLES, A_BOLD | A_UNDERLINE, line, length);
    for (size_t i = rows->first; i < rows->count && i < rows->first + room; i++) {
        attr_t look = rows->locks[i].waiter_count > 0 ? COLOR_PAIR(COLOR_OF_WAITING) : A_NORMAL;
        if (i == rows->chosen)
            look |= A_REVERSE;
        if ((line = find_line(table.text, i + 1, &length)))
            put_line(LINE_ROWS + (int)(i - rows->first), look, line, length);
    }
}

/* Returns the lock as the last survey of all has it; NULL: it is not there. */
static const struct lock_view *find_lock(const struct top *top, const char *key)
{
    const struct lock_views *locks = &top->locks.list.locks;

    for (size_t i = 0; i < locks->count; i++)
        if (strcmp(locks->views[i].key, key) == 0)
            return &locks->views[i];
    return NULL;
}

/* Prints all about one lock, wrapped to the window. Until the store has told its last runs, and
 * while it is away, they are not there. */
static void print_detail(const struct top *top, struct strbuf *out)
{
    struct lock_view free_lock = {.key = top->detail};
    const struct lock_views *full = &top->full.list.locks;
    const struct lock_view *lock = find_lock(top, top->detail);
    const struct timeline_style drawing = {.width = COLS > TIMELINE_LEAST ? COLS : TIMELINE_LEAST,
                                           .ascii = !screen_shows_utf8()};
    const struct render_style style = {.width = COLS};
    struct strbuf text ENDED_BY(strbuf_free) = {0};
    struct past_run *runs FREED = NULL;
    size_t count = 0;

    if (full->count > 0 && strcmp(full->views->key, top->detail) == 0) {
        lock = full->views;
        runs = past_runs_collect(full, &count);
    }
    render_long(&text, lock ? lock : &free_lock, 1, &style);
    window_wrap(out, text.text, COLS);
    if (count > 0) {
        strbuf_putc(out, '\n');
        timeline_print(out, top->detail, runs, count, &drawing);
    }
}

/* Draws a text that may be longer than the window, of which the first line is a heading. The window
 * begins at line "scrolled", which goes back where the text ends above. */
static void draw_text(struct top *top, const char *text)
{
    size_t room = room_for_rows() + 1, lines = 0, length; /* the line of titles is free for it */
    const char *line;

    while (find_line(text, lines, &length))
        lines++;
    if (top->scrolled + room > lines)
        top->scrolled = lines > room ? lines - room : 0;
    for (size_t i = 0; i < room && (line = find_line(text, top->scrolled + i, &length)); i++)
        put_line(LINE_TITLES + (int)i, i + top->scrolled == 0 ? A_BOLD : A_NORMAL, line, length);
}

static const char help[] = "Keys\n"
                           "Up k, Down j  choose a lock\n"
                           "Enter         all about it\n"
                           "/             filter\n"
                           "< >           sort otherwise\n"
                           "p             pause it, or resume it\n"
                           "x             take it away\n"
                           "?             these keys\n"
                           "q             back; quit\n";

/* The keys that the last line names. "? help" is the first, as the last ones may not fit. */
static const char *keys_of(const struct top *top)
{
    if (top->typing)
        return "Enter keep this filter   Esc no filter";
    if (top->helping)
        return "q back";
    if (top->detail)
        return "q back   ? help   p pause   x take away";
    return "? help   q quit   Enter details   / filter   < > sort   p pause   x take away";
}

/* Draws the whole screen anew: the heading, then the help, one lock or the rows, and at the bottom
 * the keys to press. arg: the struct top. */
static void draw_screen(void *arg)
{
    struct top *top = arg;
    struct strbuf text ENDED_BY(strbuf_free) = {0};

    erase();
    draw_heading(top);
    if (top->helping) {
        draw_text(top, help);
    } else if (top->detail) {
        print_detail(top, &text);
        draw_text(top, text.text);
    } else {
        draw_choice(top);
        draw_rows(top);
    }
    if (LINES >= LINES_AROUND) {
        /* As many of the keys as fit: three spaces are between two of them. */
        const char *keys = keys_of(top);
        size_t length = strlen(keys), fitting = utf8_fit(keys, (size_t)COLS);
        while (length > fitting && length > 0)
            for (length--; length > 0 && strncmp(keys + length, "   ", 3) != 0; length--)
                ;
        put_line(LINES - 1, A_REVERSE, keys, length);
    }
    refresh();
}

/* -- what is typed ----------------------------------------------------------------------------- */

/* Ends the pause between two surveys, so that what was typed is done at once. A survey, which
 * loop_stop() would break off, is waited for, unless the user quits. */
static void end_rest(struct top *top)
{
    if (top->resting || top->quit)
        loop_stop(top->call.query.loop);
}

/* Ends the filter after so many bytes, and filters the rows anew. */
static void set_filter(struct top *top, size_t length)
{
    top->rows.filter[length] = '\0';
    rows_take(&top->rows, &top->locks.list.locks);
}

static bool is_enter(int key)
{
    return key == KEY_RETURN || key == KEY_ENTER || key == '\n';
}

/* Takes a key while the filter is typed; each changes the rows at once. */
static void type_filter(struct top *top, int key)
{
    char *filter = top->rows.filter;
    size_t length = strlen(filter);

    if (is_enter(key)) {
        top->typing = false;
    } else if (key == KEY_ESCAPE) {
        top->typing = false;
        set_filter(top, 0);
    } else if (key == KEY_WIPE) {
        set_filter(top, 0);
    } else if (key == KEY_BACKSPACE || key == KEY_RUBOUT || key == '\b') {
        /* a character, of which only the first byte is not 10xxxxxx */
        while (length > 0 && ((unsigned char)filter[--length] & 0xc0) == 0x80)
            ;
        set_filter(top, length);
    } else if (key >= ' ' && key < 256 && length + 1 < ROWS_FILTER_SIZE) {
        filter[length] = (char)key;
        set_filter(top, length + 1);
    }
}

#define TO_THE_END 1000000 /* more lines than there are */

/* Returns how many lines down a key moves, in a window of "room" lines; 0: it is not for moving. */
static long lines_to_move(int key, size_t room)
{
    switch (key) {
    case KEY_DOWN:
    case 'j': return 1;
    case KEY_UP:
    case 'k': return -1;
    case KEY_NPAGE:
    case ' ': return (long)room;
    case KEY_PPAGE: return -(long)room;
    case KEY_HOME:
    case 'g': return -TO_THE_END;
    case KEY_END:
    case 'G': return TO_THE_END;
    default: return 0;
    }
}

static void close_detail(struct top *top)
{
    free(top->detail);
    top->detail = NULL;
}

/* Notes the question that "p" (pause or resume) or "x" (take away) is about the lock "key", which
 * watch_locks() asks then; NULL: no lock is chosen, and nothing is asked. False: another key was
 * typed. */
static bool take_question(struct top *top, int typed, const char *key)
{
    if (typed != 'p' && typed != 'x')
        return false;
    if (key) {
        top->subject = mem_strdup(key);
        top->ask = typed == 'p' ? pause_or_resume : take_away;
        end_rest(top);
    }
    return true;
}

/* Scrolls as the key says; not above the first line. draw_text() sees to the last. */
static void scroll_text(struct top *top, int key)
{
    long by = lines_to_move(key, room_for_rows());

    if (by < 0 && top->scrolled < (size_t)-by)
        top->scrolled = 0;
    else
        top->scrolled += (size_t)by;
}

/* Takes a key while the help is shown. */
static void type_in_help(struct top *top, int key)
{
    if (key == 'q' || key == '?' || key == KEY_ESCAPE || is_enter(key)) {
        top->helping = false;
        top->scrolled = 0;
    } else {
        scroll_text(top, key);
    }
}

/* Takes a key while one lock is shown. */
static void type_in_detail(struct top *top, int key)
{
    if (key == 'q' || key == KEY_ESCAPE || is_enter(key))
        close_detail(top);
    else if (!take_question(top, key, top->detail))
        scroll_text(top, key);
}

/* Takes a key while the rows are shown. */
static void type_in_rows(struct top *top, int key)
{
    const struct lock_view *lock = rows_chosen(&top->rows);

    if (key == 'q') {
        top->quit = true;
        end_rest(top);
    } else if (key == '/') {
        top->typing = true;
    } else if (key == KEY_ESCAPE) {
        set_filter(top, 0);
    } else if (key == '<' || key == '>') {
        top->rows.order = (enum rows_order)(
            ((int)top->rows.order + (key == '>' ? 1 : -1) + ROWS_ORDERS) % ROWS_ORDERS);
        rows_take(&top->rows, &top->locks.list.locks);
    } else if (is_enter(key) && lock) {
        /* The lock's last runs are asked for at once. */
        top->detail = mem_strdup(lock->key);
        top->scrolled = 0;
        end_rest(top);
    } else if (!take_question(top, key, lock ? lock->key : NULL)) {
        rows_move(&top->rows, lines_to_move(key, room_for_rows()));
    }
}

/* Takes all keys that were pressed. A question about a lock ("subject") ends the loop, and is asked
 * on the usual screen. Without a key and with the terminal gone, the program ends as by SIGHUP. */
static void on_keys(struct loop_io *io, int events)
{
    struct top *top = io->owner;
    int key, count = 0;

    for (; !top->quit && !top->subject && (key = getch()) != ERR; count++) {
        if (top->typing)
            type_filter(top, key);
        else if (top->helping)
            type_in_help(top, key);
        else if (key == '?')
            top->helping = true, top->scrolled = 0;
        else if (top->detail)
            type_in_detail(top, key);
        else
            type_in_rows(top, key);
    }
    if (count == 0 && (events & LOOP_GONE)) {
        top->call.signal = SIGHUP;
        loop_stop(top->call.query.loop);
    } else if (!top->quit && !top->subject) {
        draw_screen(top);
    }
}

/* -- the terminal ------------------------------------------------------------------------------ */

/* Stops this job until it is in the foreground. False: nothing can put it there. */
static bool await_foreground(struct top *top)
{
    if (!terminal_exists(&top->terminal))
        return true;
    while (!terminal_is_ours(&top->terminal))
        if (!terminal_stop(SIGTTIN, TERMINAL_STOPS_PROCESS))
            return false;
    return true;
}

/* Takes the whole terminal. top->screen is NULL if it is none that can be drawn upon. */
static void enter_screen(struct top *top)
{
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8"); /* as all that rlock prints is */
    top->screen = newterm(NULL, stdout, stdin);
    if (!top->screen)
        return;
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50); /* ms, until an Escape is not the begin of another key's sequence */
    if (top->call.settings.color != COLOR_NEVER && has_colors()) {
        start_color();
        use_default_colors();
        init_pair(COLOR_OF_TROUBLE, COLOR_RED, -1);
        init_pair(COLOR_OF_WAITING, COLOR_YELLOW, -1);
    }
}

/* Ends the program, or stops it as a shell expects: with the usual screen, until it is in the
 * foreground again. Draws again after that, and when the window has another size. */
static void on_signal(void *owner, int signo)
{
    struct top *top = owner;

    if (child_signal_is_fatal(signo)) {
        top->call.signal = signo;
        loop_stop(top->call.query.loop);
        return;
    }
    if (signo == SIGTSTP) {
        if (top->screen)
            endwin();
        terminal_stop(SIGTSTP, TERMINAL_STOPS_PROCESS);
        if (!await_foreground(top)) {
            top->call.signal = SIGHUP;
            loop_stop(top->call.query.loop);
        }
    }
    if (!top->screen || top->call.signal)
        return;
    if (signo == SIGTSTP || signo == SIGCONT || signo == SIGWINCH) {
        struct window window = screen_window();
        resizeterm(window.lines, window.columns);
        clearok(stdscr, TRUE);
        draw_screen(top);
    }
}

/* -- questions about a lock -------------------------------------------------------------------- */

#define WORDS_MORE 4 /* besides its options, of a command that is run here */

/* Runs the command as "rlock NAME OPTIONS WORDS", with the options that rlock top was given, in a
 * process of its own, which ends then and frees nothing. more: the words, up to a NULL. Nothing is
 * executed, so no password is on an argument list. Returns the exit status. */
static int run_command(const struct top *top, const struct command *command,
                       const char *const *more)
{
    size_t count = 1 + top->call.arguments.option_count;
    char **words = mem_zeroed((count + WORDS_MORE + 1) * sizeof *words);

    words[0] = mem_strdup(command->name);
    for (size_t i = 1; i < count; i++) {
        const struct given_option *option = &top->call.arguments.options[i - 1];
        words[i] = strbuf_print("--%s%s%s", option->name, option->value ? "=" : "",
                                option->value ? option->value : "");
    }
    for (; *more; more++)
        words[count++] = mem_strdup(*more);
    return command_execute(command, (int)count, words);
}

#define NO_KEY _POSIX_VDISABLE

/* Has the terminal end a line that is typed at Escape, too, and at "key"; NO_KEY: at no other.
 * Ncurses puts back what was there before. */
static void end_lines_at(cc_t key)
{
    struct termios mode;

    if (tcgetattr(STDIN_FILENO, &mode) < 0)
        return;
    mode.c_cc[VEOL] = KEY_ESCAPE;
    mode.c_cc[VEOL2] = key;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

/* Keeps the output of a command on the screen until Enter is pressed; not if the user has left its
 * question without an answer. Returns the command's status. */
static int wait_for_enter(int status)
{
    char line[16];

    if (!say_was_left())
        say_ask("Enter shows the locks again", line, sizeof line);
    return status;
}

/* Runs rlock force-release KEY, which shows the holders and asks; with --now where the store cannot
 * ask a holder. Returns its status. */
static int take_away(void *arg)
{
    const struct top *top = arg;
    bool asks = store_can(&top->call.settings.address, STORE_ASK);
    const char *const words[] = {top->subject, asks ? NULL : FORCE_RELEASE_NOW, NULL};

    fprintf(stderr, "\nrlock force-release %s\n", top->subject);
    end_lines_at('n'); /* a no without Enter */
    return wait_for_enter(run_command(top, &command_force_release, words));
}

/* Asks for a pause of the chosen lock, or for its end, on the usual screen, and runs the
 * subcommand. Returns its status; STATUS_OK: the user does not want it. */
static int pause_or_resume(void *arg)
{
    const struct top *top = arg;
    const struct lock_view *lock = find_lock(top, top->subject);
    char answer[16], length[32], why[IDENTITY_WORD_MAX];
    const char *pattern = key_to_pattern(top->subject);
    const char *const pause[] = {"-m", why, pattern, length, NULL};
    const char *const resume[] = {pattern, NULL};

    end_lines_at('n'); /* a no without Enter; no duration has it */
    if (lock && lock->pause.owner[0]) {
        fprintf(stderr, "\nrlock resume %s\n", pattern);
        if (!say_ask("Let others in again? [y/N]", answer, sizeof answer) ||
            strcasecmp(answer, "y") != 0)
            return STATUS_OK;
        return wait_for_enter(run_command(top, &command_resume, resume));
    }
    fprintf(stderr, "\nrlock pause %s\n", pattern);
    if (!say_ask("For how long, as 30m or 2h? [no]", length, sizeof length))
        return STATUS_OK;
    end_lines_at(NO_KEY);
    if (!say_ask("Why? [no pause]", why, sizeof why))
        return STATUS_OK;
    return wait_for_enter(run_command(top, &command_pause, pause));
}

/* Drops the signals of keys such as ^C that were typed at the question: they are not for this
 * process. */
static void forget_typed_signals(void)
{
    const struct timespec at_once = {0};
    sigset_t typed;

    sigemptyset(&typed);
    sigaddset(&typed, SIGINT);
    sigaddset(&typed, SIGQUIT);
    sigaddset(&typed, SIGTSTP);
    while (sigtimedwait(&typed, NULL, &at_once) > 0)
        ;
}

/* -- the rounds -------------------------------------------------------------------------------- */

/* Looks once: at all the locks, and at the one that is shown in full. */
static enum lock_watch_result survey_locks(struct top *top, struct answer *answer)
{
    enum lock_watch_result result = lock_watch_ask(&top->locks, answer);

    /* The user may type, which draws the rows, while the second question is under way. */
    rows_take(&top->rows, &top->locks.list.locks);
    if (result != LOCK_WATCH_SEEN || top->quit || top->call.signal || !top->detail)
        return result;
    free(top->pattern);
    top->pattern = key_to_pattern(top->detail);
    top->full.request.patterns = (const char *const *)&top->pattern;
    top->full.request.pattern_count = 1;
    return lock_watch_ask(&top->full, answer);
}

/* Shows the locks until the user quits, or the store refuses. */
static void watch_locks(struct top *top, struct answer *answer)
{
    enum lock_watch_result result = LOCK_WATCH_SEEN;

    while (result != LOCK_WATCH_REFUSED) {
        draw_screen(top);
        if (!top->subject) {
            top->resting = true;
            loop_run_for(top->call.query.loop, EVERY);
            top->resting = false;
        }
        if (top->quit || top->call.signal)
            return;
        if (top->subject) {
            endwin(); /* the question is asked on the usual screen */
            if (child_run(&top->inherited, top->ask, top) < 0)
                command_system_refused(&top->call);
            forget_typed_signals();
            flushinp();
            clearok(stdscr, TRUE);
            free(top->subject);
            top->subject = NULL;
        }
        result = survey_locks(top, answer);
        if (top->quit || top->call.signal)
            return;
    }
}

/* Shows the locks until the user quits. The first look is taken before the screen is entered, so
 * that a store that is away or refuses the user is told of as usual. */
static int show_top(struct call *call)
{
    struct top *top = (struct top *)call;

    terminal_init(&top->terminal);
    int status = command_open(call);
    if (status == STATUS_OK && !await_foreground(top))
        status = command_system_refused(call);
    if (status == STATUS_OK)
        status = command_catch_signals(call, &top->inherited, on_signal);
    if (status != STATUS_OK)
        return status;
    top->keys =
        (struct loop_io){.fd = STDIN_FILENO, .events = LOOP_READ, .ready = on_keys, .owner = top};
    top->locks = (struct lock_watch){
        .query = &call->query, .request = command_request(call), .patience = PATIENCE, .arg = top};
    top->full = (struct lock_watch){
        .query = &call->query,
        .request.runs = store_can(&call->settings.address, STORE_MEMORY) ? QUERY_RUNS_ALL : 0,
        .patience = PATIENCE,
        .arg = top};
    struct answer answer;
    if (survey_locks(top, &answer) == LOCK_WATCH_SEEN) {
        enter_screen(top);
        if (!top->screen) {
            command_error(&top->call, "the terminal '%.60s' is not known here (TERM)",
                          getenv("TERM"));
            say_hint("TERM=xterm rlock top, or install Debian's ncurses-term");
            return STATUS_USAGE;
        }
        top->locks.silent = top->full.silent = draw_screen;
        loop_add(top->call.query.loop, &top->keys);
        watch_locks(top, &answer);
        loop_remove(top->call.query.loop, &top->keys);
        if (top->screen) {
            endwin();
            delscreen(top->screen);
            top->screen = NULL;
        }
    }
    return top->quit || top->call.signal ? STATUS_OK : command_refused(&top->call, &answer);
}

static void end_top(struct call *call)
{
    struct top *top = (struct top *)call;

    rows_free(&top->rows);
    close_detail(top);
    free(top->pattern);
    lock_list_free(&top->full.list);
    lock_list_free(&top->locks.list);
}

/* The record of `rlock top` (cmd/companion.c) does not act by itself: this program does. */
int main(int argc, char **argv)
{
    struct command program = command_top;

    program.size = sizeof(struct top);
    program.storeless = false;
    program.check = NULL;
    program.act = show_top;
    program.end = end_top;
    child_fill_standard_descriptors();
    return command_execute(&program, argc, argv);
}
