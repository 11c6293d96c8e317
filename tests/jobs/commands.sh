# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft submit`, `jobs`, `logs`, `cancel`, `wait` and `run --slurm`: what they do and refuse.
# Sourced by run.sh.

# Slurm lets some seconds pass before it queues a job again; the cases below run meanwhile.
script flaky 'echo "attempt ${SLURM_RESTART_COUNT:-0}"' '[ "${SLURM_RESTART_COUNT:-0}" -ge 1 ]'
submit "${plain[@]}" --retries 1 -- "$work/flaky" && flaky=$id

script number 'echo "task $SLURM_ARRAY_TASK_ID"' 'exit $((SLURM_ARRAY_TASK_ID == 3 ? 7 : 0))'
submit "${plain[@]}" -a 0-4 -- "$work/number" && ends 7 '_3: FAILED, exit code 7' \
    weft wait "$id" && weft wait "${id}_4" && weft logs "$id" >"$work/out" 2>&1 &&
    [ "$(grep -c '^task [0-4]$' "$work/out")" = 5 ] &&
    [ "$(weft jobs "$id" | grep -c "^${id}_")" = 5 ] &&
    ends 0 'task 2' weft logs -f "${id}_2" && ends 2 'has 5 tasks' weft logs -f "$id"
report $? 'an array of five tasks: each has a state, a log and an exit code; the highest counts'

script badly 'exit 3'
submit "${plain[@]}" -- "$work/well" && first=$id &&
    submit "${plain[@]}" -d "afterok:$first" -- "$work/badly" && second=$id &&
    ends 3 'FAILED' weft wait "$second" && wait_state "$first" COMPLETED &&
    submit "${plain[@]}" -d "afterok:$second" -- "$work/well" &&
    ends 1 'can never begin' weft wait "$id" && ends 0 '' weft cancel "$id"
report $? 'a job waits for another; one that can never begin is not waited for'

# RUNNING is also a job whose script has not begun, and so has no record.
submit "${plain[@]}" -- "$work/slow" && running=$id && wait_for 100 wait_state "$id" RUNNING &&
    wait_for 100 grep -qs begun "slurm-$id.out" &&
    submit "${plain[@]}" --hold -- "$work/slow" && wait_state "$id" PENDING &&
    ends 1 'has not begun' weft cancel --signal USR1 "$id" &&
    ends 0 '' weft cancel --wait "$id" "$running" &&
    ends 143 'CANCELLED' weft wait "$id" && ends 143 'CANCELLED' weft wait "$running" &&
    ends 0 'has ended already' weft cancel "$id" &&
    says_its_end "$running"
report $? 'a job is cancelled while it waits and while it runs'

name='a job whose number cannot be written is queued, and the error has its number'
weft submit "${plain[@]}" -- "$work/well" >/dev/full 2>"$work/out"
[ $? = 1 ] &&
    id=$(sed -n 's/.* job \([0-9]*\) is in the queue, but its number .*/\1/p' "$work/out") &&
    [ -n "$id" ] && ends 0 '' weft wait "$id"
report $? "$name"

script signalled 'trap "echo got USR1; exit 5" USR1' 'echo ready' 'while :; do sleep 0.1; done'
submit "${plain[@]}" -- "$work/signalled" &&
    wait_for 100 grep -qs ready "slurm-$id.out" && ends 0 '' weft cancel --signal USR1 "$id" &&
    ends 5 'FAILED' weft wait "$id" && ends 0 'got USR1' weft logs "$id"
report $? 'a signal reaches the ranks, and their exit code the one who waits'

script killed 'kill -KILL $$'
submit "${plain[@]}" -- "$work/killed" && ends 137 'FAILED, exit code 137' weft wait "$id"
report $? 'a rank that is killed fails the job with 128 and the signal'

script keys 'printf "%s" "$FI_WEFT_JOB_KEY" | sha256sum' 'echo "length ${#FI_WEFT_JOB_KEY}"' \
    'tr "\\0" "\\n" </proc/self/environ >/dev/null' 'sleep 1'
FI_WEFT_JOB_KEY=1111 submit "${plain[@]}" -- "$work/keys" && first=$id
submit "${plain[@]}" -- "$work/keys" && weft wait "$first" "$id" >"$work/out" 2>&1 &&
    cat "slurm-$first.out" "slurm-$id.out" >"$work/out" &&
    [ "$(grep -c '^length 64' "$work/out")" = 2 ] &&
    [ "$(grep -- '  -$' "$work/out" | sort -u | wc -l)" = 2 ] &&
    ! grep -rqE '\b[0-9a-f]{64}\b' "$WEFT_JOBS_DIR" "$work/slurm"/*.log &&
    ! grep -rq 'FI_WEFT_JOB_KEY=' "$WEFT_JOBS_DIR" "$work/slurm/state"
report $? 'each job has a key of its own, and no script, log or state of Slurm holds one'

# Each says when it has begun and waits for the other, so that both run at the same time.
script pair 'touch "begun-$SLURM_JOB_ID"' 'while [ "$(ls begun-* | wc -l)" -lt 2 ]; do sleep 0.1' \
    'done' "exec '$code'"
on_one_node() { FI_WEFT_REPORT=1 submit "${plain[@]}" -N 1 -n 2 -O -w n1 -- "$work/pair"; }
on_one_node && first=$id && on_one_node && weft wait "$first" "$id" >"$work/out" 2>&1 &&
    weft logs "$first" >"$work/out" 2>&1 && carried 2 &&
    weft logs "$id" >"$work/out" 2>&1 && carried 2 && [ "$(ls begun-* | wc -l)" = 2 ]
report $? 'two jobs of one user on one node at the same time have two ranks each'

salloc() { timeout -k 5 90 salloc --quiet -N 2 -n 4 "$WEFT" run "$@"; }
FI_WEFT_REPORT=1 salloc "${plain[@]}" --slurm -- "$code" >"$work/out" 2>&1 && carried 4 &&
    FI_WEFT_REPORT=1 salloc -- "$code" >"$work/out" 2>&1 && carried 4 &&
    ends 2 '--timeout is not possible' salloc --slurm --timeout 9 -- "$code" &&
    ends 2 'SLURM_JOB_ID' weft run --slurm -- "$code"
report $? 'weft run takes the nodes of the allocation, with the word and without'

ends 1 'one of 2 ranks' srun -n 2 --mpi=pmi2 "$WEFT" exec --world 4 "${plain[@]}" -- "$work/well"
report $? 'a world that is smaller than the job is refused'

name='what cannot be is refused before anything is queued'
listed=$(weft jobs | wc -l)
ends 2 'no such partition; it has p' weft submit -p q -- "$code" &&
    ends 2 'gives a job 2 at most' weft submit -N 3 -- "$code" &&
    ends 2 'gives a job 0:05:00 at most' weft submit -t 6 -- "$code" &&
    ends 2 'sbatch has --account' weft submit --acount=x -- "$code" &&
    ends 127 'was not found' weft submit -- ./no-such-program &&
    ends 1 'srun offers pmix' weft submit --pmi pmi9 -- "$code" &&
    ends 1 'sbatch refused the job' weft submit --sbatch=--no-such-option -- "$code" &&
    ends 1 'is not known' weft wait 99999 && ends 2 'the number of a job' weft cancel x &&
    [ "$(weft jobs | wc -l)" = "$listed" ]
report $? "$name"

weft wait "${flaky:-none}" >"$work/out" 2>&1 && weft logs "$flaky" >"$work/out" 2>&1 &&
    grep -q '^attempt 0' "$work/out" && grep -q '^attempt 1' "$work/out"
report $? 'a job that failed is queued again, and its output goes on'

# The controller forgets; the records remain.
name='a record tells the end of a job that Slurm has forgotten'
forgotten=424242
mkdir -p "$WEFT_JOBS_DIR/weft/$forgotten" && printf 'version=1\nname=old\n' \
    >"$WEFT_JOBS_DIR/weft/$forgotten/job" && printf '%s\n' version=1 nodes=n1 began=10 ended=20 \
    exit_code=9 >"$WEFT_JOBS_DIR/weft/$forgotten/task-0" &&
    ends 9 'FAILED, exit code 9' weft wait "$forgotten" &&
    ends 0 'old' weft jobs
report $? "$name"
