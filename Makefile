# One-line verbs; the real build is CMake's (CMakePresets.json says which folder is which).
#   make storm WEIR_STORM_JOBS=100000
#   make install PREFIX=/usr DESTDIR=/tmp/pack     make fuzz T=resp S=60
T ?= resp
S ?= 60
all:       ; cmake --preset release && cmake --build --preset release
check:     all ; ctest --preset release -L 'unit|script'
check-all: ; scripts/test
asan:      ; cmake --preset asan && cmake --build --preset asan && ctest --preset asan
tsan:      ; cmake --preset tsan && cmake --build --preset tsan && ctest --preset tsan -L 'unit|script'
fuzz:      ; cmake --preset fuzz && cmake --build --preset fuzz && mkdir -p build-fuzz/found/$T && build-fuzz/tests/fuzz_$T -max_total_time=$S build-fuzz/found/$T tests/fuzz/corpus/$T
chaos:     all ; WEIR_CHAOS_JOBS=20000 WEIR_CHAOS_KILLS=220 ctest --preset release -R 'fault|kill|chaos|total_queue'
storm:     all ; tests/chaos/storm
bench:     all ; build/weir bench --json
mutate:    ; tests/mutate/run
lint:      ; tools/lint
docs:      all ; cp build/gen/store/scripts.md docs/scripts.md && cp build/gen/docs/errors.md docs/errors.md && tests/docs/run-watch --write docs/watching-redis.md
install:   all ; cmake --install build $(if $(PREFIX),--prefix $(PREFIX))
demo:      ; scripts/demo
clean:     ; rm -rf build build-*
.PHONY: all check check-all asan tsan fuzz chaos storm bench mutate lint docs install demo clean
