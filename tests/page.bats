# The page of rlock serve in a headless Chromium: a lock appears, waits, is released; the server
# goes and comes back; how it looks in windows of all sizes. Some 60 s. "play" reads steps, and does
# them in the page of a server that was just started.

load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-serve ]] || skip "no rlock-serve: it is built where libmicrohttpd is"
    command -v chromium >/dev/null || skip "no chromium here"
    command -v chromedriver >/dev/null || skip "no chromium-driver here"
    start_file
}

# play: the steps of standard input with the page of a server that was just started.
play() {
    bg_says serve "listening on http" rlock serve --listen 127.0.0.1:0
    SERVE=${pid[serve]} "$TESTS/browser.py" \
        "$(sed -n 's/.*listening on //p' "$T/serve.err")" 3>&-
}

@test "the page is live, and keeps what it shows while the store is away" {
    play <<'END'
expect no locks
true document.title.startsWith("no locks – rlock – unix:///")
sh rlock acquire --lease 1h --label '<img src=x onerror=document.title=1>' 'de<b>ploy' >/dev/null
expect 1 lock\n(.|\n)*de<b>ploy\s+held\s(.|\n)*<img src=x
true document.title.startsWith("1 lock – rlock") && !document.querySelector("li b, li img")
sh rlock run 'de<b>ploy' --label second -- true </dev/null >/dev/null 2>&1 &
expect 1 lock, 1 waiting
click de<b>ploy
expect holder (.|\n)*waiter 1 .*second
sh kill -STOP $(cat "$REDIS_DIR/pid")
expect out of reach since (.|\n)*no answer(.|\n)*de<b>ploy(.|\n)*waiter 1
true document.title.startsWith("out of reach")
sh kill -CONT $(cat "$REDIS_DIR/pid")
expect 1 lock, 1 waiting
gone out of reach
sh rlock force-release --now --yes --reason 'hot fix' 'de<b>ploy' 2>/dev/null
expect no locks(.|\n)*de<b>ploy\s+free\s(.|\n)*revoked by .*: hot fix
true [...performance.getEntriesByType("resource")].every((e) => e.name.startsWith(location.origin))
sh kill -KILL $SERVE
expect out of reach since .*rlock serve does not answer(.|\n)*de<b>ploy
END
}

@test "the page has a time line of runs, shows pauses and reservations, and links addresses only" {
    rlock run line -- true
    run -3 rlock run line -- sh -c 'exit 3'
    hold a line --label 'https://ci.example/jobs/1?a=<b>'
    queue w line --label 'javascript:alert(1) data:text/html,x'
    rlock reserve staging 2h -m 'load test'
    rlock pause line 2h -m 'new disks'
    rlock run --at-least 1h kept -- true
    play <<'END'
expect 3 locks, 1 waiting
expect line\s+held, paused(.|\n)*paused by .* until .*\d\d:\d\d \(2h00m left\): new disks
expect staging\s+reserved\s(.|\n)*reserved by .* until .*\d\d:\d\d \(2h00m left\): load test
expect kept\s+kept\s(.|\n)*kept until .*\d\d:\d\d \(.* left\)
expect https://ci.example/jobs/1\?a=<b>
click line
expect waiter 1 .*javascript:alert(.|\n)*Last runs(.|\n)*exit 3(.|\n)*exit 0
true [...document.links].every((a) => a.protocol === "https:" && /noopener/.test(a.rel))
true document.links.length === 2 && document.links[0].href.startsWith("https://ci.example/jobs/1")
true document.querySelector(".strip .ok") && document.querySelector(".strip .bad") !== null
true document.querySelector(".waited .strip .now title").textContent.startsWith("holds ")
END
}

@test "the page has a filter, a legend, a mark for now, and the last failure in colour" {
    for n in {1..21}; do
        rlock run "row-$n" -- true
    done
    run -3 rlock run broken -- sh -c 'exit 3'
    hold a deploy --label words
    play <<'END'
expect 1 lock\n(.|\n)*held\s+kept, reserved\s+ended well\s+failed\s+lock lost\s+waited\s+now
true document.querySelector("#locks.many .failed h2").textContent === "broken"
true [...document.querySelectorAll("#ticks text")].pop().textContent === "now"
true (document.querySelector("#filter").focus(), true)
keys b r o k
gone row-1
expect 1 of 23(.|\n)*broken
gone deploy
true !document.querySelector(".many")
true document.querySelectorAll(".lock:not([hidden])").length === 1
END
}

@test "the page changes only what has changed: the selection stays, and so does the focus" {
    hold a first --label words
    play <<'END'
expect first\s+held
true (getSelection().selectAllChildren(document.querySelector(".label")), true)
sh rlock acquire --lease 1h second >/dev/null
expect 2 locks
true String(getSelection()) === "words"
true (getSelection().removeAllRanges(), true)
keys Tab Tab Tab Enter
expect holder .*words
sh rlock acquire --lease 1h third >/dev/null
expect 3 locks
true document.activeElement.textContent === "first"
keys Space
gone holder .*words
true !/\d\d:\d\d/.test(document.querySelector("[role=status]").textContent)
true document.querySelectorAll("[role=status], [aria-live]").length === 1
END
}

@test "the page fits windows of all sizes, light and dark, with long keys and 200 locks" {
    long=$(printf 'k%.0s' {1..300})
    rlock acquire --lease 1h "$long" --label "$(printf 'w%.0s' {1..200})"
    rlock acquire --lease 1h "$(printf 'part/%.0s' {1..60})"
    rlock acquire --lease 1h --limit 3 ci/pipeline/website/build-1
    for n in {1..7}; do
        eval "rlock run many-$n-{1..30} -- true"
    done
    {
        echo "expect 3 locks(.|\n)*many-7-30"
        for size in '1280 900' '640 900' '390 800'; do
            for scheme in light dark; do
                printf '%s\n' "size $size" "scheme $scheme" \
                    'true document.documentElement.scrollWidth <= innerWidth' \
                    'true [...document.querySelectorAll("li *")].every((e) =>
                        e.getBoundingClientRect().right <= innerWidth)' \
                    'true [...document.querySelectorAll("h2 .start")].every((e) =>
                        e.scrollWidth <= e.clientWidth || e.nextSibling.textContent !== "")' \
                    'true [...document.querySelectorAll(".who")].every((e) =>
                        e.scrollWidth <= e.clientWidth || !e.nextSibling.textContent)' | sed -z 's/\n  */ /g'
                [[ ! ${PICTURES:-} ]] || echo "picture $PICTURES/${size%% *}-$scheme.png"
            done
        done
        # One card a lock where it is narrow: the time line is below the name, not beside it.
        echo 'true document.querySelector(".strip").getBoundingClientRect().left < 50'
        echo 'true getComputedStyle(document.body).backgroundColor === "rgb(20, 23, 29)"'
        echo 'size 1280 900'
        echo 'true document.querySelector(".strip").getBoundingClientRect().left > 500'
        echo 'true document.querySelector(".lock").getBoundingClientRect().height < 200'
    } | play
}
