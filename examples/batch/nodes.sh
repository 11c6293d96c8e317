#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The entry point of a container for jobs of AWS Batch with several nodes. It waits until all nodes
# are there, then runs the job's command on the main node.
#
#   ENTRYPOINT ["/usr/local/bin/nodes.sh"]       in the Dockerfile; the image has sshd and a key
#
# Batch starts the same command on each node, and tells the other nodes where the main node is. They
# start sshd, and write their addresses into a folder of the main node. When all addresses are
# there, the main node writes them to /run/weft/hosts. The command that `weft export batch` made
# reads this file. When the main node ends, Batch stops the others.
set -euo pipefail

folder=${WEFT_BATCH_FOLDER:-/run/weft}
sshd=${WEFT_BATCH_SSHD:-/usr/sbin/sshd}
remote=${WEFT_BATCH_SHELL:-ssh}
count=${AWS_BATCH_JOB_NUM_NODES:-1}
index=${AWS_BATCH_JOB_NODE_INDEX:-0}
main=${AWS_BATCH_JOB_MAIN_NODE_INDEX:-0}
patience=${WEFT_BATCH_PATIENCE:-600} # seconds; chosen: an instance takes minutes to start

own_address() {
    if [ -n "${WEFT_BATCH_ADDRESS:-}" ]; then
        echo "$WEFT_BATCH_ADDRESS"
    else
        hostname -I | tr ' ' '\n' | grep -v : | head -n 1
    fi
}

if [ "$count" = 1 ]; then exec "$@"; fi
mkdir -p "$folder/nodes"
mkdir -p /run/sshd 2>/dev/null || true # sshd wants it
if [ "$index" = "$main" ]; then
    "$sshd"
    own_address >"$folder/nodes/$index"
    until [ "$(find "$folder/nodes" -type f ! -name '*.new' | wc -l)" = "$count" ]; do
        if [ $SECONDS -ge "$patience" ]; then
            echo "nodes.sh: after $patience s only these of $count nodes have come:" >&2
            (cd "$folder/nodes" && grep -H . ./*) >&2
            exit 1
        fi
        sleep 0.2
    done
    # The main node's ranks come first, as rank 0 is where the command runs.
    { cat "$folder/nodes/$main"; find "$folder/nodes" -type f ! -name "$main" -print0 |
        sort -zV | xargs -0 cat; } >"$folder/hosts"
    exec "$@"
fi

address=$(own_address)
host=${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:?Batch did not name the main node}
announce="mkdir -p '$folder/nodes' && cd '$folder/nodes' && echo $address >$index.new &&
    mv $index.new $index"
"$sshd"
until "$remote" -o StrictHostKeyChecking=accept-new -o ConnectTimeout=5 "$host" "$announce"; do
    if [ $SECONDS -ge "$patience" ]; then
        echo "nodes.sh: the main node $host could not be reached within $patience s;" \
            "look at its log: sshd must run there" >&2
        exit 1
    fi
    sleep 1
done
exec sleep infinity
