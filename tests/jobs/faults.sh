# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What befalls jobs on a real Slurm: its time limit, a job that is queued again while it runs, a
# node that is lost, one that is drained, a controller that is restarted, an array of 50. Sourced by
# run.sh.

# Slurm counts time limits in minutes, so this job ends while the cases below run.
script slow-limited 'echo "begun $$"' 'exec sleep 300'
limited=$(weft submit "${plain[@]}" -t 1 -N 1 -n 1 -w n1 -- "$work/slow-limited" 2>"$work/said")

# on NODE PROGRAM: a job of one rank there that runs; sets `id`.
on() {
    submit "${plain[@]}" -N 1 -n 1 -w "$1" "${@:3}" -- "$work/$2" &&
        wait_for 100 wait_state "$id" RUNNING && wait_for 100 grep -qs begun "slurm-$id.out"
}

ended() { weft wait "$1" >"$work/out" 2>&1 && wait_state "$1" COMPLETED; }

node_is() { sinfo -h -n "$1" -o %T | grep -qx "$2"; }

script slow-again 'echo "begun, attempt ${SLURM_RESTART_COUNT:-0}"' \
    '[ "${SLURM_RESTART_COUNT:-0}" -ge 1 ] || exec sleep 300'
on n2 slow-again --sbatch=--requeue && scontrol requeue "$id" >"$work/out" 2>&1 && ended "$id" &&
    weft logs "$id" >"$work/out" 2>&1 && grep -q 'attempt 1' "$work/out"
report $? 'a job that is queued again while it runs is waited for until its second end'

script lost 'echo "begun $$"' 'exec sleep 300'
on n2 lost && slurm_kill n2 KILL &&
    scontrol update nodename=n2 state=down reason=lost && ends 4 'NODE_FAIL' weft wait "$id" &&
    ends 0 'NODE_FAIL' weft jobs "$id"
report $? 'a job whose node is lost ends as NODE_FAIL with 4'
slurm_node n2
scontrol update nodename=n2 state=resume >"$work/out" 2>&1
nothing_lost() { [ -z "$(pgrep -f "$work/lost" || true)" ]; }
wait_for 100 node_is n2 idle >>"$work/out" 2>&1 && wait_for 100 nothing_lost >>"$work/out" 2>&1
report $? 'the node comes back, and its daemon ends what ran there'

script drained 'echo "begun $$"' "until [ -e '$work/is-draining' ]; do sleep 0.1; done"
on n2 drained && first=$id && scontrol update nodename=n2 state=drain reason=trial &&
    submit "${plain[@]}" -N 1 -n 1 -w n2 -- "$work/well" && second=$id &&
    touch "$work/is-draining" && ended "$first" && wait_state "$second" PENDING &&
    wait_for 100 node_is n2 drained
status=$?
touch "$work/is-draining"
scontrol update nodename=n2 state=resume && [ $status = 0 ] && ended "$second"
report $? 'a drained node finishes its job, and takes the next one when it is back'

# Who waits since before goes on waiting; who asks meanwhile is told.
# The job ends when the controller is back: a step whose end was not heard says it again only after
# 60 seconds.
waiting=
script slow-through 'echo "begun $$"' "until [ -e '$work/back' ]; do sleep 0.1; done" 'exit 6'
# Only who has had an answer waits through it.
mkdir "$work/answered"
script answered/squeue "'$slurm/squeue' \"\$@\" || exit" "touch '$work/was-answered'"
on n2 slow-through &&
    { PATH=$work/answered:$PATH weft wait "$id" >"$work/waited" 2>&1 & } && waiting=$! &&
    wait_for 100 test -e "$work/was-answered" && slurm_kill controller TERM &&
    ends 1 'controller' weft jobs "$id" &&
    wait_for 100 grep -q 'until it is back' "$work/waited"
status=$?
[ -n "${SLURM_PROCESSES[controller]:-}" ] || slurm_controller
touch "$work/back"
wait "$waiting"
[ "$status $?" = '0 6' ]
report $? 'a job goes on without its controller, and its end is waited for'

script quick 'exit 0'
submit "${plain[@]}" -n 1 -a 0-49 -- "$work/quick" && weft wait "$id" >"$work/out" 2>&1 &&
    [ "$(weft jobs "$id" | grep -c "^${id}_.*COMPLETED")" = 50 ]
report $? 'an array of 50 tasks'

wait_for 120 wait_state "$limited" TIMEOUT >"$work/out" 2>&1 &&
    ends 124 'TIMEOUT' weft wait "$limited" &&
    ends 0 'TIME LIMIT' weft logs "$limited"
report $? 'the time limit ends a job with 124'
