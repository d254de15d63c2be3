# "make install" and "make uninstall", into directories of the test.

load helper

setup_file() { :; }
teardown_file() { :; }

setup() {
    T=$BATS_TEST_TMPDIR
    BUILD=${top_builddir:-$(dirname "$RLOCK")}
    [[ -e $BUILD/Makefile ]] || skip "$BUILD is not a build directory"
}

teardown() { :; }

# A make of its own, not a part of the one that runs the tests.
make_alone() {
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$BUILD" "$@" 3>&-
}

# The links in the pages of a directory to files and directories.
links_lead_somewhere() {
    local page link links=0
    for page in "$1"/*.md "$1"/docs/*.md; do
        while read -r link; do
            [[ -e ${page%/*}/$link ]] || return
            links=$((links + 1))
        done < <(grep -oP '\]\((?!https?:)\K[^)#]+' "$page")
    done
    ((links > 10)) # links were found
}

# installed FOLDER: prints the paths of all files below it, sorted.
installed() {
    find "$1" -type f -printf '%P\n' | sort
}

@test "uninstall keeps the directories that were there before, and what others have put there" {
    mkdir -p "$T/local/bin" "$T/local/share/man"
    make_alone install prefix="$T/local"
    mkdir -p "$T/local/share/man/man1"
    echo other >"$T/local/share/man/man1/other.1"
    make_alone uninstall prefix="$T/local"
    [[ -d $T/local/bin && $(installed "$T/local") == share/man/man1/other.1 ]]
    [[ $(find "$T/local" -type d -printf '%P ' | xargs -n1 | sort |
        xargs) == "bin share share/man share/man/man1" ]]
}

@test "each file that README and manual promise is installed; a staged one is not; none is left" {
    make_alone install prefix="$T/local"
    for page in "$TESTS"/../man/*.[17]; do
        [[ -e $T/local/share/man/man${page##*.}/${page##*/} ]]
    done
    [[ -e $T/local/share/bash-completion/completions/rlock &&
        -e $T/local/share/zsh/site-functions/_rlock ]]
    [[ -e $T/local/share/fish/vendor_completions.d/rlock.fish ]]
    links_lead_somewhere "$T/local/share/doc/rlock"
    [[ $(cd "$TESTS/../examples" && ls) == "$(ls "$T/local/share/doc/rlock/examples")" ]]
    # Twice, as a package, and then uninstalled there.
    make_alone install DESTDIR="$T/stage" prefix="$T/local"
    make_alone install DESTDIR="$T/stage" prefix="$T/local"
    [[ -x $T/stage/$T/local/bin/rlock && -e $T/stage/$T/local/share/man/man1/rlock.1 ]]
    make_alone uninstall DESTDIR="$T/stage" prefix="$T/local"
    [[ ! -e $T/stage && -x $T/local/bin/rlock ]]
    make_alone uninstall prefix="$T/local"
    [[ ! -e $T/local ]]
}
