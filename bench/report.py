"""The results as a table of tab-separated values, as Markdown, and as pictures by gnuplot."""
import shutil
import statistics
import subprocess

from samples import MEASURES

BEGIN, END = '<!-- results: made by "make bench" -->', '<!-- end of results -->'
RATIOS = "run", "processor", "faults", "hand-over"
TABLES = [
    ('One run, no other client', ['run', 'processor', 'faults', 'switches', 'round trips']),
    ('Other stores', ['stores']),
    ('More keys, more readers', ['keys', 'readers']),
    ('From hand to hand', ['hand-over', 'ways', 'requests', 'grants', 'disorder', 'serving']),
    ('Waiting', ['holding', 'waiting', 'idle', 'asking']),
    (
        "Many",
        [
            "acquisitions",
            "renewals",
            "heartbeats",
            "renewal",
            "heartbeat, first",
            "heartbeat, middle",
            "heartbeat, last",
            "hand-over's scripts",
            "status KEY",
            "its longest call",
            "a lock's memory",
            "a waiter's memory",
            "a connection's memory",
            "a real waiter's memory",
            "status of 100,000 locks",
            "status beside 1,000,000 keys",
            "a SCAN of 1000",
            "status in another database",
        ],
    ),
    ("Where the time goes", ["phases"]),
]


def number(value):
    """With three digits that count."""
    if value == 0:
        return '0'
    text = f'{value:.3g}'
    return f'{float(text):.0f}' if 'e' in text else text


def write_tsv(samples, path):
    with open(path, "w", encoding="utf-8") as file:
        print(
            "measure",
            "contestant",
            "at",
            "median",
            "p10",
            "p90",
            "samples",
            "unit",
            sep="\t",
            file=file,
        )
        for measure, who, at, middle, low, high, count, unit in samples.rows():
            print(
                measure,
                who,
                at,
                *(f"{value:.6g}" for value in (middle, low, high)),
                count,
                unit,
                sep="\t",
                file=file,
            )


def table(samples, measures):
    """A row a contestant, a column a measure and parameter. One of few parameters is turned
    round."""
    rows = [row for row in samples.rows() if row[0] in measures]
    if not rows:
        return []
    columns = list(
        dict.fromkeys(
            (row[0], row[2]) for row in sorted(rows, key=lambda row: measures.index(row[0]))
        )
    )
    cells = {(row[1], row[0], row[2]): number(row[3]) for row in rows}
    contestants = list(dict.fromkeys(row[1] for row in rows))

    def title(column):
        measure, at = column
        unit = MEASURES[measure][0]
        name = f"{measure} at {at}" if isinstance(at, int) else at or measure
        return f"{name} ({unit})" if unit else name

    lines = [["", *contestants]] + [
        [title(column), *(cells.get((who, *column), "–") for who in contestants)]
        for column in columns
    ]
    if len(columns) < len(contestants):
        lines = [list(line) for line in zip(*lines)]
    lines.insert(1, ['---', *['---:'] * (len(lines[0]) - 1)])
    return ['| ' + ' | '.join(line) + ' |' for line in lines]


def ratio(samples, measure, other, at):
    """The median of the quotients of each round; without rounds, the quotient of the medians."""
    ours, theirs = (samples.values.get((measure, who, at), []) for who in ("rlock", other))
    if not theirs:
        return None
    if len(ours) == len(theirs):
        return statistics.median(a / b for a, b in zip(ours, theirs))
    return statistics.median(ours) / statistics.median(theirs)


def ratios(samples):
    """The figures of rlock, divided by those of each other contestant."""
    rows = [row for row in samples.rows() if row[0] in RATIOS]
    others = [name for name in dict.fromkeys(row[1] for row in rows) if name != "rlock"]
    lines = []
    for measure, who, at, *_ in rows:
        if who == "rlock" and others:
            by = (ratio(samples, measure, other, at) for other in others)
            cells = [number(value) if value else "–" for value in by]
            lines.append([f"{measure} at {at}" if at else measure, *cells])
    if not lines:
        return []
    lines = [["", *others], ["---", *["---:"] * len(others)], *lines]
    return ["| " + " | ".join(line) + " |" for line in lines]


def write_markdown(samples, machine, pictures, path):
    lines = [BEGIN, '', *(f'- {line}' for line in machine), '']
    for title, measures in TABLES:
        rows = table(samples, measures)
        if rows:
            lines += [f"### {title}", "", *rows, ""]
            lines += [
                f"- {name}: {MEASURES[name][1]}"
                for name in measures
                if any(key[0] == name for key in samples.values)
            ]
            lines += [
                "",
                *(f"![{title}]({name})" for where, name in pictures if where == title),
                "",
            ]
    quotients = ratios(samples)
    if quotients:
        lines += ["### rlock, divided by the others", "", *quotients, ""]
    lines += [
        "### Left out, or noticed",
        "",
        *(f"- {note}" for note in samples.notes or ["nothing"]),
        "",
        END,
    ]
    with open(path, "w", encoding="utf-8") as file:
        print("\n".join(lines), file=file)


def put_into(document, markdown):
    """Replaces what is between the marks in a document."""
    with open(markdown, encoding='utf-8') as file:
        new = file.read()
    with open(document, encoding='utf-8') as file:
        before, _, rest = file.read().partition(BEGIN)
    with open(document, 'w', encoding='utf-8') as file:
        file.write(before + new.rstrip('\n') + rest.partition(END)[2])


def plot(commands, path):
    style = (
        'set terminal svg size 760,400 font "sans-serif,13" background "white"; '
        f'set output "{path}"; '
        "set grid; set key outside right; set border 3; set tics nomirror; "
    )
    subprocess.run(["gnuplot"], input=style + commands, text=True, check=True)


def bars(samples, path, measure, title):
    found = [(row[1], row[3]) for row in samples.rows() if row[0] == measure]
    data = '\n'.join(f'"{name}" {value}' for name, value in found)
    low = min(value for _, value in found) / 2
    plot(
        f'$data << EOD\n{data}\nEOD\nset title "{title}"; set style fill solid 0.8; '
        "set boxwidth 0.7; unset key; "
        f"set logscale y; set yrange [{low}:]; set xtics rotate by 35 right; "
        'plot $data using 0:2:xtic(1) with boxes lc rgb "#4477aa", '
        '"" using 0:2:(sprintf($2 < 1000 ? "%.3g" : "%.0f", $2)) with labels offset 0,0.7\n',
        path,
    )


def lines(samples, path, measure, title, below, scale='set logscale xy'):
    rows = [row for row in samples.rows() if row[0] == measure]
    names = list(dict.fromkeys(row[1] for row in rows))
    blocks = "\n\n\n".join(
        f'"{name}"\n' + "\n".join(f"{row[2]} {max(row[3], 1e-3)}" for row in rows if row[1] == name)
        for name in names
    )
    plot(
        f'$data << EOD\n{blocks}\nEOD\nset title "{title}"; set xlabel "{below}"; {scale}; '
        f"plot for [i=0:{len(names) - 1}] $data index i using 1:2 "
        "with linespoints lw 2 pt 7 title columnheader(1)\n",
        path,
    )


def stack(samples, path, title):
    """The phases as one bar above the other, each where the one before has ended."""
    at, data = 0, []
    for place, row in enumerate(row for row in samples.rows() if row[0] == 'phases'):
        data.append(f'{-place} {at} {at + row[3]} "{row[2]}"')
        at += row[3]
    text = "\n".join(data)
    plot(
        f'$data << EOD\n{text}\nEOD\nset title "{title}"; unset key; set xlabel "ms"; '
        f"set yrange [{-len(data)}:1]; "
        "set style fill solid 0.8; plot $data using (($2+$3)/2):1:2:3:($1-0.35):($1+0.35):ytic(4) "
        'with boxxyerror lc rgb "#4477aa"\n',
        path,
    )


def pictures(samples, folder):
    """[(title of the table, name of the file)] of those that could be made."""
    if not shutil.which('gnuplot'):
        samples.note('pictures: left out, gnuplot is missing')
        return []
    measured = {key[0] for key in samples.values}
    made = []

    def draw(where, name, needs, function, *arguments):
        if needs in measured:
            function(samples, f"{folder}/{name}.svg", *arguments)
            made.append((where, f"bench/{name}.svg"))

    draw("One run, no other client", "run", "run", bars, "run", "One uncontended run (ms)")
    draw("Other stores", "stores", "stores", bars, "stores", "One uncontended run (ms)")
    draw(
        "From hand to hand",
        "hand-over",
        "hand-over",
        lines,
        "hand-over",
        "Hand-over (ms)",
        "waiters",
    )
    draw(
        "From hand to hand",
        "disorder",
        "disorder",
        lines,
        "disorder",
        "Disorder: 0 first come, first served; 1 at random",
        "waiters",
        "set logscale x; set yrange [-0.1:1.5]",
    )
    draw("Waiting", "waiting", "waiting", bars, "waiting", "Memory of a waiter (MB)")
    draw(
        "Waiting",
        "idle",
        "idle",
        lines,
        "idle",
        "Processor time of a waiter (ms/s)",
        "waiters",
    )
    draw(
        "More keys, more readers",
        "readers",
        "readers",
        lines,
        "readers",
        "rlock read beside others (ms)",
        "readers",
        "set logscale x",
    )
    draw("Where the time goes", "phases", "phases", stack, "One run of rlock, under strace")
    return made
