#!/usr/bin/env bash
# Runs the parts of the test suite one after the other and closes with a summary.
#
#   tools/run_tests.sh [--whole] [PART...]    parts: house release asan cross python package tsan
#                                             cuda gpu_python sanitize; without one: all but the
#                                             last three, which need a GPU, and tsan. gpu_python
#                                             comes along with cuda
#
# --whole is for releases, and takes half as long again: kernels are compiled for all GPUs, not only
# for this machine's or one that has every family of them, the sanitizers watch the tests' own code,
# too, which otherwise is that of the release, they and the emulator leave out no case, and the
# demo's model is tried with every recipe.
#
# A part whose tools are missing and cannot be installed is skipped with the reason, and counted.
# It counts as failed instead when the part was named, when CI=true, or with OCTET_STRICT=1.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

whole=""
if [ "${1:-}" = --whole ]; then
  whole=1
  shift
fi
named=" $* "
parts=("$@")
[ $# -gt 0 ] || parts=(house release asan cross python package)
if [[ $named == *" cuda "* && $named != *" gpu_python "* ]]; then parts+=(gpu_python); fi

logs=build/logs
mkdir -p "$logs"
summary=()
passed=0 skipped=0 failed=0

# --- what each part runs; its closing line goes to the summary -----------------------------------

run_house() {
  local status=0
  python3 tools/check_layers.py || status=1
  python3 tools/check_size.py || status=1
  return "$status"
}

# run_ctest FOLDER [LAUNCHER...]
run_ctest() {
  local folder=$1
  shift
  # Fresh memory has huge floats instead of zeros, so that to read it fails every time.
  # shellcheck disable=SC2086  # CTEST_ARGS holds several words
  MALLOC_PERTURB_=128 "$@" ctest --test-dir "$folder" --output-on-failure --no-tests=error \
    --timeout 1800 --parallel "${JOBS:-$(nproc)}" ${CTEST_ARGS:-}
}

# Kernels have to compile without a GPU, too.
build_default() {
  local kernels=check
  [ -z "$whole" ] || kernels=nvcc
  CUDA=${CUDA:-$kernels} tools/build.sh default "$@"
}

# Arguments for CTest may name cases, which shards hide.
run_release() {
  local shards=4
  [ -z "${CTEST_ARGS:-}" ] || shards=0
  build_default -DOCTET_TEST_SHARDS=$shards all && run_ctest build
}
run_cross() {
  tools/build.sh "$CROSS_PRESET" test_programs &&
    GTEST_FILTER=${GTEST_FILTER:-$(unwatched_tests cross)} run_ctest "build/$CROSS_PRESET"
}
run_cuda() { tools/build.sh cuda all && run_ctest build/cuda; }

# The Python package on the GPU, with whichever Python has what that takes.
run_gpu_python() {
  local python needs='import nanobind, pytest, torch; torch.ones(1, device="cuda")'
  for python in "$PWD/.venv/bin/python" "$(command -v python3 || true)"; do
    if [ -x "$python" ] && "$python" -c "$needs" >/dev/null 2>&1; then
      OCTET_PYTHON=$python tools/build.sh cuda octet_python &&
        OCTET_BUILD_DIR=$PWD/build/cuda "$python" -m pytest -q -rs --color=no \
          -p no:cacheprovider tests/python/test_gpu_*.py tests/python/test_comfy_backend.py
      return
    fi
  done
  say "no Python here has torch with CUDA, nanobind and pytest"
  return 77
}

# The GPU's tests once more, each launch watched: by memcheck for addresses, by racecheck for shared
# memory, by synccheck for barriers, by initcheck for memory that nobody wrote. Under them a kernel
# takes a hundred times as long, most of it on the host: so the shares of all four are one queue for
# all cores, and each of our kernels runs in those cases whose answer may differ. The largest cases
# and those that differ in values alone are left to the plain run; sizes matter to memcheck, the
# others see each tile at its own edges, with every fusion.
run_sanitize() {
  local tool share shares=${JOBS:-$(nproc)} status=0 built=$SECONDS
  if [ "$shares" -gt 16 ]; then shares=16; fi  # each has a context on the GPU
  tools/build.sh gpu-sanitize cuda_tests || return 1
  say "built in $((SECONDS - built)) s"
  rm -f "$logs"/{memcheck,racecheck,synccheck,initcheck}-*.log
  export -f watch_gpu_tests gpu_test_filter compute_sanitizer
  for tool in initcheck memcheck racecheck synccheck; do
    for share in $(seq 0 $((2 * shares - 1))); do echo "$tool $share"; done
  done | xargs -P "$shares" -L 1 bash -c 'watch_gpu_tests "$@"' "$logs" $((2 * shares)) || status=1
  for tool in memcheck racecheck synccheck initcheck; do
    count_watched "$tool" || status=1
  done
  return "$status"
}

# gpu_test_filter TOOL. memcheck sees most tests, since sizes matter to it; the others see each of
# our kernels once, at the edges of its own tile: with all tests they took more than ten minutes.
# cuBLASLt's kernels are not ours to check: racecheck finds hazards inside of them, and initcheck
# takes what they wrote for unwritten (their TMA stores, probably) and blames whoever reads it. One
# test asks CUDA for what it has to refuse, which memcheck reports. No tool sees a ping-pong GEMM's
# scales replaced by later ones: that takes as many tiles as *MoreTiles* has.
gpu_test_filter() {
  local left each_kernel
  left='*MoreTiles*:*Plan*:*ThatTune*:*TooMuchMemory*:*At1024Pixels*:*TextOfThousands*'
  left+=':*ChunksOfScores*:*ManyKeys*:*ExtremeValues*:*SwigluOfAllGates*:*RunsWhenForced*'
  left+=':*AttentionWay.LargeScores*:*ScoresOfMinusInfinity*:*Nan*'
  each_kernel='*AroundItsOwnTile*:CudaRows.QuantizeEqualsRef:*AttentionWay.RaggedLengths*'
  each_kernel+=':CudaAlignedOps.Norm*:CudaAlignedOps.RotateHeads*:CudaAlignedOps.GroupNorm*'
  each_kernel+=':*RotatedHeadMean*:CallsOnGpu.ReadWeightsInEachForm'
  case "$1" in
    memcheck) echo "-$left:RecordingOnGpu.WorkThatWaits*" ;;
    racecheck | synccheck) echo "$each_kernel" ;;
    initcheck) echo "$each_kernel-*unfused*" ;;
  esac
}

# SHARES TOOL SHARE, with the folder of logs as $0. A share whose filter leaves no test never starts
# CUDA, which is not an error; if no share has one, that is.
watch_gpu_tests() {
  local log=$0/$2-$3.log status=0
  SECONDS=0
  GTEST_TOTAL_SHARDS=$1 GTEST_SHARD_INDEX=$3 "$(compute_sanitizer)" --tool "$2" \
    --error-exitcode 9 --print-limit 5 --require-cuda-init no build/gpu-sanitize/cuda_tests \
    --gtest_filter="$(gpu_test_filter "$2")" >"$log" 2>&1 || status=1
  echo "watched for $SECONDS s" >>"$log"
  if [ "$status" != 0 ]; then grep -vE '^\[( RUN  |       OK|-----)' "$log"; fi
  return "$status"
}

# count_watched TOOL: what its shares found, what they took together, and the slowest test.
count_watched() {
  awk -v tool="$1" '
    /^\[       OK \]/ { passed++ }
    /^\[       OK \].* ms\)$/ {
      took = substr($(NF - 1), 2) / 1000
      if (took > longest) { longest = took; slowest = $4 }
    }
    /^\[  FAILED  \].*ms\)$/ { failed++ }
    /^\[  SKIPPED \].*ms\)$/ { skipped++ }
    / (ERROR|RACECHECK) SUMMARY: / && !/not printed/ { errors += $4 }
    /^watched for [0-9]+ s$/ { seconds += $3 }
    END {
      printf "compute-sanitizer %s: %d tests passed, %d skipped, %d failed; %d errors; %d s of " \
        "one core, the longest test %d (%s)\n",
        tool, passed, skipped, failed, errors, seconds, longest, slowest
      exit passed == 0
    }' "$logs/$1-"*.log
}

compute_sanitizer() {
  command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer
}

run_asan() {
  # The sanitizers of gcc 12 and 13 need addresses that some kernels' randomization takes.
  local launcher=(env)
  if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
  local objects=""
  if [ -z "$whole" ]; then
    build_default octet_shared_objects || return 1
    objects=$PWD/build
  fi
  # Frames that outlive their function, on by default from gcc 13 on, are not aligned to the 64
  # bytes that its code for AVX-512 takes for granted: seen with gcc 13.3 as a fault in a store.
  local options=malloc_context_size=8:quarantine_size_mb=32:detect_stack_use_after_return=0
  tools/build.sh asan "-DOCTET_PLAIN_OBJECTS=$objects" test_programs &&
    GTEST_FILTER=${GTEST_FILTER:-$(unwatched_tests asan)} UBSAN_OPTIONS=print_stacktrace=1 \
      ASAN_OPTIONS=${ASAN_OPTIONS:-$options} run_ctest build/asan "${launcher[@]}"
}

# Programs whose threads meet: the pool, engines with their caches, and the server. It takes ten
# minutes of two cores to compile, hence only when it is named.
run_tsan() {
  local launcher=(env)
  if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
  # It knows neither a fork of a process with threads nor a mapping that takes the place of another
  # while it is read.
  local unknown='ForkTest.APoolOfTheParent*:MappedFiles.CanBeReadByManyThreads*'
  tools/build.sh tsan base_tests engine_tests server_tests &&
    GTEST_FILTER=${GTEST_FILTER:--$unknown} CTEST_ARGS="-R ^(base|engine|server)_tests" \
      run_ctest build/tsan "${launcher[@]}"
}

# unwatched_tests PART: GoogleTest's filter of cases that the plain run alone has. They take long,
# and what they call is called by others as well: under the sanitizers numbers that are measured in
# their quality, not in their bits, files that are large rather than different, and the same work
# interrupted in yet another way; under the emulator kernels without instructions of their own;
# under both the definitions, which are the same C++ everywhere, and ops on one thread, which three
# have run.
unwatched_tests() {
  local cases='*/RefModelOps.*:SearchRef.*:*/CpuModelOps.*_one_thread'
  if [ "$1" = asan ]; then
    cases+=':Int8Scores.*:PredictCalibration.*:Bootstrap.CoversTheTruth'
    cases+=':*TextInt8.RotationTakesCare*:*TextInt8.FeaturesOfOrdinary*:DemoTextInt8.*'
    cases+=':TextPrecision.AComparison*:EngineTest.MemoryDoesNotGrow:Quantizing.KeepsToItsMemory'
    cases+=':TokenizerFileSize.*:Safetensors.ALengthThatLooks*:BrokenFiles.AHeaderOfTooManyValues*'
    cases+=':SparseGguf.*Counted:PlanProcesses.*:PlanCacheTest.AFullFile*'
    cases+=':Resuming.A*:Calibrating.StreamedBlocks*:Types/Recorder.SeesAllPieces/F32'
    cases+=':UnequalModel.IsCalibrated*:*LoaderOnHost.*LargeTable:*Many*Blocks/scalar*'
    cases+=':*/CpuModelOps.*_scalar_4x16:HostBudget.LargerPictures*'
  else
    cases+=':*scalar*:ExactSilu.*'
  fi
  # The emulator itself ends when a forked child of a process with threads starts threads. GCC 12's
  # address sanitizer does not hold its allocator during a fork: where another thread allocates at
  # that moment, the child waits for it for ever.
  local impossible='EngineLifetimeTest.IsOfNoUseInAChild'
  [ "$1" = asan ] || impossible='ForkTest.APoolOfTheParent*'
  if [ -n "$whole" ]; then echo "*-$impossible"; else echo "-$cases:$impossible"; fi
}

run_python() {
  OCTET_PYTHON=$PWD/.venv/bin/python build_default octet_python || return 1
  # A file's tests share what they set up, so files are what the processes share out. A third of
  # the time a test waits, hence one process more than there are cores. Threads of torch that wait
  # leave the cores to others.
  OMP_WAIT_POLICY=passive OCTET_BUILD_DIR=$PWD/build OCTET_TEST_WHOLE=${whole:-0} \
    .venv/bin/python -m pytest -q -rs --color=no \
    --numprocesses $((${JOBS:-$(nproc)} + 1)) --maxprocesses 5 --dist loadfile tests/python \
    tools/demo_model tools/fidelity/test_report.py
}

run_package() { build_default octet && tools/test_deb.sh; }

needs_of() {
  case "$1" in
    house) echo house ;;
    cross) echo build cross ;;
    python) echo build library python fonts ;;
    package) echo build package root ;;
    *) echo build ;;
  esac
}

title_of() {
  case "$1" in
    house) echo "house rules" ;;
    release) echo "tests" ;;
    asan) echo "sanitizer tests" ;;
    cross) echo "$OTHER_ARCH kernels" ;;
    python) echo "Python tests" ;;
    package) echo "package" ;;
    tsan) echo "threads" ;;
    cuda) echo "GPU build's tests" ;;
    gpu_python) echo "Python on the GPU" ;;
    sanitize) echo "GPU sanitizers" ;;
    *)
      complain "tests: '$1' is not a part; the parts are house, release, asan, cross, python," \
        "package, tsan, cuda, gpu_python and sanitize"
      exit 2
      ;;
  esac
}

# The line with which the part's own runner closes.
closing_line() {
  local closing='% tests passed|(passed|failed|error).* in [0-9.]+s|^check_(layers|size): '
  closing+='|^octet: the package |^compute-sanitizer '
  grep -E "$closing" "$logs/$1.log" || true
}

# What CTest does not sum up: how many cases there were, where it only knows of the processes that
# ran them, and why single ones were skipped, with counts. GoogleTest prints "file:line: Skipped"
# and the reason on the next line.
case_counts() {
  local log
  case "$1" in
    release) log=build ;;
    cross) log=build/$CROSS_PRESET ;;
    asan | tsan | cuda) log=build/$1 ;;
    *) return 0 ;;
  esac
  log=$log/Testing/Temporary/LastTest.log
  [ -f "$log" ] || return 0
  awk '/^\[=+\] [0-9]+ tests? from .* ran\./ { cases += $2 }
    END { if (cases) print cases " cases" }' "$log"
  awk '/: Skipped$/ { getline; if ($0 == "") $0 = "no reason given"; count[$0]++ }
    END { for (why in count) printf "%d skipped: %s\n", count[why], why }' "$log" | sort
}

# Sets `cpu` to the seconds that all processes before this one have computed for.
count_cpu() {
  local rest
  times >"$logs/times"
  { read -r rest; read -r user system; } <"$logs/times"
  cpu=$(awk -v user="$user" -v system_="$system" '
    function seconds(text) { split(text, part, /[ms]/); return part[1] * 60 + part[2] }
    BEGIN { printf "%d", seconds(user) + seconds(system_) }')
}

# --- running -------------------------------------------------------------------------------------

note() { summary+=("$(printf '  %-8s %-18s %s' "$@")"); }

# Tries to provide what a part needs; on failure `reason` holds the sentence that says why not.
provide() {
  local need log
  for need in "$@"; do
    log=$logs/setup-$need.log
    if ! tools/setup.sh "$need" 2>"$log"; then
      cat "$log" >&2
      reason=$(tail -n 1 "$log")
      reason=${reason#octet: }
      return 1
    fi
  done
}

# Filling the Python environment is mostly waiting for the network: it is done during the builds.
# Only if apt-get, which may not run twice at a time, has nothing to do for it.
ahead=0
fill_venv_ahead() {
  [[ " ${parts[*]} " == *" python "* ]] && has_python_parts || return 0
  set -m  # a group of its own, so that an interrupted run can end all of it
  tools/setup.sh python </dev/null >"$logs/setup-python-ahead.log" 2>&1 &
  ahead=$!
  set +m
  # Only while it runs: its number may belong to another process by now.
  trap 'if jobs -pr | grep -qx "$ahead"; then kill -- "-$ahead" 2>/dev/null || true; fi' EXIT
}

# Whatever its result: the part tries again, and says what is wrong.
wait_for_venv() {
  [ "$ahead" = 0 ] || wait "$ahead" || true
  trap - EXIT
}

must_run() {
  if [ -n "${OCTET_STRICT:-}" ]; then
    [ "$OCTET_STRICT" = 1 ]
  else
    [ "${CI:-}" = true ] || [[ $named == *" $1 "* ]]
  fi
}

# skip PART TITLE REASON
skip() {
  if must_run "$1"; then
    failed=$((failed + 1))
    note failed "$2" "$3"
  else
    skipped=$((skipped + 1))
    note skipped "$2" "$3"
  fi
}

# A part that finds out while it runs that it cannot run here ends with the status 77.
run_part() {
  local part=$1 title reason="" line started=$SECONDS status=0 cpu user system before
  count_cpu
  before=$cpu
  title=$(title_of "$part")
  printf '\n==== %s\n' "$title"
  [ "$part" != python ] || wait_for_venv
  # shellcheck disable=SC2046  # several words are several needs
  if ! provide $(needs_of "$part"); then
    skip "$part" "$title" "$reason"
    return
  fi
  "run_$part" 2>&1 | tee "$logs/$part.log" || status=$?
  if [ "$status" = 77 ]; then
    skip "$part" "$title" "$(tail -n 1 "$logs/$part.log" | sed 's/^octet: //')"
    return
  elif [ "$status" = 0 ]; then
    passed=$((passed + 1))
    count_cpu
    note passed "$title" "in $((SECONDS - started)) s, $((cpu - before)) s of CPU"
  else
    failed=$((failed + 1))
    note failed "$title" "see above, or $logs/$part.log"
  fi
  while IFS= read -r line; do
    note "" "" "$line"
  done < <(closing_line "$part" && case_counts "$part")
}

# Without the needs of a build nothing else can be tested either: stop at once, naming them.
tools/setup.sh build
fill_venv_ahead
for part in "${parts[@]}"; do run_part "$part"; done

printf '\n==== summary\n'
printf '%s\n' "${summary[@]}"
say "$passed parts passed, $skipped skipped, $failed failed, in $SECONDS s"
[ "$failed" = 0 ]
