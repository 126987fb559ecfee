#!/bin/bash
# Builds a small C library of sensor filters from generated sources with a
# parallel make, links the self test and runs it. Every module reports the
# build number and the calibration that it was compiled with.
# Modelled on: https://github.com/ethereum/aleth/issues/3300
set -e
MODULES=64
WORK=sensorlib
rm -rf "$WORK"
mkdir -p "$WORK/src" "$WORK/include" "$WORK/tools"
cd "$WORK"

# the header as it was checked in with the last release
cat > include/buildinfo.h <<'EOF'
#ifndef BUILDINFO_H
#define BUILDINFO_H
#define BUILD_NUMBER 1017
#define CALIBRATION 0.9975
#endif
EOF

# the tool that makes the header for this tree
cat > tools/mkbuildinfo.sh <<'EOF'
#!/bin/bash
total=0
for f in $(ls src/*.c | LC_ALL=C sort); do
    sum=$(cksum < "$f" | cut -d' ' -f1)
    total=$(( (total * 31 + sum) % 100003 ))
done
{
    echo "#ifndef BUILDINFO_H"
    echo "#define BUILDINFO_H"
    echo "#define BUILD_NUMBER $total"
    echo "#define CALIBRATION 1.0125"
    echo "#endif"
} > include/buildinfo.h.tmp
mv include/buildinfo.h.tmp include/buildinfo.h
EOF

cat > include/sensors.h <<'EOF'
#ifndef SENSORS_H
#define SENSORS_H
struct report { int module; int build; double value; };
typedef struct report (*module_fn)(const double *, int);
extern module_fn modules[];
extern const int module_count;
#endif
EOF

# one source file for each filter
for i in $(seq -w 1 $MODULES); do
    n=$((10#$i))
    cat > "src/filter$i.c" <<EOF
#include <math.h>
#include "sensors.h"
#include "buildinfo.h"

struct report filter$i(const double *x, int n) {
    struct report r = { $n, BUILD_NUMBER, 0.0 };
    double state = 0.0, gain = 0.0$n + 0.2;
    for (int i = 0; i < n; i++) {
        state += gain * (x[i] * CALIBRATION - state);
        r.value += fabs(state) / n;
    }
    return r;
}
EOF
done

{
    echo '#include "sensors.h"'
    for i in $(seq -w 1 $MODULES); do
        echo "struct report filter$i(const double *, int);"
    done
    echo "module_fn modules[] = {"
    for i in $(seq -w 1 $MODULES); do echo "    filter$i,"; done
    echo "};"
    echo "const int module_count = $MODULES;"
} > src/table.c

cat > src/selftest.c <<'EOF'
#include <math.h>
#include <stdio.h>
#include "sensors.h"

int main(void) {
    static double x[2000];
    double sum = 0.0;
    for (int i = 0; i < 2000; i++)
        x[i] = sin(i * 0.05) + 0.3 * cos(i * 0.31);
    for (int m = 0; m < module_count; m++) {
        struct report r = modules[m](x, 2000);
        printf("filter %2d  build %6d  value %.8f\n", r.module, r.build, r.value);
        sum += r.value;
    }
    printf("sum of all filters: %.8f\n", sum);
    return 0;
}
EOF

cat > Makefile <<'EOF'
CC = gcc
CFLAGS = -O2 -Iinclude
SOURCES = $(sort $(wildcard src/*.c))
OBJECTS = $(patsubst src/%.c,build/%.o,$(SOURCES))

.PHONY: all buildinfo
all: buildinfo selftest

buildinfo:
	@bash tools/mkbuildinfo.sh

build:
	@mkdir -p build

build/%.o: src/%.c | build  # cause
	@$(CC) $(CFLAGS) -c $< -o $@

selftest: $(OBJECTS)
	@$(CC) $(OBJECTS) -lm -o $@
EOF

began=$(date +%s.%N)
make -s -j6 all
ended=$(date +%s.%N)
echo "built $(ls build/*.o | wc -l) objects in $(echo "$ended $began" | awk '{printf "%.2f", $1 - $2}') s"
./selftest | tee selftest.txt
