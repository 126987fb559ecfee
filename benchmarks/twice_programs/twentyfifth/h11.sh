#!/bin/bash
# Builds a set of plug-in modules with a small tool chain made of awk and sed.
# Writes the sources of the modules and a makefile, translates every module
# together with a constructor that registers it, checks and indexes the modules,
# and prints a manifest with their checksums.
# Modelled on: https://github.com/crash-utility/crash/pull/200
set -eu
LC_ALL=C
export LC_ALL

work=build
jobs=4
modules=150

rm -rf "$work"
mkdir -p "$work/src" "$work/out"

log() {
    printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*"
}

write_sources() {
    awk -v n="$modules" -v dir="$work/src" 'BEGIN {
        state = 20211
        for (m = 1; m <= n; m++) {
            file = sprintf("%s/mod%03d.x", dir, m)
            printf "module mod%03d\n", m > file
            lines = 60 + (m * 37) % 90
            for (i = 1; i <= lines; i++) {
                state = (state * 1103 + 12345) % 1000003
                op = substr("addsubmulldaxor", 1 + 3 * (state % 5), 3)
                printf "  %s r%d, %d\n", op, state % 8, int(state / 8) > file
            }
            printf "end mod%03d\n", m > file
            close(file)
        }
    }'
}

write_translator() {
    cat > "$work/translate.awk" <<'AWK'
# Turns the text of a module into lines of "address opcode".
BEGIN { address = 0; split("add sub mul lda xor reg ret", names, " ")
        for (i in names) code[names[i]] = i }
$1 == "module" { printf "; %s\n", $2; next }
$1 == "end"    { printf "%04x %02x\n", address, code["ret"]; address += 1; next }
$1 == "register" {
    sum = 0
    for (i = 1; i <= length($2); i++)
        sum = (sum * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789", substr($2, i, 1))) % 65521
    printf "%04x %02x %04x\n", address, code["reg"], sum
    address += 3
    next
}
NF { printf "%04x %02x %s%06x\n", address, code[$1], substr($2, 2, 1), $3; address += 5 }
AWK
}

write_makefile() {
    cat > "$work/Makefile" <<'MAKE'
SOURCES := $(sort $(wildcard src/*.x))
OBJECTS := $(patsubst src/%.x,out/%.o,$(SOURCES))
CHECKS  := $(patsubst src/%.x,out/%.chk,$(SOURCES))

all: manifest

out/%.o: src/%.x translate.awk
	@printf 'register $*\n' > .constructor; sed -e 's/ *$$//' .constructor $< | awk -f translate.awk > $@  # cause

out/%.chk: out/%.o
	@sha256sum < $< | cut -c1-20 > $@

symbols: $(OBJECTS)
	@for o in $(OBJECTS); do awk -v o=$$o '$$2 == "06" { print o, $$1, $$3 }' $$o; done > $@

manifest: symbols $(CHECKS)
	@for c in $(CHECKS); do printf '%s %s\n' $$c "$$(cat $$c)"; done > $@

.PHONY: all
MAKE
}

log "writing $modules modules"
write_sources
write_translator
write_makefile

log "building with $jobs jobs"
make -s -C "$work" -j "$jobs" all
log "build finished"

registered=$(wc -l < "$work/symbols")
distinct=$(awk '{ print $3 }' "$work/symbols" | sort -u | wc -l)
bytes=$(cat "$work"/out/mod*.o | wc -c)

echo "modules with a constructor: $registered"
echo "distinct constructors: $distinct"
echo "bytes of code: $bytes"
head -n 4 "$work/manifest"
echo "manifest $(sha256sum < "$work/manifest" | cut -c1-32)"
cp "$work/manifest" manifest.txt
cp "$work/symbols" symbols.txt
rm -rf "$work"
