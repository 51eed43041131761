#!/usr/bin/env bash
# Fuzz the reader, planner and executor of packed files: native/fuzz/run.sh [inputs] [seconds]
# Needs clang with its sanitizer runtimes (Debian: clang-14 libclang-rt-14-dev) and the project's Python environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-1000000}
seconds=${2:-3600}
build=build/fuzz
python=${PYTHON:-.venv/bin/python}
cxx=${CXX:-$(command -v clang++ || command -v clang++-14)}

cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$cxx" -DEBNET_FUZZ=ON >/dev/null
cmake --build "$build" --target fuzz_file --parallel "$(nproc)"
"$python" native/fuzz/seeds.py "$build/seeds"
mkdir -p "$build/corpus"
export EBNET_KERNELS=fixed  # no input is worth timing kernels for
exec "$build/native/fuzz/fuzz_file" -runs="$runs" -max_total_time="$seconds" -max_len=8192 -timeout=10 \
  -rss_limit_mb=1024 -malloc_limit_mb=256 -dict=native/fuzz/tokens.dict -artifact_prefix="$build/" \
  -print_final_stats=1 "$build/corpus" "$build/seeds"
