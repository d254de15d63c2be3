# floors: its status says what its lines say.

bats_require_minimum_version 1.5.0

setup() {
    export top_srcdir=$BATS_TEST_DIRNAME/..
}

@test "floors ends with 0 where the layers are kept, and with 1 where one is not" {
    run -0 "$BATS_TEST_DIRNAME/floors"
    [[ $output != *'not ok'* ]]
    mkdir "$BATS_TEST_TMPDIR/tests"
    cp -r "$top_srcdir/src" "$top_srcdir/Makefile.am" "$BATS_TEST_TMPDIR"
    cp "$top_srcdir"/tests/mutants* "$BATS_TEST_TMPDIR/tests"
    chmod -R u+w "$BATS_TEST_TMPDIR"
    echo '#include "run/job.h"' >>"$BATS_TEST_TMPDIR/src/base/text.c"
    top_srcdir=$BATS_TEST_TMPDIR run -1 "$BATS_TEST_DIRNAME/floors"
    [[ $output == *$'\nnot ok '*' - no include goes up'$'\n# '*text* ]]
    [[ $output != *'not ok'*' - no two tests have one name'* ]]
    echo 'bats_tests += tests/floors.bats' >>"$BATS_TEST_TMPDIR/Makefile.am"
    top_srcdir=$BATS_TEST_TMPDIR run -1 "$BATS_TEST_DIRNAME/floors"
    [[ $output == *$'\nnot ok '*' - no two tests have one name'$'\n# tests/floors'$'\n'* ]]
}
