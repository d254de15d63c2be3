# quickstart, as far as it can be tried without installing anything: what it says where it cannot go
# on.

bats_require_minimum_version 1.5.0

# A copy of it on a machine where no package is installed, for a user who is not root. There is no
# sudo.
setup() {
    local tool
    T=$BATS_TEST_TMPDIR
    mkdir "$T/bin" "$T/tests"
    cp "$BATS_TEST_DIRNAME/../quickstart" "$T"
    for tool in sh dirname nproc mkdir stat cat grep sed find awk rm env; do
        ln -s "$(command -v $tool)" "$T/bin"
    done
    program dpkg-query 'exit 1'
    program id 'echo 1000'
}

# program NAME LINE: a script of one line.
program() {
    rm -f "$T/bin/$1" # it may lead to the system's
    printf '#!/bin/sh\n%s\n' "$2" >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

quickstart() {
    env -i PATH="$T/bin" "$T/quickstart" "$@" </dev/null
}

@test "help, and what makes no sense: nothing is built" {
    run -0 --separate-stderr quickstart --help
    [[ $output == usage:*check-long*bench* && $stderr == "" ]]
    run -1 --separate-stderr quickstart frobnicate
    [[ $output == "" && $stderr == *'frobnicate: no such thing; see ./quickstart --help' ]]
    run -1 --separate-stderr quickstart check nothing.bats
    [[ $output == "" && $stderr == *'nothing.bats: there is no such file in tests' ]]
    [[ ! -e $T/build/make.log ]]
}

@test "packages are missing, and there is no sudo: one line that names all of them" {
    run -1 --separate-stderr quickstart
    [[ $output == "" && ${#stderr_lines[@]} == 1 ]]
    [[ $stderr == *'no sudo; as root: apt-get install --no-install-recommends gcc '*' redis-server' ]]
    [[ $stderr == *'static file'*docs/install.md* && $stderr == *' autoconf '* ]]
    # A release tarball has been configured.
    touch "$T/configure.ac" "$T/Makefile.am"
    program ../configure :
    run -1 --separate-stderr quickstart
    [[ $stderr == *' gcc '* && $stderr != *autoconf* ]]
    rm "$T/configure"
    run -1 --separate-stderr quickstart check
    [[ ${#stderr_lines[@]} == 1 && ${lines[-1]} == 'not run: see above' ]]
    [[ $stderr == *'no sudo; as root: apt-get install --no-install-recommends gcc '*' redis-server bats '*' fish' ]]
    run -1 --separate-stderr quickstart check-long
    [[ ${#stderr_lines[@]} == 1 && $stderr == *' gcc '*' bats '*' valgrind '* ]]
    run -1 --separate-stderr quickstart bench
    [[ ${#stderr_lines[@]} == 1 && $stderr == *' gcc '*' etcd-client' ]]
}

@test "sudo refuses: it is asked once, and what to do is said once" {
    program sudo "echo \"\$*\" >>'$T/asked'; exit 1"
    run -1 --separate-stderr quickstart check
    [[ ${#stderr_lines[@]} == 1 ]]
    [[ $stderr == *'sudo does not let you install them; as root: apt-get install '*' gcc '*' fish' ]]
    [[ $(<"$T/asked") == $'-n true\n-v' ]]
}

@test "not Debian: the packages are named" {
    rm "$T/bin/dpkg-query"
    run -1 --separate-stderr quickstart
    [[ ${#stderr_lines[@]} == 1 &&
        $stderr == *'not Debian; install by hand: gcc '*' redis-server' ]]
}

@test "the directory for the build is another user's" {
    program stat 'echo root'
    mkdir "$T/build"
    chmod 555 "$T/build"
    [[ ! -w $T/build ]] || skip 'to root all directories are its own'
    run -1 --separate-stderr quickstart
    [[ $stderr == *'./build belongs to root; remove it, or be that user' ]]
}
