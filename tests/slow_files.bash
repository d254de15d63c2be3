# Files that take long to be executed, for the .bats files that need some. Loaded after helper.
# shellcheck shell=bash disable=SC2154

# make_slow FILE: executing it takes until answers_at_last NAME, by a lease on it (fcntl(2),
# F_SETLEASE), as with a file server that does not answer. FILE.asked: it is being executed.
make_slow() {
    bg_prints "lease-${1##*/}" python3 -uc '
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: open(sys.argv[1] + ".asked", "w").close())
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("taken")
while True:
    signal.pause()' "$1"
}

answers_at_last() {
    kill -KILL "${pid[lease-$1]}"
}
