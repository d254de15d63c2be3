/* rlock-top: locks on a full screen, with ncurses. `rlock top` executes it. */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/lock_watch.h"
#include "cli/render.h"
#include "cli/screen.h"
#include "os/child.h"
#include "os/terminal.h"
#include "run/supervisor.h"
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

struct top {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct inherited inherited;
    struct terminal terminal;
    struct lock_watch locks;
    struct loop_io keys;
    SCREEN *screen; /* NULL: not on it yet */

    struct rows rows;
    bool typing;     /* a filter */
    char *detail;    /* the KEY of the lock that is shown in full; NULL: all are shown as rows */
    size_t scrolled; /* lines of it that are above the window */
    bool resting;    /* between two surveys, where loop_stop() ends the pause alone */
    char *unwanted;  /* the KEY of the lock that is to be taken away; or NULL */
    bool quit;
    int signal; /* it was told to end by it; 0 */
};

/* -- lines of the screen ----------------------------------------------------------------------- */

/* A text without control characters, cut to the window; the whole line has the attributes. */
static void put_line(int line, attr_t attributes, const char *text, size_t length)
{
    char *plain;

    if (line < 0 || line >= LINES)
        return;
    plain = mem_zeroed(length + 1);
    memcpy(plain, text, length);
    attrset(attributes);
    mvhline(line, 0, ' ' | attributes, COLS);
    mvaddnstr(line, 0, plain, (int)utf8_fit(plain, COLS > 0 ? (size_t)COLS : 0));
    attrset(A_NORMAL);
    free(plain);
}

static void put_text(int line, attr_t attributes, const char *text)
{
    put_line(line, attributes, text, strlen(text));
}

/* The line of that number, from 0; its length in *length. NULL if there are not so many. */
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

static void draw_heading(const struct top *top)
{
    char *heading = NULL;
    size_t size;
    FILE *out = mem_checked(open_memstream(&heading, &size));

    fputs("rlock top  ", out);
    lock_watch_heading(&top->locks, out);
    fclose(out);
    put_text(LINE_HEADING, top->locks.away ? A_BOLD | COLOR_PAIR(COLOR_OF_TROUBLE) : (attr_t)A_BOLD,
             heading);
    free(heading);
}

static void draw_filter(const struct top *top)
{
    char filter[UTF8_ESCAPED_SIZE(ROWS_FILTER_SIZE)];
    char line[sizeof filter + 64];

    utf8_escape(top->rows.filter, filter, sizeof filter);
    if (!top->typing && !*filter)
        return;
    snprintf(line, sizeof line, "/%s%s", filter, top->typing ? "_" : "");
    if (!top->typing)
        snprintf(line, sizeof line, "/%s  %zu of %zu", filter, top->rows.count,
                 top->locks.list.locks.count);
    put_text(LINE_FILTER, A_NORMAL, line);
}

static attr_t row_attributes(const struct rows *rows, size_t row)
{
    attr_t waiting = rows->locks[row].waiter_count > 0 ? COLOR_PAIR(COLOR_OF_WAITING) : A_NORMAL;

    return row == rows->chosen ? A_REVERSE | waiting : waiting;
}

static void draw_rows(struct top *top)
{
    struct render_style style = {.width = COLS, .cut = true};
    struct rows *rows = &top->rows;
    char *table = NULL;
    size_t room = room_for_rows(), size, length;
    const char *line;

    if (rows->count == 0) {
        put_text(LINE_ROWS, A_NORMAL, *rows->filter ? "no locks match" : "no locks");
        return;
    }
    rows_scroll(rows, room);
    FILE *out = mem_checked(open_memstream(&table, &size));
    render_table(out, rows->locks, rows->count, &style);
    fclose(out);
    if ((line = find_line(table, 0, &length)))
        put_line(LINE_TITLES, A_BOLD | A_UNDERLINE, line, length);
    for (size_t i = rows->first; i < rows->count && i < rows->first + room; i++)
        if ((line = find_line(table, i + 1, &length)))
            put_line(LINE_ROWS + (int)(i - rows->first), row_attributes(rows, i), line, length);
    free(table);
}

static const struct lock_view *find_lock(const struct top *top, const char *key)
{
    const struct lock_views *locks = &top->locks.list.locks;

    for (size_t i = 0; i < locks->count; i++)
        if (strcmp(locks->views[i].key, key) == 0)
            return &locks->views[i];
    return NULL;
}

static void draw_detail(struct top *top)
{
    struct lock_view free_lock = {.key = top->detail};
    const struct lock_view *lock = find_lock(top, top->detail);
    struct render_style style = {.width = COLS};
    size_t room = room_for_rows() + 1, lines = 0, size, length;
    char *text = NULL;
    const char *line;

    FILE *out = mem_checked(open_memstream(&text, &size));
    render_long(out, lock ? lock : &free_lock, 1, &style);
    fclose(out);
    while (find_line(text, lines, &length))
        lines++;
    if (top->scrolled + room > lines)
        top->scrolled = lines > room ? lines - room : 0;
    for (size_t i = 0; i < room && (line = find_line(text, top->scrolled + i, &length)); i++)
        put_line(LINE_TITLES + (int)i, i + top->scrolled == 0 ? A_BOLD : A_NORMAL, line, length);
    free(text);
}

static void draw(struct top *top)
{
    const char *keys = "Enter holders and queue   / filter   k take away   q quit";

    if (top->typing)
        keys = "Enter keep this filter   Esc no filter";
    else if (top->detail)
        keys = "Esc back   k take away   q back";
    erase();
    draw_heading(top);
    if (top->detail) {
        draw_detail(top);
    } else {
        draw_filter(top);
        draw_rows(top);
    }
    if (LINES >= LINES_AROUND)
        put_text(LINES - 1, A_REVERSE, keys);
    refresh();
}

static void draw_silence(void *arg)
{
    draw(arg);
}

/* -- what is typed ----------------------------------------------------------------------------- */

/* In a survey, which loop_stop() would break off, whatever can wait does. */
static void end_rest(struct top *top)
{
    if (top->resting || top->quit)
        loop_stop(top->query.loop);
}

static void set_filter(struct top *top, size_t length)
{
    top->rows.filter[length] = '\0';
    rows_take(&top->rows, &top->locks.list.locks);
}

static void type_filter(struct top *top, int key)
{
    char *filter = top->rows.filter;
    size_t length = strlen(filter);

    if (key == KEY_RETURN || key == KEY_ENTER || key == '\n') {
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

/* How far a key moves, in a window of so many lines; 0: it is not for moving. */
static long movement(int key, size_t room)
{
    switch (key) {
    case KEY_DOWN:
    case 'j': return 1;
    case KEY_UP: return -1;
    case KEY_NPAGE:
    case ' ': return (long)room;
    case KEY_PPAGE: return -(long)room;
    case KEY_HOME:
    case 'g': return -1000000;
    case KEY_END:
    case 'G': return 1000000;
    default: return 0;
    }
}

static void close_detail(struct top *top)
{
    free(top->detail);
    top->detail = NULL;
}

static void want_away(struct top *top, const char *key)
{
    if (!key || top->unwanted)
        return;
    top->unwanted = mem_strdup(key);
    end_rest(top);
}

static void type_in_detail(struct top *top, int key)
{
    long by = movement(key, room_for_rows());

    if (key == 'k')
        want_away(top, top->detail);
    else if (key == 'q' || key == KEY_ESCAPE || key == KEY_RETURN || key == KEY_ENTER ||
             key == '\n')
        close_detail(top);
    else if (by < 0 && top->scrolled < (size_t)-by)
        top->scrolled = 0;
    else
        top->scrolled += (size_t)by;
}

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
    } else if (key == 'k') {
        want_away(top, lock ? lock->key : NULL);
    } else if ((key == KEY_RETURN || key == KEY_ENTER || key == '\n') && lock) {
        top->detail = mem_strdup(lock->key);
        top->scrolled = 0;
    } else {
        rows_move(&top->rows, movement(key, room_for_rows()));
    }
}

static void on_keys(struct loop_io *io, int events)
{
    struct top *top = io->owner;
    int key, count = 0;

    for (; !top->quit && !top->unwanted && (key = getch()) != ERR; count++) {
        if (top->typing)
            type_filter(top, key);
        else if (top->detail)
            type_in_detail(top, key);
        else
            type_in_rows(top, key);
    }
    if (count == 0 && (events & LOOP_GONE)) {
        top->signal = SIGHUP;
        loop_stop(top->query.loop);
    } else if (!top->quit && !top->unwanted) {
        draw(top);
    }
}

/* -- the terminal ------------------------------------------------------------------------------ */

/* False if this job is not in the foreground and nobody can put it there. */
static bool be_in_foreground(struct top *top)
{
    if (!terminal_exists(&top->terminal))
        return true;
    while (!terminal_is_ours(&top->terminal))
        if (!terminal_stop(SIGTTIN, false))
            return false;
    return true;
}

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
    set_escdelay(50);
    if (top->settings.color != COLOR_NEVER && has_colors()) {
        start_color();
        use_default_colors();
        init_pair(COLOR_OF_TROUBLE, COLOR_RED, -1);
        init_pair(COLOR_OF_WAITING, COLOR_YELLOW, -1);
    }
}

static void leave_screen(struct top *top)
{
    if (!top->screen)
        return;
    endwin();
    delscreen(top->screen);
    top->screen = NULL;
}

static void stop_job(struct top *top)
{
    if (top->screen)
        endwin();
    terminal_stop(SIGTSTP, false);
    if (!be_in_foreground(top)) {
        top->signal = SIGHUP;
        loop_stop(top->query.loop);
    }
}

static void on_signal(void *owner, int signo)
{
    struct top *top = owner;

    if (child_signal_is_fatal(signo)) {
        top->signal = signo;
        loop_stop(top->query.loop);
        return;
    }
    if (signo == SIGTSTP)
        stop_job(top);
    if (!top->screen || top->signal)
        return;
    if (signo == SIGTSTP || signo == SIGCONT || signo == SIGWINCH) {
        struct window window = screen_window();
        resizeterm(window.lines, window.columns);
        clearok(stdscr, TRUE);
        draw(top);
    }
}

static bool catch_signals(struct top *top)
{
    sigset_t caught;

    child_block_signals(&top->inherited);
    child_choose_signals(&caught);
    return loop_signals(top->query.loop, &caught, on_signal, top) == 0;
}

/* -- taking a lock away ------------------------------------------------------------------------ */

/* The option as it would be typed. The caller frees. */
static char *spell_option(const struct top *top, const struct given_option *option)
{
    const struct option_spec *spec = top->command->options;
    char *word;

    while (spec->id != option->id)
        spec++;
    if (asprintf(&word, "--%s%s%s", spec->name, option->value ? "=" : "",
                 option->value ? option->value : "") < 0)
        abort();
    return word;
}

/* In a process of its own, on the screen that was there before: as rlock force-release KEY does it,
 * which shows the holders and asks; where a holder cannot be asked, as with --now. Nothing is
 * executed, so no password is on an argument list. */
static int take_away(void *arg)
{
    const struct top *top = arg;
    size_t count = top->arguments.option_count;
    char **words = mem_zeroed((count + 4) * sizeof *words);
    bool asks = store_can(&top->settings.address, STORE_ASK);
    char line[16];

    words[0] = mem_strdup(command_force_release.name);
    for (size_t i = 0; i < count; i++)
        words[i + 1] = spell_option(top, &top->arguments.options[i]);
    words[count + 1] = top->unwanted;
    if (!asks)
        words[count + 2] = mem_strdup(FORCE_RELEASE_NOW);
    fprintf(stderr, "\nrlock force-release %s\n", top->unwanted);
    int status = command_force_release.run(&command_force_release, (int)count + 2 + !asks, words);
    fprintf(stderr, "Enter shows the locks again ");
    if (!fgets(line, sizeof line, stdin))
        fputc('\n', stderr);
    return status;
}

/* What was typed to end the question is not for this process. */
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

static void ask_to_take_away(struct top *top)
{
    endwin();
    if (child_run(&top->inherited, take_away, top) < 0)
        command_error(top->command, "the system refuses: %s", strerror(errno));
    forget_typed_signals();
    flushinp();
    clearok(stdscr, TRUE);
    free(top->unwanted);
    top->unwanted = NULL;
}

/* -- the rounds -------------------------------------------------------------------------------- */

static void rest(struct top *top)
{
    top->resting = true;
    query_pause(&top->query, EVERY);
    top->resting = false;
}

/* Until it is told to end, or the store refuses. */
static void go_on(struct top *top, struct answer *answer)
{
    enum lock_watch_result result = LOCK_WATCH_SEEN;

    while (result != LOCK_WATCH_REFUSED) {
        rows_take(&top->rows, &top->locks.list.locks);
        draw(top);
        if (!top->unwanted)
            rest(top);
        if (top->quit || top->signal)
            return;
        if (top->unwanted)
            ask_to_take_away(top);
        result = lock_watch_ask(&top->locks, answer);
        if (top->quit || top->signal)
            return;
    }
}

static int show(struct top *top)
{
    struct answer answer;

    if (lock_watch_ask(&top->locks, &answer) == LOCK_WATCH_SEEN) {
        enter_screen(top);
        if (!top->screen)
            return command_misused(top->command, "this terminal is not known");
        top->locks.silent = draw_silence;
        loop_add(top->query.loop, &top->keys);
        go_on(top, &answer);
        loop_remove(top->query.loop, &top->keys);
        leave_screen(top);
    }
    if (top->signal)
        return supervisor_die_of(top->signal);
    return top->quit ? STATUS_OK : command_refused(top->command, &answer);
}

static int start(struct top *top)
{
    int status;

    if (!command_settings(top->command, &top->arguments, &top->settings, &status) ||
        (status = command_open(top->command, &top->settings, &top->query)) != STATUS_OK)
        return status;
    if (!be_in_foreground(top) || !catch_signals(top)) {
        command_error(top->command, "the system refuses: %s", strerror(errno));
        return STATUS_SYSTEM;
    }
    top->keys =
        (struct loop_io){.fd = STDIN_FILENO, .events = LOOP_READ, .ready = on_keys, .owner = top};
    top->locks = (struct lock_watch){.query = &top->query,
                                     .patterns = (const char *const *)top->arguments.words,
                                     .pattern_count = top->arguments.word_count,
                                     .patience = PATIENCE,
                                     .arg = top};
    return show(top);
}

int main(int argc, char **argv)
{
    struct top top = {.command = &command_top};
    int status;

    child_fill_standard_descriptors();
    terminal_init(&top.terminal);
    if (command_parse(top.command, argc, argv, &top.arguments, &status) &&
        command_takes_patterns(top.command, &top.arguments, &status))
        status = start(&top);
    rows_free(&top.rows);
    free(top.detail);
    lock_watch_free(&top.locks);
    query_close(&top.query);
    settings_free(&top.settings);
    args_free(&top.arguments);
    return status;
}
