# HAZARDS.md says of each hazard what it is, and which tests are about it; and that is so.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME" || return
}

# What the tests say: "H1 FILE: NAME", a line for each hazard that the name of a test begins with.
tests_of_hazards() {
    local file name number
    for file in *.bats; do
        while read -r name; do
            for number in $(grep -oE '^(H[0-9]+ )+' <<<"$name"); do
                echo "$number $file: $name"
            done
        done < <(sed -nE 's|^@test "(H[0-9]+ .*)" \{$|\1|p' "$file")
    done
}

# What HAZARDS.md says, in the same form.
table_of_tests() {
    awk '/^\*\*H[0-9]+\*\* / { gsub(/\*/, "", $1); number = $1 }
         /^- [a-z_]+\.bats: / { print number " " substr($0, 3) }' HAZARDS.md
}

@test "each of H1 to H139 is there, and those beyond once and in order" {
    local numbers
    numbers=$(sed -nE 's/^\*\*H([0-9]+)\*\*.*/\1/p' HAZARDS.md)
    diff <(seq 139) <(head -n 139 <<<"$numbers")
    sort -n -u -c <<<"$numbers"
}

@test "each test that is named after a hazard is listed there, and each that is listed is there" {
    # > is missing in HAZARDS.md, < is there, and in no test
    diff <(table_of_tests | sort) <(tests_of_hazards | sort)
}

@test "each has a test, or it says why not" {
    run -0 awk '/^\*\*H/ { if (number && !told) print number; number = $1; told = 0 }
                /^- [a-z_]+\.bats: / || (/^- not tested( by name)?: / || /^- not built: /) && length > 30 { told = 1 }
                END { if (!told) print number }' HAZARDS.md
    [[ $output == "" ]]
}
