# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A Slurm of two nodes on this machine, without root's configuration: started for the tests and
# ended by its process ids. Sourced by run.sh. Debian's packages slurmctld, slurmd, slurm-client and
# slurm-wlm-basic-plugins are enough, unpacked (dpkg-deb -x) below WEFT_SLURM_ROOT; by default below
# .env/slurm, where scripts/setup.sh puts them, else those that are installed.
# shellcheck source=tests/ports.sh
. "$ROOT/tests/ports.sh"
if [ -z "${WEFT_SLURM_ROOT:-}" ] && [ -f "$ROOT/.env/slurm/installed.txt" ]; then
    WEFT_SLURM_ROOT=$ROOT/.env/slurm
fi

# By daemon: controller, n1, n2.
declare -A SLURM_PROCESSES=()

# slurm_program NAME: its path; Debian's daemons have names of their own when merely unpacked.
slurm_program() {
    local folder name
    for folder in "${WEFT_SLURM_ROOT:-}/usr/sbin" "${WEFT_SLURM_ROOT:-}/usr/bin"; do
        for name in "$1" "$1-wlm"; do
            [ -x "$folder/$name" ] && echo "$folder/$name" && return
        done
    done
    return 1
}

slurm_is_here() {
    local name
    for name in slurmctld slurmd slurmstepd srun sinfo; do
        slurm_program "$name" >/dev/null || return
    done
}

# slurm_start FOLDER: configuration, controller and two node daemons; true when both are idle.
# SLURM_SETTINGS: further lines of the configuration.
slurm_start() {
    local folder=$1 ports node plugins=${WEFT_SLURM_ROOT:-}/usr/lib/x86_64-linux-gnu/slurm-wlm
    mkdir -p "$folder"/{state,n1,n2,tmp-n1,tmp-n2} || return
    read -ra ports < <(free_ports 3)
    export SLURM_CONF=$folder/slurm.conf
    [ -n "${WEFT_SLURM_ROOT:-}" ] && export LD_LIBRARY_PATH=$plugins
    cat >"$SLURM_CONF" <<END
ClusterName=weft
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=${ports[0]}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
PluginDir="$plugins"
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation="$folder/state"
SlurmdSpoolDir="$folder/%n"
SlurmctldPidFile="$folder/slurmctld.pid"
SlurmdPidFile="$folder/slurmd-%n.pid"
SlurmctldLogFile="$folder/slurmctld.log"
SlurmdLogFile="$folder/slurmd-%n.log"
TmpFS="$folder/tmp-%n"
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2
PartitionName=p Nodes=n1,n2 Default=YES MaxTime=5 State=UP
${SLURM_SETTINGS:-}
END
    SLURM_FOLDER=$folder
    slurm_controller -c
    for node in n1 n2; do slurm_node "$node"; done
    wait_for 100 slurm_is_idle
}

# slurm_controller [-c]: starts the controller; with -c it begins without what an earlier one saved.
slurm_controller() {
    "$(slurm_program slurmctld)" -D "$@" -f "$SLURM_CONF" >>"$SLURM_FOLDER/slurmctld.out" 2>&1 &
    SLURM_PROCESSES[controller]=$!
}

# slurm_node NAME: starts the daemon of a node.
slurm_node() {
    "$(slurm_program slurmd)" -D -N "$1" -f "$SLURM_CONF" -d "$(slurm_program slurmstepd)" \
        >>"$SLURM_FOLDER/slurmd-$1.out" 2>&1 &
    SLURM_PROCESSES[$1]=$!
}

# slurm_ends SECONDS PROCESS...: waits until they are gone, and kills them when that time is over.
# A slurmd that waits for its controller does not hear a TERM.
slurm_ends() {
    local limit_s=$1 process
    shift
    slurm_has_ended() { ! kill -0 "$@" 2>/dev/null; }
    for process in "$@"; do
        wait_for "$limit_s" slurm_has_ended "$process" >/dev/null ||
            kill -KILL "$process" 2>/dev/null
        wait "$process" 2>/dev/null
    done
}

# slurm_kill DAEMON SIGNAL
slurm_kill() {
    kill -s "$2" "${SLURM_PROCESSES[$1]}" && slurm_ends 30 "${SLURM_PROCESSES[$1]}"
    unset "SLURM_PROCESSES[$1]"
}

slurm_is_idle() {
    [ "$(timeout 20 "$(slurm_program sinfo)" -h -t idle -o %D 2>/dev/null)" = 2 ]
}

slurm_stop() {
    [ ${#SLURM_PROCESSES[@]} = 0 ] && return
    kill "${SLURM_PROCESSES[@]}" 2>/dev/null
    slurm_ends 10 "${SLURM_PROCESSES[@]}"
    SLURM_PROCESSES=()
}
