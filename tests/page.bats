# The page of rlock serve in a headless Chromium: a lock appears, waits, is released; the server
# goes and comes back. Some 20 s.

load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-serve ]] || skip "no rlock-serve: it is built where libmicrohttpd is"
    command -v chromium >/dev/null || skip "no chromium here"
    command -v chromedriver >/dev/null || skip "no chromium-driver here"
    start_file
}

@test "the page is live, and keeps its table while the store is away" {
    bg serve rlock serve --listen 127.0.0.1:0
    poll_until 10 contains "$T/serve.err" "listening on http"
    "$TESTS/browser.py" "$(sed -n 's/.*listening on //p' "$T/serve.err")" 3>&- <<'END'
expect no locks
sh "$RLOCK" acquire --lease 1h --label '<img src=x onerror=document.title=1>' 'de<b>ploy' >/dev/null
expect 1 lock(.|\n)*de<b>ploy\s+exclusive\s(.|\n)*<img src=x
true document.title === "rlock" && document.querySelectorAll("td b, td img").length === 0
sh "$RLOCK" run 'de<b>ploy' --label second -- true </dev/null >/dev/null 2>&1 &
expect 1 lock, 1 waiting
click de<b>ploy
expect holder (.|\n)*waiter 1 .*label second
sh kill -STOP $(cat "$REDIS_DIR/pid")
expect out of reach since (.|\n)*no answer(.|\n)*de<b>ploy(.|\n)*waiter 1
sh kill -CONT $(cat "$REDIS_DIR/pid")
expect 1 lock, 1 waiting
gone out of reach
sh "$RLOCK" force-release --now --yes 'de<b>ploy' 2>/dev/null
expect no locks
gone ploy
true [...performance.getEntriesByType("resource")].every((e) => e.name.startsWith(location.origin))
END
}
