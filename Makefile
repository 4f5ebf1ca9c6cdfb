# One-line verbs; the real build is CMake's.
all:      ; cmake --preset release && cmake --build --preset release
check:    all ; ctest --preset release -L 'unit|script'
check-all: ; scripts/test
asan:     ; cmake --preset asan && cmake --build --preset asan && ctest --preset asan
tsan:     ; cmake --preset tsan && cmake --build --preset tsan && ctest --preset tsan -L 'unit|script'
docs:     all ; cp build/gen/store/scripts.md docs/scripts.md
bench:    all ; build/weir bench --json
mutate:   ; tests/mutate/run
demo:     ; scripts/demo
install:  all ; cmake --install build $(if $(PREFIX),--prefix $(PREFIX))
clean:    ; rm -rf build build-*
.PHONY: all check check-all asan tsan docs bench mutate demo install clean
