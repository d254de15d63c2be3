# The recipes of docs/elsewhere.md, each as its reader would run it, with stubs for the programs
# that are not here. recipe TITLE [NUMBER]: the shell below that title; late TITLE: runs it a second
# time with an older token, as if it had been frozen since. stopped TITLE [NUMBER]: runs it as
# $T/recipe, and takes its lock away when the work is there, whose name becomes $name; stop_recipe:
# so again with $T/recipe; elsewhere kill NAME: ends work that was left.

load helper
load elsewhere

setup() {
    start_test
    start_daemon
    ln -s "$RLOCK" "$T/bin/rlock"
    # Where ssh leads: the same host, but a shell of its own, without a variable of this one.
    cat >"$T/bin/ssh" <<'END'
#!/bin/bash
[[ $1 == -tt ]] && tty=yes && shift
host=$1
shift
case $* in
./benchmark)
    echo "run $host" >"$T/daemon"
    [[ ! $tty ]] || echo "hang-up $host $$" >"$T/daemon"
    exec sleep 1000 ;;
# Their name does not reach the processes that ./benchmark has started.
*' pkill -KILL -s') exec elsewhere kill "$host" ;;
pkill*) exit 0 ;;
*) exec env -i PATH="$PATH" T="$T" sh -c "${*//\/srv\//$T/srv/}" ;;
esac
END
    # The name is --unit, or the last word before the image or the command that is not an option.
    cat >"$T/bin/docker" <<'END'
#!/bin/sh
case $1 in
run) exec elsewhere run "$4" ;;
kill) exec elsewhere kill "$2" ;;
esac
END
    cat >"$T/bin/kubectl" <<'END'
#!/bin/sh
case $* in
"run "*) exec elsewhere run "$2" ;;
"delete pod --now "*) exec elsewhere kill "$4" ;;
esac
END
    # Without --collect, a unit that was killed stays with systemd, as failed.
    printf '#!/bin/sh\n[ "$1 $2" = "--wait --collect" ] && exec elsewhere run "${3#--unit=}"\n' \
        >"$T/bin/systemd-run"
    printf '#!/bin/sh\nexec elsewhere kill "$3"\n' >"$T/bin/systemctl"
    printf '#!/bin/sh\ncat >"$T/job.$$"; echo "job $T/job.$$" >"$T/daemon"\n' >"$T/bin/at"
    chmod +x "$T/bin/"*
    mkdir -p "$T/place" "$T/srv/site"
    cd "$T/place" || return
}

# recipe TITLE [NUMBER]: the shell below that title, the first block of it or another one.
recipe() {
    "$TESTS/page_blocks" elsewhere.md "$1" "${2:-1}"
}

# stopped TITLE [NUMBER]: runs it, and takes its lock away when "name" works elsewhere.
stopped() {
    recipe "$@" >"$T/recipe"
    rm -f "$T"/gone.*
    stop_recipe
}

# stop_recipe: runs $T/recipe until its work begins, as $name; takes its lock away, and waits for
# 79.
stop_recipe() {
    : >"$LOG"
    bg recipe sh "$T/recipe"
    poll_until 10 test -s "$LOG"
    name=$(head -n 1 "$LOG")
    name=${name% works}
    run -0 rlock force-release --yes "$(rlock status --json | jq -r '.[0].key')"
    ends_with recipe 79
}

# ends_only_by_stop TITLE: when the lock of that recipe is taken away, the work on the other host
# ends, but continues if --stop is left out.
ends_only_by_stop() {
    stopped "$1"
    [[ $name == bench-[0-9]* ]]
    no_more "$name"
    sed -i "s/--stop '[^']*'//" "$T/recipe"
    stop_recipe
    poll_until 10 fails no_more "$name"
    elsewhere kill "$name"
}

@test "H151 docker, kubectl, systemd-run: --stop ends the work there, which continues without it" {
    ends_only_by_stop docker
    ends_only_by_stop kubectl
    ends_only_by_stop systemd-run
}

@test "H151 ssh: -tt hangs up, without it the work continues, and --stop ends it" {
    stopped ssh
    [[ $name == bench-1 ]]
    poll_until 10 no_more bench-1
    sed -i 's/-tt//' "$T/recipe"
    stop_recipe
    poll_until 10 fails no_more bench-1
    elsewhere kill bench-1
    stopped ssh 2
    no_more bench-1
    # The line of docs/ci.md is that one.
    grep -qF "$(recipe ssh | grep -o "'exec ssh .*")" "$TESTS/../docs/ci.md"
}

@test "H151 at: the lock is held while the job runs" {
    printf '#!/bin/sh\necho job works >>"$LOG"\nexec "$T/wait"\n' >"$T/bin/benchmark"
    printf '#!/bin/sh\nuntil [ -e "$T/go" ]; do sleep 0.02; done\n' >"$T/wait"
    chmod +x "$T/bin/benchmark" "$T/wait"
    recipe 'at, batch, a queue of jobs' | sed "s|./benchmark|benchmark|" >"$T/recipe"
    sh "$T/recipe" 3>&-
    working job
    held bench
    : >"$T/go"
    poll_until 10 is_free bench
}

# late TITLE: runs it a second time with an older token, as if it had been frozen since.
late() {
    recipe "$1" | sed 's/rlock run site -c/sh -c/' >"$T/late"
    RLOCK_FENCE=17 run sh "$T/late" 3>&-
}

@test "H152 files by ssh: what comes too late is refused on the other host" {
    echo one >file
    recipe 'Files on another host' >"$T/recipe"
    run -0 sh "$T/recipe" 3>&-
    [[ $(<"$T/srv/site/file") == one && $(<"$T/srv/site.fence") -gt 17 ]]
    echo old >file
    late 'Files on another host'
    [[ $status == 79 && $(<"$T/srv/site/file") == one ]]
}

@test "H152 rsync: what comes too late is refused on the other host" {
    command -v rsync >/dev/null || skip "no rsync here"
    echo one >file
    echo gone >"$T/srv/site/other"
    recipe rsync >"$T/recipe"
    run -0 sh "$T/recipe" 3>&-
    [[ $(<"$T/srv/site/file") == one && ! -e $T/srv/site/other && -e $T/srv/site.fence ]]
    echo newer >file
    late rsync
    [[ $status != 0 && $output == *'is older than'* && $(<"$T/srv/site/file") == one ]]
}

# As an ordinary user, as PostgreSQL wants it.
postgresql() {
    local program
    program=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)/$1
    if ((EUID == 0)); then
        setpriv --reuid nobody --regid nogroup --clear-groups "$program" "${@:2}"
    else
        "$program" "${@:2}"
    fi
}

@test "H152 PostgreSQL: what comes too late changes no row" {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || skip "no PostgreSQL here"
    export PGHOST=$T/pg PGUSER=me PGDATABASE=postgres
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$T/.." "$T"
    install -d -m 700 "$PGHOST"
    ((EUID != 0)) || chown nobody "$PGHOST"
    postgresql initdb -D "$PGHOST" -U me -A trust -N >"$T/initdb.log" 2>&1
    bg pg bash -c "$(declare -f postgresql)"'; postgresql postgres -D "$PGHOST" -k "$PGHOST" -h ""'
    poll_until 20 psql -c 'SELECT 1'
    recipe PostgreSQL 2 >publish.sql
    psql -c "$(recipe PostgreSQL 3)" -c 'CREATE TABLE published (version text)'
    recipe PostgreSQL >"$T/recipe"
    run -0 sh "$T/recipe" 3>&-
    late PostgreSQL
    [[ $status == 3 && $(psql -Atc 'SELECT count(*) FROM published') == 1 ]]
}

@test "H152 S3: a write with an older token is refused, and one that another has overtaken" {
    command -v curl >/dev/null || skip "no curl here"
    cat >"$T/s3.py" <<'END'
import hashlib, http.server, os, sys
text, fence = b"first", "0"
class Bucket(http.server.BaseHTTPRequestHandler):
    def answer(self, status):
        self.send_response(status)
        self.send_header("ETag", tag())
        self.send_header("x-amz-meta-fence", fence)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def do_HEAD(self):
        self.answer(200)
    def do_PUT(self):
        global text, fence
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["If-Match"] != tag():
            return self.answer(412)
        text, fence = body, self.headers["x-amz-meta-fence"]
        self.answer(200)
def tag():
    return '"%s"' % hashlib.md5(text + fence.encode()).hexdigest()
server = http.server.HTTPServer(("127.0.0.1", 0), Bucket)
with open(sys.argv[1], "w") as file: file.write(f"http://127.0.0.1:{server.server_port}\n")
server.serve_forever()
END
    bg s3 python3 "$T/s3.py" "$T/address"
    poll_until 10 test -s "$T/address"
    BUCKET=$(<"$T/address")
    export BUCKET
    echo data >site.tar
    recipe S3 >"$T/recipe"
    run -0 sh "$T/recipe" 3>&-
    late S3
    [[ $status == 79 ]]
    # Between the look and the write, somebody else has written.
    printf '#!/bin/sh\necho another >"$T/other"\ncurl -fsS -T "$T/other" -H "If-Match: $1" -H "x-amz-meta-fence: 9999999999999999" "$BUCKET/site.tar"\n' >"$T/bin/meanwhile"
    chmod +x "$T/bin/meanwhile"
    sed 's/^ *token=/meanwhile "$etag"; &/' "$T/recipe" >"$T/overtaken"
    run -22 sh "$T/overtaken" 3>&-
}
