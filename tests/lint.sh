#!/bin/sh
# Shell files, man pages and completions as their own tools judge them; a tool that is not installed
# is skipped. Further checks: Makefile.am lists each test, lines fit, links lead somewhere, and the
# English is plain (tests/english).
set -eu
cd "${top_srcdir:-$(dirname "$0")/..}"

number=0
# check TOOL NAME COMMAND...: prints one line of TAP, and the output of COMMAND below it.
check() {
    tool=$1 name=$2
    shift 2
    number=$((number + 1))
    if ! command -v "$tool" >/dev/null; then
        echo "ok $number - $name # SKIP no $tool"
    elif faults=$("$@" 2>&1); then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        printf '%s\n' "$faults" | sed 's/^/# /'
    fi
}

# Prints the tests that Makefile.am does not name.
forgotten() {
    status=0
    for file in tests/*.bats tests/*.py tests/*.c tests/*.bash tests/unit/*.c tests/fuzz/*.c \
        tests/lives/*.c; do
        [ -e "$file" ] || continue
        grep -qE "(^|[[:space:]])${file%.c}(\\.c|\\.so)?([[:space:]]|\$)" Makefile.am && continue
        echo "$file is not in Makefile.am"
        status=1
    done
    return $status
}

# Prints the folders of src that CONTRIBUTING.md does not explain.
unplanned() {
    status=0
    for folder in $(find src -type d ! -name '.*' | sed 's|^src/*||' | grep . | sort); do
        sed -n '/^## Architecture/,/^## /p' CONTRIBUTING.md | grep -qF "${folder##*/}/" && continue
        echo "src/$folder is not in CONTRIBUTING.md"
        status=1
    done
    return $status
}

# Prints the links of the pages that lead to a missing file or heading.
astray() {
    status=0
    for page in *.md docs/*.md; do
        # shellcheck disable=SC2013 # they have no white space
        for link in $(grep -oE '\]\([^): ]+\)' "$page" | tr -d '])('); do
            file=${link%%#*} heading=${link#"${link%%#*}"}
            file=${file:+$(dirname "$page")/$file}
            [ -e "${file:=$page}" ] && { [ -z "$heading" ] || headings "$file" |
                grep -qxF "$heading"; } && continue
            echo "$page: there is no $link"
            status=1
        done
    done
    return $status
}

# The headings of a page, as links name them.
headings() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9-]//g; s/^/#/'
}

# Prints the lines of more than 100 columns; in shell tests only comments and names of tests, since
# expected output and input may be longer.
too_long() {
    status=0
    # shellcheck disable=SC2046 # a list of words
    LC_ALL=C.UTF-8 grep -nE '^.{101}' Makefile.am configure.ac quickstart .ci/* \
        bench/bench bench/lock-* bench/*.py CONTRIBUTING.md \
        $(find src tests -name '*.[ch]' ! -name scripts.c -o -name README.md) \
        src/rules/lua/*.lua src/rules/lua/*/*.lua tests/*.py tests/floors tests/*.sh \
        build-aux/embed-lua build-aux/fuzz build-aux/coverage build-aux/install-directories &&
        status=1
    LC_ALL=C.UTF-8 grep -nE '^ *(#|@test)' tests/*.bats tests/*.bash |
        grep -v shellcheck | LC_ALL=C.UTF-8 grep -E '^[^:]*:[0-9]*:.{101}' && status=1
    return $status
}

# Left out, as matters of style: scopes, shadowed functions, missing const. Also reports of
# uninitialised results of called functions, of an incomplete analysis, and of tests without memory.
cppcheck_strict() {
    # shellcheck disable=SC2046 # a list of words
    cppcheck --quiet --std=c11 --enable=warning,style,performance,portability --inline-suppr \
        --error-exitcode=1 \
        $(printf ' --suppress=%s' variableScope shadowFunction constParameter \
        constParameterPointer \
            constParameterCallback constVariable constVariablePointer ctuuninitvar \
            normalCheckLevelMaxBranches \
            'nullPointerOutOfMemory:tests/*' 'nullPointerArithmeticOutOfMemory:tests/*' \
            'ctunullpointerOutOfMemory:tests/*') -Isrc "$@"
}

# Prints the lines of bats files that begin with "!" and do not count: bash ends a test for such a
# line only if it is the last one. Lines with || are conditions, lines after &&, || and \ go with
# the line before.
uncounted() {
    # shellcheck disable=SC2016 # for awk
    awk '
        negation != "" && $0 != "}" { print negation; found = 1 }
        { negation = "" }
        /^ +! / && !/\|\|/ && before !~ /(&&|\|\||\\)$/ {
            negation = FILENAME ":" FNR ": use fails: " $0
        }
        { before = $0 }
        END { exit found }' "$@"
}

# Prints the functions that a file defines twice, or that helper.bash defines as well: the later
# one replaces the other for its callers, too. Left out: those that bats calls, and rlock itself.
redefined() {
    # shellcheck disable=SC2016 # for awk
    awk '
        FNR == 1 { split("", here) }
        /^[a-z_0-9]+\(\)/ && !/^(setup|teardown|rlock)/ {
            name = $1
            if (name in here || (name in shared && FILENAME != ARGV[1])) {
                print FILENAME ":" FNR ": " name " has a definition already"
                found = 1
            }
            here[name]
            if (FILENAME == ARGV[1])
                shared[name]
        }
        END { exit found }' "$@"
}

# Checks each script with its includes, of which it may leave functions unused.
luacheck_whole() {
    status=0
    for script; do
        build-aux/embed-lua -p "$script" |
            luacheck --no-config --std lua51 --read-globals redis KEYS ARGV \
            --ignore 211 431 --no-max-line-length --no-color --codes --filename "$script" - ||
            status=1
    done
    return $status
}

mandoc_strict() {
    mandoc -Tlint -W warning "$@"
}

# Prints the lines of man pages that do not fit a terminal of 80 columns, and groff's warnings.
too_wide() {
    status=0
    for page; do
        groff -mdoc -Tascii -rLL=80n -P-cbou "$page" 2>&1 | awk -v page="$page" '
            length > 80 || /troff:.*: warning/ { print page ": " $0; wide = 1 }
            END { exit wide }' || status=1
    done
    return $status
}

check sh 'Makefile.am names every test' forgotten
check sh 'CONTRIBUTING.md names every folder' unplanned
check sh 'lines fit 100 columns' too_long
check sh 'links in the pages lead somewhere' astray
check python3 'plain English' tests/english
check python3 'guards of tests/mutants are in their files' tests/mutants.py --check
check cppcheck 'C' cppcheck_strict src tests/*.c tests/unit tests/fuzz
# shellcheck disable=SC2046 # a list of words
check luacheck 'Lua scripts' luacheck_whole $(sed -n '/^lua_scripts/,/[^\\]$/p' Makefile.am |
    grep -o 'src/rules/lua/[a-z]*\.lua')
check shellcheck 'shell scripts' shellcheck quickstart packaging/release packaging/sysroot \
    .ci/release-check .ci/run .ci/bare .ci/busy .ci/valkey \
    .ci/tests .ci/package debian/tests/installed examples/move-store \
    bench/lock-redis-cli build-aux/embed-lua build-aux/fuzz build-aux/install-directories \
    tests/floors tests/hazards tests/lint.sh tests/tidy.sh
check shellcheck 'bats files' shellcheck -S warning -e SC2034,SC2154 tests/helper.bash tests/*.bats
# shellcheck disable=SC2046 # those that only lead to another page are not for mandoc
check mandoc 'man pages' mandoc_strict $(grep -L '^\.so' man/*.[1-8])
# shellcheck disable=SC2046
check groff 'man pages fit 80 columns' too_wide $(grep -L '^\.so' man/*.[1-8])
check awk 'bats files: each negation counts' uncounted tests/*.bats
check awk 'bats files: a function is defined once' redefined tests/helper.bash \
    tests/*.bash tests/*.bats
check bash 'bash completion' bash -n completions/rlock
check zsh 'zsh completion' zsh -n completions/_rlock
check fish 'fish completion' fish -n completions/rlock.fish
echo "1..$number"
